"""The commands of `simt run --step`, named as in gdb.

A console reads a line, does what it says and prints; it knows no terminal. An empty line
is the last command again, an unambiguous beginning of a name is the name. What cannot be
done is one sentence and no stop of the session; the end of the input is `quit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bedplate.simt import peek, printing
from bedplate.simt.interpreter.engine import WarpState
from bedplate.simt.machine import Kernel
from bedplate.simt.module import Instruction
from bedplate.simt.peek import Told
from bedplate.simt.sources import Sources
from bedplate.simt.stepper import Quit, Stepper, Stop

PROMPT = "(simt) "
HELP = """\
stepi [N]         run N instructions of this warp (si)
step              run to another line of the source (s)
continue          run to the next breakpoint (c)
break PLACE       stop at a line of the PTX, FILE:LINE, or a label (b)
delete [N]        remove a breakpoint, or all
print[/F] %R      a register in 32 lanes; F of x d u f (p)
x/NFU PLACE       memory: N units of b h w g; PLACE a number, a register of the lane that
                  is looked at, a variable, shared:A or local:A, each with +N
lane N            look at another lane
mask              which lanes run, wait and have ended, and where (info mask)
info registers    every register that was written
info warps        where the warps of this block are
info breakpoints  with how often they were hit
warp N            step another warp of this block
backtrace         where this warp is (bt, where)
list              the lines around (l)
help, quit        an empty line does the last command again"""
AROUND = 4
"""Lines before and behind that `list` shows."""


@dataclass
class Console:
    """A session: `ask` gives a line or None at the end, `say` prints one."""

    kernel: Kernel
    sources: Sources
    ask: Callable[[str], str | None]
    say: Callable[[str], None]
    stepper: Stepper = field(init=False)
    lane: int | None = None
    """Whose registers and local memory are meant; None is the lowest that runs."""
    _again: str = ""
    _printed: int = 0

    def __post_init__(self) -> None:
        self.stepper = Stepper(self.stopped)

    def stopped(self, stop: Stop) -> None:
        """Say where it is, then do commands until one goes on; raises `Quit`."""
        self.told(stop.warp.grid.printed)
        if stop.switched:
            self.say(f"[now block {stop.warp.block.number}, warp {stop.warp.index}]")
        if stop.breakpoint is not None:
            self.say(f"breakpoint {stop.breakpoint}")
        self._where(stop)
        self.talk(stop, ended=False)

    def told(self, calls: Sequence[printing.Call]) -> None:
        """Say what the kernel's `printf` said since it was said last."""
        fresh = printing.text(calls[self._printed :], self.kernel.machine.memory)
        self._printed = len(calls)
        if fresh:
            self.say(fresh.removesuffix("\n"))

    def failed(self, sentence: str) -> None:
        """The launch ended by a fault: what there is can be looked at."""
        self.say(sentence)
        stop = self.stepper.fault()
        if stop is not None:
            self._where(stop)
            self.talk(stop, ended=True)

    def talk(self, stop: Stop, *, ended: bool) -> None:
        """Do commands until one goes on; raises `Quit`."""
        while True:
            line = self.ask(PROMPT)
            if line is None:
                raise Quit
            comment = line.lstrip().startswith("#")
            line = line.partition("#")[0].strip() or self._again
            if comment or not line:
                continue
            self._again = line
            try:
                if self._command(stop, line):
                    if not ended:
                        return
                    self.say("the launch has ended; quit leaves")
            except ValueError as wrong:
                self.say(str(wrong))

    def _command(self, stop: Stop, line: str) -> bool:
        """Do one; True when the kernel is to go on. Raises `ValueError` with a sentence."""
        word, _, rest = line.partition(" ")
        name, _, form = word.partition("/")
        rest = rest.strip()
        name = _full(name)
        if name == "quit":
            raise Quit
        if name in ("stepi", "step", "continue"):
            self._go(name, rest)
            return True
        if name == "print":
            register = peek.register(self.kernel.function, stop.warp, rest)
            self._say_all(peek.values(stop, register, form))
        elif name == "x":
            lane = peek.lane_of(stop, self.lane)
            self._say_all(peek.memory(self.kernel, stop, lane, form, rest))
        elif name == "info":
            self._info(stop, rest)
        else:
            self._other(stop, name, rest)
        return False

    def _go(self, name: str, rest: str) -> None:
        if name == "continue":
            self.stepper.go()
        elif name == "step":
            self.stepper.advance()
        else:
            self.stepper.step(_number(rest or "1", "stepi"))

    def _info(self, stop: Stop, what: str) -> None:
        subject = _full(what, INFO, "info ")
        if subject == "registers":
            key = stop.warp.block.number, stop.warp.index
            written = self.stepper.written.get(key, {})
            self._say_all(peek.registers(stop, [written[index] for index in sorted(written)]))
        elif subject == "mask":
            self._say_all(peek.mask(stop))
        elif subject == "warps":
            self._say_all(peek.warps(stop))
        else:
            for number, point in self.stepper.breakpoints.items():
                self.say(f"{number}  {point.name}  hit {point.hits} times")
            if not self.stepper.breakpoints:
                self.say("no breakpoints")

    def _other(self, stop: Stop, name: str, rest: str) -> None:
        if name == "break":
            number = self.stepper.add(rest, self.kernel.function)
            self.say(f"breakpoint {number} at {rest}")
        elif name == "delete":
            chosen = [_number(rest, "delete")] if rest else list(self.stepper.breakpoints)
            for number in chosen:
                if self.stepper.breakpoints.pop(number, None) is None:
                    raise ValueError(f"there is no breakpoint {number}")
        elif name == "lane":
            lane = _number(rest, "lane")
            if lane > 31:
                raise ValueError(f"lane {lane} is not between 0 and 31")
            self.lane = lane
        elif name == "warp":
            self.stepper.follow(self._warp(stop, _number(rest, "warp")))
            self.say(f"following warp {rest} from its next instruction")
        elif name == "mask":
            self._say_all(peek.mask(stop))
        elif name == "list":
            self._list(stop)
        elif name == "help":
            self.say(HELP)
        else:
            self._frame(stop)

    def _warp(self, stop: Stop, number: int) -> WarpState:
        warps = stop.warp.block.warps
        if number >= len(warps):
            raise ValueError(f"the block has {len(warps)} warps, from 0")
        if not warps[number].live:
            raise ValueError(f"warp {number} has ended")
        return warps[number]

    # Places.

    def _where(self, stop: Stop) -> None:
        made, warp = stop.made, stop.warp
        self.say(
            f"block {warp.block.number} warp {warp.index}  {peek.lanes(stop)}  "
            f"{stop.mask.bit_count()} lanes"
        )
        self.say(f"=> {self.sources.ptx}:{made.place.line}  {self.sources.statement(made)}")
        source = self.sources.source(made)
        if source:
            self.say(f"   {source}")

    def _frame(self, stop: Stop) -> None:
        made, warp = stop.made, stop.warp
        source = self.sources.source(made)
        self.say(
            f"#0  {self.kernel.name} at {self.sources.ptx}:{made.place.line}"
            + (f" ({source})" if source else "")
        )
        self.say(
            f"    block {warp.block.ctaid}, warp {warp.index}, {self.stepper.issues} "
            f"instructions of all warps so far"
        )

    def _list(self, stop: Stop) -> None:
        for file, line in self._listed(stop.made):
            for number in range(max(line - AROUND, 1), line + AROUND + 1):
                text = self.sources.line(file, number)
                if text is not None:
                    self.say(f"{'=>' if number == line else '  '} {number:>5}  {text}")

    def _listed(self, made: Instruction) -> list[tuple[str, int]]:
        places = [(self.sources.ptx, made.place.line)]
        if made.source is not None and made.source.file in self.sources.texts:
            places.insert(0, (made.source.file, made.source.line))
        return places

    def _say_all(self, lines: Told) -> None:
        for line in lines:
            self.say(line)


COMMANDS = (
    *("stepi", "step", "continue", "break", "delete", "print", "x", "lane", "mask", "info"),
    *("warp", "backtrace", "where", "list", "help", "quit"),
)
ALIASES = dict(
    (
        *(("si", "stepi"), ("s", "step"), ("c", "continue"), ("b", "break"), ("d", "delete")),
        *(("p", "print"), ("i", "info"), ("bt", "backtrace"), ("w", "where"), ("l", "list")),
        *(("h", "help"), ("q", "quit")),
    )
)
INFO = ("registers", "mask", "warps", "breakpoints")


def _full(word: str, names: tuple[str, ...] = COMMANDS, before: str = "") -> str:
    """The name that a word means."""
    if names is COMMANDS and word in ALIASES:
        return ALIASES[word]
    found = [word] if word in names else [n for n in names if word and n.startswith(word)]
    if len(found) == 1:
        return found[0]
    choice = ", ".join(found or names)
    raise ValueError(
        f"{before}{word!r} is {'several commands' if found else 'no command'}: {choice}"
    )


def _number(text: str, command: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ValueError(f"{command} takes a number, not {text!r}")
    return int(text)
