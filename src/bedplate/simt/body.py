"""What stands between a function's braces: instructions, labels, declarations, lines.

The words, the scopes and what is declared belong to the `Parser`, which goes on behind
the closing brace.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.simt.module import Instruction, Name, SourceLine
from bedplate.simt.operands import instruction
from bedplate.simt.scalar import SCALARS
from bedplate.simt.scope import SPACES, Scope

if TYPE_CHECKING:
    from bedplate.simt.module import Variable
    from bedplate.simt.parser import Parser

DEEPEST = 64
"""Nested braces; compilers nest two or three deep."""
MOST_REGISTERS = 1 << 20
"""Registers that one declaration may make."""


class Body:
    """Reads what stands between a function's braces."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}

    def read(self) -> None:
        """Up to and with the closing brace."""
        parser = self.parser
        parser.expect("{")
        depth = 1
        while depth:
            if parser.word.kind == "end":
                parser.fail("a function that does not end")
            if parser.accept("{"):
                depth += 1
                if depth > DEEPEST:
                    parser.fail(f"braces are nested deeper than {DEEPEST}")
                parser.scopes.append(Scope())
            elif parser.accept("}"):
                depth -= 1
                if depth:
                    parser.scopes.pop()
            elif parser.accept("."):
                self._directive()
            elif not self._label():
                self.instructions.append(instruction(parser, len(self.instructions), parser.source))
        for made in self.instructions:
            self._known_target(made)

    def _known_target(self, made: Instruction) -> None:
        target = None if made.opcode == "call" else made.operands.get("target")
        if isinstance(target, Name) and target.text not in self.labels:
            self.parser.fail(f"the label {target.text} is not in this function", made.place)

    def _label(self) -> bool:
        """Take `name:`."""
        parser = self.parser
        if parser.word.kind != "name" or parser.ahead.text != ":":
            return False
        word = parser.take()
        parser.take()
        if word.text in self.labels:
            parser.fail(f"the label {word.text} is defined twice", word.place)
        self.labels[word.text] = len(self.instructions)
        return True

    def _directive(self) -> None:
        parser = self.parser
        word = parser.expect_name("a directive")
        if word.text == "reg":
            self._registers()
        elif word.text in SPACES:
            for variable in parser.read_variables(word.text, False):
                made = variable
                unique = f"{parser.name_of_function}@{variable.name}@{len(parser.variables)}"
                if word.text == "param":
                    # One name serves each call of a function: their places must differ.
                    made = replace(variable, name=unique, space="local")
                elif self._is_taken(variable):
                    made = replace(variable, name=unique)
                parser.scopes[-1].variables[variable.name] = made
                parser.variables.append(made)
                parser.names.add(made.name)
        elif word.text == "loc":
            self._location()
        elif word.text == "pragma":
            parser.past_semicolon()
        else:
            parser.fail(f"the directive .{word.text} is not supported", word.place)

    def _is_taken(self, variable: Variable) -> bool:
        """Whether the name is another variable's, in a scope around or of its own.

        Functions become a part of their callers, and what lies in global or constant memory
        is there once for all kernels; shared and local memory are each kernel's own.
        """
        parser = self.parser
        if not parser.in_entry or variable.space in ("global", "const"):
            return not parser.in_entry or variable.name in parser.names
        return variable.name in parser.scopes[0].variables or any(
            variable.name == known.name for known in parser.variables
        )

    def _location(self) -> None:
        parser = self.parser
        number, line, column = (parser.expect_integer() for _ in range(3))
        # Of what was inlined from another file, such as a header of the tool chain, reports
        # show the place that it was inlined at.
        while parser.accept(","):
            hint = parser.expect_name("a hint")
            if hint.text == "function_name":
                parser.expect_name("a label")
                if parser.accept("+"):
                    parser.expect_integer()
            elif hint.text == "inlined_at":
                outer = [parser.expect_integer() for _ in range(3)]
                if outer[0] != number and outer[1]:
                    number, line, column = outer
            else:
                parser.fail(f"{hint.text} is not known in .loc", hint.place)
        if line:  # line 0 is "no line": the last known one stays
            parser.source = SourceLine(parser.files.get(number, str(number)), line, column)

    def _registers(self) -> None:
        parser = self.parser
        parser.expect(".")
        word = parser.expect_name("a type")
        if word.text not in SCALARS or word.text == "b8":
            parser.fail(f".{word.text} is not a register's type", word.place)
        scalar, scope = SCALARS[word.text], parser.scopes[-1]
        while True:
            name = parser.expect_name("a register's name")
            if parser.accept("<"):
                count = parser.expect_integer()
                parser.expect(">")
                if not 0 < count <= MOST_REGISTERS:
                    parser.fail(f"{count} registers {name.text} are not possible", name.place)
                scope.ranges[name.text] = (count, scalar)
            else:
                parser.declare(scope, name.text, scalar)
            if not parser.accept(","):
                break
        parser.expect(";")
