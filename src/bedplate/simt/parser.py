"""PTX text into a `Module`: directives, scopes and functions.

Recursive descent over the words of `lexer`; instructions are `operands`' part. Nothing
is skipped that could change a result: what is passed over are `.pragma`, debug sections
and the hints of `.loc`, all else is understood or refused with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

from bedplate.simt import call
from bedplate.simt.body import Body
from bedplate.simt.errors import PtxInvalid
from bedplate.simt.lexer import Word, refuse, words
from bedplate.simt.literal import float_bits, integer, integer_bits
from bedplate.simt.module import (
    Function,
    Module,
    Place,
    Register,
    SourceLine,
    Variable,
)
from bedplate.simt.scalar import SCALARS, Scalar
from bedplate.simt.scope import SPACES, Scope

LARGEST_VARIABLE = 1 << 40
LARGEST_PARAMETER = 32764
"""Bytes of all parameters of a kernel, since PTX 8.1."""
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"', re.MULTILINE)
LINKING = ("visible", "extern", "weak", "common")
LIMITS = ("maxntid", "reqntid", "minnctapersm", "maxnreg", "maxnctapersm", "noreturn")


class Parser:
    """Reads one text; `module()` does all of it."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._words: Iterator[Word] = words(text, name)
        self.word = next(self._words)
        self.ahead = self.word if self.word.kind == "end" else next(self._words)
        self._later: list[Word] = []
        self.scopes: list[Scope] = [Scope()]
        # Compilers write .file after the functions whose lines name it.
        self.files = {int(number): file for number, file in _FILE.findall(text)}
        self.source: SourceLine | None = None
        self.registers: list[Register] = []
        self.variables: list[Variable] = []
        self.in_entry = False
        # Of all variables of the text, as they are told apart.
        self.names: set[str] = set()
        self.functions: dict[str, Function] = {}
        self.name_of_function = ""

    # Words.

    def take(self) -> Word:
        """The current word; the next becomes current."""
        word = self.word
        self.word = self.ahead
        if self.ahead.kind != "end":
            self.ahead = self._later.pop(0) if self._later else next(self._words)
        return word

    def following(self, count: int) -> list[Word]:
        """The next words without taking them, the current one first; fewer at the end."""
        while len(self._later) < count - 2 and (self._later or [self.ahead])[-1].kind != "end":
            self._later.append(next(self._words))
        return [self.word, self.ahead, *self._later][:count]

    def at(self, text: str) -> bool:
        """Whether the current word is the mark or name `text`."""
        return self.word.text == text and self.word.kind in ("mark", "name")

    def accept(self, text: str) -> bool:
        """Take the current word if it is `text`."""
        if self.at(text):
            self.take()
            return True
        return False

    def expect(self, text: str) -> Word:
        """Take `text`, or refuse what stands there."""
        if not self.at(text):
            self.fail(f"expected {text!r}, not {self.word.text!r}")
        return self.take()

    def expect_name(self, what: str) -> Word:
        """Take a name."""
        if self.word.kind != "name":
            self.fail(f"expected {what}, not {self.word.text!r}")
        return self.take()

    def expect_integer(self) -> int:
        """Take an integer, with its sign."""
        negative = self.accept("-")
        if self.word.kind != "integer":
            self.fail(f"expected an integer, not {self.word.text!r}")
        value = integer(self.take().text)
        return -value if negative else value

    def fail(self, what: str, place: Place | None = None) -> NoReturn:
        """Refuse the text at the current word, or at `place`."""
        refuse(self.name, place or self.word.place, what)

    # The module.

    def module(self) -> Module:
        """All of the text."""
        if not (self.at(".") and self._directive() == "version"):
            self.fail("a PTX text begins with .version", Place(1, 1))
        version = self._version()
        target = ""
        while self.word.kind != "end":
            self.expect(".")
            word = self.expect_name("a directive")
            if word.text == "target":
                target = self._target()
            elif word.text == "address_size":
                if (size := self.expect_integer()) != 64:
                    self.fail(f".address_size {size} is not supported, only 64", word.place)
            elif word.text == "file":
                self._file()
            elif word.text == "section":
                self._section()
            elif word.text == "pragma":
                self.past_semicolon()
            elif word.text in (*LINKING, *SPACES, "entry", "func"):
                self._definition(word)
            else:
                self.fail(f"the directive .{word.text} is not supported", word.place)
        if not target:
            self.fail(".target is missing")
        variables = self.scopes[0].variables
        functions = call.expanded(self.name, self.functions)
        return Module(self.name, version, target, variables, functions, self.files)

    def _directive(self) -> str:
        self.expect(".")
        return self.expect_name("a directive").text

    def _version(self) -> tuple[int, int]:
        place, text = self.word.place, self.take().text
        major, dot, minor = text.partition(".")
        if not (dot and major.isdecimal() and minor.isdecimal()):
            self.fail(f".version {text} is not of the form 9.0", place)
        return int(major), int(minor)

    def _target(self) -> str:
        target = self.expect_name("a target").text
        if not re.fullmatch(r"sm_\d+[af]?", target):
            self.fail(f".target {target} is not of the form sm_90")
        while self.accept(","):
            option = self.expect_name("a target's option")
            if option.text not in ("debug", "texmode_independent", "texmode_unified"):
                self.fail(f"the target's option {option.text} is not supported", option.place)
        return target

    def _file(self) -> None:
        self.expect_integer()
        if self.take().kind != "string":
            self.fail("a .file without its name")
        while self.accept(","):
            self.expect_integer()

    def _section(self) -> None:
        while not self.at("{") and self.word.kind != "end":
            self.take()
        self.expect("{")
        while not self.accept("}"):
            if self.take().kind == "end":
                self.fail("a section that does not end")

    def past_semicolon(self) -> None:
        """Pass over what stands before the next semicolon, and it."""
        while not self.accept(";"):
            if self.take().kind == "end":
                self.fail("expected ';'")

    def _definition(self, word: Word) -> None:
        external = False
        while word.text in LINKING:
            external |= word.text == "extern"
            self.expect(".")
            word = self.expect_name("a directive")
        if word.text in ("entry", "func"):
            self._function(word, external)
        elif word.text in SPACES:
            for variable in self.read_variables(word.text, external):
                self.scopes[0].variables[variable.name] = variable
                self.names.add(variable.name)
        else:
            self.fail(f".{word.text} cannot stand there", word.place)

    # Variables.

    def read_variables(self, space: str, external: bool) -> Iterator[Variable]:
        """The variables of one declaration, after its space."""
        align, scalar, lanes = 0, None, 1
        while self.accept("."):
            word = self.expect_name("a type")
            if word.text == "align":
                align = self.expect_integer()
            elif word.text in ("v2", "v4"):
                lanes = int(word.text[1])
            elif word.text in SCALARS:
                scalar = SCALARS[word.text]
            else:
                self.fail(f".{word.text} is not a type", word.place)
        if scalar is None:
            self.fail("a variable without a type")
        while True:
            name = self.expect_name("a variable's name").text
            count, unsized = lanes, False
            while self.accept("["):
                if self.at("]"):
                    unsized = True
                else:
                    count = self._times(name, count, LARGEST_VARIABLE)
                self.expect("]")
            initial = self._initial(scalar) if self.accept("=") else None
            if unsized:
                count = len(initial) // scalar.bytes if initial else 0
            size = count * max(scalar.bits // 8, 1)
            if not 0 <= size < LARGEST_VARIABLE:
                self.fail(f"the variable {name} has {size} bytes")
            yield Variable(
                name,
                space,
                scalar,
                size,
                align or lanes * max(scalar.bits // 8, 1),
                initial,
                external,
            )
            if not self.accept(","):
                break
        self.expect(";")

    def _times(self, name: str, count: int, most: int) -> int:
        """One more dimension of an array; refused before numbers grow without end."""
        count *= self.expect_integer()
        if not 0 <= count <= most:
            self.fail(f"the array {name} has more than {most} bytes, or less than none")
        return count

    def _initial(self, scalar: Scalar) -> bytes:
        """The bytes of `= {1, 2}` or `= 1`."""
        values: list[bytes] = []
        depth = 0
        while True:
            if self.accept("{"):
                depth += 1
                continue
            values.append(self._constant(scalar))
            while depth and self.accept("}"):
                depth -= 1
            if not depth:
                return b"".join(values)
            self.expect(",")

    def _constant(self, scalar: Scalar) -> bytes:
        place = self.word.place
        if self.word.kind == "name":
            self.fail(f"an address of {self.word.text} in an initial value is not supported")
        try:
            if self.word.kind == "float":
                bits = float_bits(self.take().text, scalar)
            else:
                bits = integer_bits(self.expect_integer(), scalar)
        except ValueError as cause:
            self.fail(str(cause), place)
        return bits.to_bytes(scalar.bytes, "little")

    # Functions.

    def _function(self, word: Word, external: bool) -> None:
        entry = self.in_entry = word.text == "entry"
        self.scopes.append(Scope())
        self.registers, self.variables, self.source = [], [], None
        results: list[Variable] = []
        if not entry and self.at("("):
            results = self._parameters("local")
        place = self.word.place
        name = self.name_of_function = self.expect_name("a function's name").text
        space = "param" if entry else "local"
        parameters = self._parameters(space) if self.at("(") else []
        limits: dict[str, tuple[int, ...]] = {}
        while self.accept("."):
            limit = self.expect_name("a directive")
            if limit.text == "pragma":
                self.past_semicolon()
                continue
            if limit.text not in LIMITS:
                self.fail(f"the directive .{limit.text} is not supported", limit.place)
            values = []
            while self.word.kind == "integer":
                values.append(self.expect_integer())
                self.accept(",")
            limits[limit.text] = tuple(values)
        if self.accept(";") or external:
            self.scopes.pop()
            return
        if name in self.functions:
            self.fail(f"{name} is defined twice", place)
        body = Body(self)
        body.read()
        self.scopes.pop()
        self.functions[name] = Function(
            name,
            entry,
            parameters,
            self.variables,
            self.registers,
            body.instructions,
            body.labels,
            limits,
            place,
            results,
        )

    def _parameters(self, space: str) -> list[Variable]:
        self.expect("(")
        found: list[Variable] = []
        while not self.accept(")"):
            self.expect(".")
            self.expect("param")
            found.append(replace(self._parameter(), space=space))
            self.scopes[-1].variables[found[-1].name] = found[-1]
            if not self.at(")"):
                self.expect(",")
        return found

    def _parameter(self) -> Variable:
        scalar, align = SCALARS["b32"], 0
        while self.accept("."):
            word = self.expect_name("a type")
            if word.text == "align":
                align = self.expect_integer()
            elif word.text == "ptr":
                while self.accept("."):
                    hint = self.expect_name("a pointer's space")
                    if hint.text == "align":
                        self.expect_integer()
            elif word.text in SCALARS:
                scalar = SCALARS[word.text]
            else:
                self.fail(f".{word.text} is not a type", word.place)
        name = self.expect_name("a parameter's name").text
        count = 1
        while self.accept("["):
            count = self._times(name, count, LARGEST_PARAMETER)
            self.expect("]")
        return Variable(name, "param", scalar, count * scalar.bytes, align or scalar.bytes)

    # Names.

    def register(self, name: str) -> Register | None:
        """The register of that name, from the innermost scope out."""
        for scope in reversed(self.scopes):
            if name in scope.registers:
                return scope.registers[name]
            stem = name.rstrip("0123456789")
            if stem != name and stem in scope.ranges:
                count, scalar = scope.ranges[stem]
                digits = name[len(stem) :]
                if int(digits) < count and (digits == "0" or digits[0] != "0"):
                    return self.declare(scope, name, scalar)
        return None

    def declare(self, scope: Scope, name: str, scalar: Scalar) -> Register:
        """A new register of the function."""
        made = Register(name, scalar, len(self.registers))
        self.registers.append(made)
        scope.registers[name] = made
        return made

    def carry(self) -> Register:
        """The carry flag, which each function has once and no text names."""
        name = "CC.CF"
        scope = self.scopes[1]
        return scope.registers.get(name) or self.declare(scope, name, SCALARS["pred"])

    def variable(self, name: str) -> Variable | None:
        """The variable of that name, from the innermost scope out."""
        for scope in reversed(self.scopes):
            if name in scope.variables:
                return scope.variables[name]
        return None


def parse(text: str, name: str = "<ptx>") -> Module:
    """The module that a PTX text says; raises `PtxInvalid` with file:line:column."""
    if "\0" in text[:4096]:
        raise PtxInvalid(f"{name} is binary, not PTX text", remedy="give the .ptx file")
    return Parser(text, name).module()
