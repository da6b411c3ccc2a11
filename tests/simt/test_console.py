"""Stepping by commands: what a session prints, under each schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.simt.test_schedule import HEAD, LOCK
from tests.simt.test_trace import SPLIT
from tests.simt.texts import whole

from bedplate.simt.api import Console, LaunchFailed, Machine, Quit, Reference, Sources

LOW = "########------------------------"
HIGH = "--------########################"


class Session:
    """A script against a kernel; what was printed, the echo of commands with it."""

    def __init__(self, machine: Machine, text: str, threads: int, arrays: int = 1) -> None:
        loaded = machine.load(text, "k.ptx")
        self.kernel = loaded[next(iter(loaded))]
        self.values = [machine.array(np.zeros(128, np.uint32)) for _ in range(arrays)]
        self.threads = threads
        self.printed: list[str] = []
        texts = {"k.ptx": text.splitlines(), "/build/of/somebody/split.cu": ["", "if (x)", " y=3;"]}
        self.console = Console(self.kernel, Sources("k.ptx", texts), self.ask, self.say)
        self.script: Iterator[str] = iter(())

    def ask(self, prompt: str) -> str | None:
        line = next(self.script, None)
        if line is not None:
            self.printed.append(prompt + line)
        return line

    def say(self, words: str) -> None:
        self.printed += words.split("\n")

    def run(self, *script: str, **options: Any) -> bool:
        """Whether the launch came to its end."""
        self.script = iter(script)
        try:
            Reference(self.kernel, 1, self.threads, self.values, **options).run(
                self.console.stepper
            )
        except Quit:
            return False
        return True

    def after(self, command: str, nth: int = 0) -> list[str]:
        """What a command printed."""
        at = [n for n, line in enumerate(self.printed) if line == f"(simt) {command}"][nth]
        rest = self.printed[at + 1 :]
        end = [n for n, line in enumerate(rest) if line.startswith("(simt) ")]
        return rest[: end[0]] if end else rest


@pytest.fixture
def split(machine: Machine) -> Session:
    """Two warps: one whose lanes part, and one of 8 lanes that do not."""
    return Session(machine, SPLIT, 40)


def test_the_first_stop(split: Session) -> None:
    """Before the first instruction, with the statement and the source's line."""
    assert not split.run()
    assert split.printed == [
        "block 0 warp 0  ################################  32 lanes",
        "=> k.ptx:11  mov.u32 %r1, %tid.x;",
        "   /build/of/somebody/split.cu:2  if (x)",
    ]


def test_steps(split: Session) -> None:
    """By one, by several, by an empty line again; the mask is that of the side that runs."""
    split.run("stepi", "si 2", "", "bt")
    assert split.after("stepi")[1] == "=> k.ptx:12  setp.lt.u32 %p1, %r1, 8;"
    assert split.after("si 2") == [
        f"block 0 warp 0  {HIGH}  24 lanes",
        "=> k.ptx:15  mov.u32 %r2, 3;",
        "   /build/of/somebody/split.cu:3  y=3;",
    ]
    assert split.after("")[1] == "=> k.ptx:18  mov.u32 %r2, 4;"
    assert split.after("bt")[0].startswith("#0  split at k.ptx:18 (/build/of/somebody/split.cu:3")


def test_a_step_goes_to_another_line(split: Session) -> None:
    """Of the source, however many instructions that is."""
    split.run("step", "step")
    assert split.after("step")[1] == "=> k.ptx:15  mov.u32 %r2, 3;"
    # Line 3 is the last: what follows is the other warp, at line 2.
    assert split.after("step", 1)[0] == "[now block 0, warp 1]"


def test_breakpoints(split: Session) -> None:
    """At labels, lines of the PTX and of the source; all warps stop, one is followed."""
    assert split.run("b LOW", "break 14", "b split.cu:3", "i b", "c", "c", "i b", "d", "c")
    assert split.after("break 14") == ["breakpoint 2 at 14"]
    assert split.after("c")[:3] == [
        "breakpoint 2",
        f"block 0 warp 0  {HIGH}  24 lanes",
        "=> k.ptx:15  mov.u32 %r2, 3;",
    ]
    assert split.after("c", 1)[:2] == ["breakpoint 1", f"block 0 warp 0  {LOW}  8 lanes"]
    assert split.after("i b")[0] == "1  LOW  hit 0 times"
    assert split.after("i b", 1) == [
        "1  LOW  hit 1 times",
        "2  14  hit 1 times",
        "3  split.cu:3  hit 0 times",
    ]


def test_a_breakpoint_in_another_warp(split: Session) -> None:
    """It is followed from then on, until it has ended."""
    assert split.run("b BOTH", "c", "c", "si", "d 1", "c")
    assert split.after("c", 1)[:3] == [
        "[now block 0, warp 1]",
        "breakpoint 1",
        "block 0 warp 1  ########........................  8 lanes",
    ]
    assert split.after("si")[1] == "=> k.ptx:22  mul.wide.u32 %rd2, %r1, 4;"


def test_registers(split: Session) -> None:
    """In 32 lanes; those that do not run are in brackets."""
    split.run("b 15", "c", "p %r1", "p/x %tid.x", "p %p1", "info registers", "si 2", "p %r2")
    shown = split.after("p %r1")
    assert shown[0] == "%r1 .b32"
    assert shown[1].split() == ["0:", "(0)", "(1)", "(2)", "(3)", "(4)", "(5)", "(6)", "(7)"]
    assert shown[4].split() == ["24:", "24", "25", "26", "27", "28", "29", "30", "31"]
    assert split.after("p/x %tid.x")[2].split() == [
        "8:",
        "0x8",
        "0x9",
        "0xa",
        "0xb",
        "0xc",
        "0xd",
        "0xe",
        "0xf",
    ]
    assert split.after("p %p1")[1].split()[1] == "(1)"
    assert [line.split() for line in split.after("info registers")] == [
        ["%r1", ".b32", "0", "1", "2", "3", "..", "31"],
        ["%p1", ".pred", "1", "1", "1", "1", "..", "0"],
    ]
    assert split.after("p %r2")[1].split()[1] == "0"


def test_floats_and_formats(machine: Machine) -> None:
    """A type's own format, and the bits as another."""
    text = SPLIT.replace(".reg .b32 %r<4>;", ".reg .b32 %r<4>;\n.reg .f32 %f<2>;").replace(
        ".loc 1 2 1", "mov.f32 %f1, 0fBFC00000;\n.loc 1 2 1"
    )
    session = Session(machine, text, 40)
    session.run("si", "p %f1", "p/x %f1", "p/d %f1", "p/q %f1", "p %zz")
    assert session.after("p %f1") == ["%f1 .f32 = -1.5 in all lanes"]
    assert session.after("p/x %f1") == ["%f1 .f32 = 0xbfc00000 in all lanes"]
    assert session.after("p/d %f1") == ["%f1 .f32 = -1077936128 in all lanes"]
    assert session.after("p/q %f1") == ["the format 'q' is none of x, d, u, f"]
    assert session.after("p %zz") == ["the kernel has no register '%zz'"]


def test_pending_masks(split: Session) -> None:
    """Lanes that wait, and where."""
    split.run("b 15", "c", "mask", "info warps")
    assert split.after("mask") == [
        f"{HIGH}  ffffff00 runs line 15",
        "########                          000000ff waits to run line 18 (LOW)",
    ]
    assert split.after("info warps") == [
        "* warp 0  ffffffff  runs line 15",
        "  warp 1  000000ff  is to run line 11",
    ]


def test_the_stack_of_ipdom() -> None:
    """One entry for each side, and one for where they meet."""
    with Machine(threads=1, memory=1 << 20, schedule="ipdom") as machine:
        session = Session(machine, SPLIT, 32)
        session.run("b LOW", "c", "info mask", "si 2", "info mask")
    assert session.after("info mask") == [
        f"{LOW}  000000ff runs line 18",
        "stack, the top first: block, where it ends, lanes",
        "  line 18 (LOW) until line 21 (BOTH): 000000ff",
        "  line 15 until line 21 (BOTH): ffffff00",
        "  line 21 (BOTH) until the end: ffffffff",
    ]


@pytest.mark.parametrize("schedule", ["its", "ipdom", "adversarial"])
def test_a_barrier_and_memory(schedule: Any) -> None:
    """Shared memory by its name, global by a register, with offsets, formats and units."""
    body = """
mov.u64 %rd6, tile;
add.u32 %r2, %r1, 7;
st.shared.u32 [tile+4], %r2;
bar.sync 0;
st.global.u32 [%rd4], 0x40400000;
"""
    with Machine(threads=1, memory=1 << 20, schedule=schedule) as machine:
        text = whole(HEAD, body)
        session = Session(machine, text, 33, arrays=2)
        behind = text[: text.index("st.global")].count("\n") + 1
        session.run(
            f"b {behind}", "c", "si", "x/2xw tile", "x/d shared:4", "x/f %rd4", "x/2xb %rd4+2",
            "lane 3",
            "x/u %rd4-12", "x/2g 0x10", "x/x %rd4+1", "x/9999999 0", "x/1025 0",
            "x/1x 1-", "x/2 local:0-8", "x/2 shared:4-8", "lane 32",
        )  # fmt: skip
    assert session.after("x/2xw tile") == ["shared 0x0:  0xa5a5a5a5  0x27"]
    assert session.after("x/d shared:4") == ["shared 0x4:  39"]
    assert session.after("x/f %rd4")[0].endswith(":  3")
    assert session.after("x/2xb %rd4+2")[0].endswith(":  0x40  0x40")
    if schedule != "adversarial":  # whose lots choose the lanes that have written
        first, same = session.after("x/f %rd4")[0], session.after("x/u %rd4-12")[0]
        assert same == first.replace(":  3", f":  {0x40400000}")
    assert session.after("x/2g 0x10") == ["address 0x10 is not in generic memory"]
    assert session.after("x/x %rd4+1")[0].endswith("is not aligned")
    assert "is not a count" in session.after("x/9999999 0")[0]
    for space in ("x/2 local:0-8", "x/2 shared:4-8"):
        assert session.after(space)[0].endswith(f"not in {space[4:].split(':')[0]} memory")
    assert session.after("x/1025 0") == ["1025 units are not between 1 and 1024"]
    assert "is no place" in session.after("x/1x 1-")[0]
    assert session.after("lane 32") == ["lane 32 is not between 0 and 31"]


def test_another_warp_is_followed(split: Session) -> None:
    """Its next instruction is the next stop, when its turn comes."""
    split.run("warp 1", "si", "warp 2", "si 2", "warp 0")
    assert split.after("si")[:2] == [
        "block 0 warp 1  ########........................  8 lanes",
        "=> k.ptx:11  mov.u32 %r1, %tid.x;",
    ]
    assert split.after("warp 2") == ["the block has 2 warps, from 0"]
    assert split.after("warp 0") == ["warp 0 has ended"]


def test_wrong_commands(split: Session) -> None:
    """One sentence each, and the session goes on."""
    split.run(
        "jump", "s t", "b NOWHERE", "b 999", "b x.cu:3", "d 7", "stepi x", "info", "# no", "l"
    )
    assert split.after("jump")[0].startswith("'jump' is no command: stepi, ")
    assert split.after("b NOWHERE") == ["'NOWHERE' is no label and no line; labels: LOW, BOTH"]
    assert split.after("b 999") == ["no instruction of split is at 999"]
    assert split.after("b x.cu:3") == ["no instruction of split is at x.cu:3"]
    assert split.after("d 7") == ["there is no breakpoint 7"]
    assert split.after("stepi x") == ["stepi takes a number, not 'x'"]
    assert split.after("info")[0].startswith("info '' is no command: registers")
    assert split.after("# no") == []
    assert "=>     2   y" not in split.after("l")
    assert [line for line in split.after("l") if line.startswith("=>")] == [
        "=>     3   y=3;",
        "=>    15  mov.u32 %r2, 3; // not lane 0 to 7",
    ]


def test_a_fault_can_be_looked_at(machine: Machine) -> None:
    """The launch has ended, its registers are there."""
    session = Session(machine, SPLIT.replace("[%rd3]", "[%rd2]"), 40)
    with pytest.raises(LaunchFailed) as raised:
        session.run("c")
    session.script = iter(["p %rd2", "si"])
    with pytest.raises(Quit):
        session.console.failed(str(raised.value))
    start = session.printed.index(str(raised.value))
    assert session.printed[start + 1 : start + 4] == [
        "block 0 warp 0  ################################  32 lanes",
        "=> k.ptx:24  st.global.u32 [%rd2], %r2;",
        "   /build/of/somebody/split.cu:3  y=3;",
    ]
    assert session.after("p %rd2")[1].split()[1] == "0x0"
    assert session.after("si") == ["the launch has ended; quit leaves"]


def test_the_deadlock_of_a_lock() -> None:
    """Under `ipdom` the stack shows the lane that holds the lock and cannot run."""
    with Machine(threads=1, memory=1 << 20, schedule="ipdom") as machine:
        session = Session(machine, whole(HEAD, LOCK), 32, arrays=2)
        with pytest.raises(LaunchFailed, match="SIMT deadlock"):
            session.run("b SPIN", "c", "c", "mask", "d", "c")
    assert session.after("mask")[0].startswith("-" + "#" * 31)
    assert session.after("mask")[2].endswith("fffffffe")
    assert session.after("mask")[-1].endswith("ffffffff")


def test_ctrl_c_stops_at_the_next_instruction(split: Session) -> None:
    """Though nobody stepped there."""
    at = [3]

    def ask(prompt: str) -> str | None:
        at[0] -= 1
        split.console.stepper.interrupted = at[0] == 2
        return "c" if at[0] == 2 else None

    split.console.ask = ask
    assert not split.run()
    assert split.printed[-2] == "=> k.ptx:12  setp.lt.u32 %p1, %r1, 8;"
