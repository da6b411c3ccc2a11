"""Finding the window that holds an address, as functions of the compiled module.

A machine has one window of its own and few of its caller's; behind the HAL every allocation
is one. So the first is tried first, the others are searched by halves, and where a kernel is
compiled for many each access remembers where it was (`find.site`).
"""

from __future__ import annotations

import ctypes
from typing import Any

from bedplate.simt import abi


def _at(structure: Any, name: str) -> int:
    return int(getattr(structure, name).offset)


SEARCH = f"""
define internal i1 @holds(ptr %one, i64 %address, i64 %bytes) alwaysinline {{
  %base = load i64, ptr %one
  %ps = getelementptr i8, ptr %one, i64 {_at(abi.Window, "size")}
  %size = load i64, ptr %ps
  %offset = sub i64 %address, %base
  %large = icmp uge i64 %size, %bytes
  %room = sub i64 %size, %bytes
  %fits = icmp ule i64 %offset, %room
  %good = and i1 %large, %fits
  ret i1 %good
}}
define internal ptr @window.of(ptr %launch, i64 %address, i64 %bytes) {{
entry:
  %pw = getelementptr i8, ptr %launch, i64 {_at(abi.Launch, "windows")}
  %windows = load ptr, ptr %pw
  %pc = getelementptr i8, ptr %launch, i64 {_at(abi.Launch, "window_count")}
  %count = load i64, ptr %pc
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %lost, label %first
first:
  %near = call i1 @holds(ptr %windows, i64 %address, i64 %bytes)
  br i1 %near, label %nearest, label %head
nearest:
  ret ptr %windows
head:
  %low = phi i64 [ 1, %first ], [ %nextlow, %turn ]
  %high = phi i64 [ %count, %first ], [ %nexthigh, %turn ]
  %more = icmp ult i64 %low, %high
  br i1 %more, label %turn, label %last
turn:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %skip = mul i64 %middle, {ctypes.sizeof(abi.Window)}
  %one = getelementptr i8, ptr %windows, i64 %skip
  %base = load i64, ptr %one
  %before = icmp ule i64 %base, %address
  %up = add i64 %middle, 1
  %nextlow = select i1 %before, i64 %up, i64 %low
  %nexthigh = select i1 %before, i64 %high, i64 %middle
  br label %head
last:
  %index = sub i64 %low, 1
  %none = icmp eq i64 %index, 0
  br i1 %none, label %lost, label %look
look:
  %lastskip = mul i64 %index, {ctypes.sizeof(abi.Window)}
  %found = getelementptr i8, ptr %windows, i64 %lastskip
  %good = call i1 @holds(ptr %found, i64 %address, i64 %bytes)
  %result = select i1 %good, ptr %found, ptr null
  ret ptr %result
lost:
  ret ptr null
}}
"""
"""`window.of`: the window that holds all bytes, or null; the first is tried first."""

_SITE = f"""{SEARCH}
define i1 @find.site(ptr %launch, ptr %site, i64 %address, i64 %bytes) noinline {{
  %one = call ptr @window.of(ptr %launch, i64 %address, i64 %bytes)
  %none = icmp eq ptr %one, null
  br i1 %none, label %lost, label %good
good:
  %whole = load [{ctypes.sizeof(abi.Window) // 8} x i64], ptr %one
  store [{ctypes.sizeof(abi.Window) // 8} x i64] %whole, ptr %site
  ret i1 1
lost:
  ret i1 0
}}
"""
"""`find.site`: remember the window of an access, if there is one."""


def text(function: str) -> str:
    """The function of that name, in LLVM's assembly."""
    if function != "find.site":
        raise ValueError(f"{function} is not the name of a searching function")
    return _SITE
