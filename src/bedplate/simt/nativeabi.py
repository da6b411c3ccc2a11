"""The HAL's structs for native kernels (`native/hal/spec.toml`), written again.

This system stands below the HAL and cannot ask it; a test of the HAL compares every field.
`bp_native_window` is `abi.Window`.
"""

from __future__ import annotations

from ctypes import Structure, c_char, c_int32, c_uint32, c_uint64, c_void_p

OUT_OF_MEMORY, LAUNCH_FAULT, CANCELLED = -5, -9, -10
"""Statuses of the HAL."""
TEXT_BYTES = 192


class NativeFault(Structure):
    """`bp_native_fault`."""

    _fields_ = [
        ("head", c_uint64),
        ("claimed", c_uint32),
        ("status", c_int32),
        ("block", c_uint64),
        ("value", c_uint64),
        ("text", c_char * TEXT_BYTES),
        ("reserved", c_uint64 * 4),
    ]


class NativeLaunch(Structure):
    """`bp_native_launch`."""

    _fields_ = [
        ("head", c_uint64),
        ("parameters", c_void_p),
        ("parameters_bytes", c_uint64),
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("dynamic_shared_bytes", c_uint32),
        ("worker", c_uint32),
        ("shared", c_void_p),
        ("budget", c_uint64),
        ("cancel", c_void_p),
        ("fault", c_void_p),
        ("counters", c_void_p),
        ("printf_ring", c_void_p),
        ("reserved", c_uint64 * 4),
        ("windows", c_void_p),
        ("window_count", c_uint64),
    ]
