"""Calls: read as instructions, then replaced by the bodies of the functions they name.

A `.param` variable of a function is local memory of its caller. A body that is put in
place of a call gets registers and labels of its own; its parameters become the variables
of the call, and a return goes behind it. So neither engine knows functions, and a call
costs what its instructions cost. Recursion has no end here and is refused, as are calls
through registers and functions without a body. A failed `assert` traps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from bedplate.simt.errors import PtxUnsupported
from bedplate.simt.module import (
    Address,
    Function,
    Guard,
    Instruction,
    Name,
    Negated,
    Operand,
    Place,
    Register,
    SourceLine,
    Value,
    Variable,
    VariableAddress,
    Vector,
)
from bedplate.simt.scalar import SCALARS
from bedplate.simt.signature import table
from bedplate.simt.signature.base import Form
from bedplate.simt.signature.printing import PRINT

if TYPE_CHECKING:
    from bedplate.simt.parser import Parser

MOST_INSTRUCTIONS = 1 << 20
"""Of a kernel with all that it calls; the largest in common use have some ten thousand."""
ASSERT = "__assertfail"
"""What compilers call for `assert`."""
PRINTF = "vprintf"
"""What they call for `printf`; its second argument points to the values, wherever they are."""


def read(
    parser: Parser,
    number: int,
    place: Place,
    guard: Guard | None,
    source: SourceLine | None,
    name: str,
) -> Instruction:
    """`call (results), function, (arguments);`, after its name."""
    form, slots = table.find(name)[0]
    results: tuple[VariableAddress, ...] = ()
    if parser.at("("):
        results = _listed(parser)
        parser.expect(",")
    word = parser.expect_name("a function")
    if parser.register(word.text) is not None:
        refuse(parser.name, place, f"a call through the register {word.text} is not supported")
    arguments = _listed(parser) if parser.accept(",") else ()
    parser.expect(";")
    operands: dict[str, Operand | None] = {
        "target": Name(word.text),
        "results": Vector(results),
        "arguments": Vector(arguments),
    }
    return Instruction(number, form, slots, {}, operands, guard, place, source, name)


def _listed(parser: Parser) -> tuple[VariableAddress, ...]:
    parser.expect("(")
    found: list[VariableAddress] = []
    while not parser.accept(")"):
        word = parser.expect_name("a .param variable")
        variable = parser.variable(word.text)
        if variable is None:
            parser.fail(f"{word.text} is not a .param variable of this function", word.place)
        found.append(VariableAddress(variable))
        if not parser.at(")"):
            parser.expect(",")
    return tuple(found)


def refuse(name: str, place: Place, what: str) -> NoReturn:
    """Raise `PtxUnsupported` for a call."""
    raise PtxUnsupported(
        f"{name}:{place.line}:{place.column}: {what}", remedy="let the compiler inline it"
    )


class Inliner:
    """Puts bodies in place of calls, for the functions of one text."""

    def __init__(self, name: str, functions: Mapping[str, Function]) -> None:
        self.name = name
        self.functions = functions
        self._done: dict[str, Function] = {}
        self._open: list[str] = []

    def expanded(self, function: Function) -> Function:
        """The function without calls."""
        if not any(made.opcode == "call" for made in function.instructions):
            return function
        if function.name not in self._done:
            self._open.append(function.name)
            self._done[function.name] = self._expand(function)
            self._open.pop()
        return self._done[function.name]

    def _expand(self, function: Function) -> Function:
        code: list[Instruction] = []
        labels: dict[str, int] = {}
        at: dict[int, list[str]] = {}
        for label, number in function.labels.items():
            at.setdefault(number, []).append(label)
        registers, variables = list(function.registers), list(function.variables)
        for made in function.instructions:
            labels |= dict.fromkeys(at.get(made.number, ()), len(code))
            if made.opcode != "call":
                code.append(replace(made, number=len(code)))
                continue
            callee = self._callee(made)
            if callee is None and _target(made) == PRINTF:
                code += _printing(made, len(code), registers)
                continue
            if callee is None:
                trap, slots = table.find("trap")[0]
                code.append(replace(made, number=len(code), form=trap, slots=slots, operands={}))
                continue
            if len(code) + len(callee.instructions) > MOST_INSTRUCTIONS:
                refuse(self.name, made.place, f"{function.name} has too many instructions")
            self._place(made, callee, code, labels, len(registers))
            start = len(registers)
            registers += [replace(r, index=start + r.index) for r in callee.registers]
            known = {variable.name for variable in variables}
            variables += [v for v in callee.variables if v.name not in known]
        end = len(function.instructions)
        labels |= dict.fromkeys(at.get(end, ()), len(code))
        return replace(
            function, instructions=code, labels=labels, registers=registers, variables=variables
        )

    def _callee(self, made: Instruction) -> Function | None:
        """The function that is called, None for a failed assertion."""
        target = _target(made)
        if target == ASSERT:
            return None
        if target == PRINTF and target not in self.functions:
            self._check(made, target, "arguments", [8, 8])
            self._check(made, target, "results", [4])
            return None
        if target in self._open:
            refuse(self.name, made.place, f"{target} calls itself, which is not supported")
        callee = self.functions.get(target)
        if callee is None:
            refuse(self.name, made.place, f"the function {target!r} has no body in this text")
        for formal, name in ((callee.parameters, "arguments"), (callee.results, "results")):
            self._check(made, target, name, [variable.size for variable in formal])
        return self.expanded(callee)

    def _check(self, made: Instruction, target: str, name: str, sizes: Sequence[int]) -> None:
        if [variable.size for variable in _variables(made, name)] != sizes:
            refuse(self.name, made.place, f"the {name} are not those of {target}")

    def _place(
        self,
        call: Instruction,
        callee: Function,
        code: list[Instruction],
        labels: dict[str, int],
        start: int,
    ) -> None:
        """Add the body of a call to `code`."""
        prefix = f"{callee.name}@{len(code)}@"
        formal = [*callee.parameters, *callee.results]
        given = [*_variables(call, "arguments"), *_variables(call, "results")]
        body = _Body(prefix, start, {v.name: g for v, g in zip(formal, given, strict=True)})
        if call.guard is not None:
            around = Guard(call.guard.register, not call.guard.negated)
            code.append(_branch(call, len(code), prefix, around))
        first = len(code)
        for made in callee.instructions:
            if made.opcode == "ret":
                code.append(_branch(made, len(code), prefix, body.guard(made.guard)))
            else:
                code.append(body.instruction(made, len(code)))
        labels |= {prefix + label: first + number for label, number in callee.labels.items()}
        labels[prefix] = len(code)


def _target(call: Instruction) -> str:
    target = call.operands["target"]
    assert isinstance(target, Name)
    return target.text


def _printing(call: Instruction, number: int, registers: list[Register]) -> list[Instruction]:
    """A `printf`: its two arguments, the call, and its result, in registers of their own."""
    wide, word = SCALARS["b64"], SCALARS["b32"]
    format_, values, result = (
        Register(f"%printf{len(registers) + place}", scalar, len(registers) + place)
        for place, scalar in enumerate((wide, wide, word))
    )
    registers += [format_, values, result]
    first, second = _variables(call, "arguments")
    (back,) = _variables(call, "results")
    (load, loads), (store, stores) = (table.find(n)[0] for n in ("ld.local.b64", "st.local.b32"))

    def made(place: int, form: Form, slots: Mapping[str, str], **operands: Operand) -> Instruction:
        types = {slot: SCALARS[slots[slot]] for slot in ("T",) if slot in slots}
        for part in (*form.outputs, *form.inputs):
            types[part.name] = types["T"] if part.type == "T" else SCALARS[part.type]
        return replace(
            call, number=number + place, form=form, slots=slots, types=types, operands=operands
        )

    return [
        made(0, load, loads, d=format_, m=Address(VariableAddress(first))),
        made(1, load, loads, d=values, m=Address(VariableAddress(second))),
        made(2, PRINT, {}, d=result, a=format_, b=values),
        made(3, store, stores, m=Address(VariableAddress(back)), a=result),
    ]


def _variables(call: Instruction, name: str) -> list[Variable]:
    operand = call.operands[name]
    assert isinstance(operand, Vector)
    return [v.variable for v in operand.elements if isinstance(v, VariableAddress)]


def _branch(made: Instruction, number: int, label: str, guard: Guard | None) -> Instruction:
    form, slots = table.find("bra")[0]
    operands: dict[str, Operand | None] = {"target": Name(label)}
    return replace(
        made, number=number, form=form, slots=slots, types={}, operands=operands, guard=guard
    )


class _Body:
    """The names of a body, changed for one call."""

    def __init__(self, prefix: str, start: int, formal: Mapping[str, Variable]) -> None:
        self.prefix, self.start, self.formal = prefix, start, formal

    def instruction(self, made: Instruction, number: int) -> Instruction:
        operands = {
            name: None if operand is None else self._operand(operand)
            for name, operand in made.operands.items()
        }
        return replace(made, number=number, operands=operands, guard=self.guard(made.guard))

    def guard(self, guard: Guard | None) -> Guard | None:
        return None if guard is None else Guard(self._register(guard.register), guard.negated)

    def _register(self, register: Register) -> Register:
        return Register(register.name, register.type, self.start + register.index)

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Name):
            return Name(self.prefix + operand.text)
        if isinstance(operand, Vector):
            return Vector(tuple(None if v is None else self._value(v) for v in operand.elements))
        if isinstance(operand, Address):
            base = self._value(operand.base)
            assert not isinstance(base, Negated)
            return Address(base, operand.offset)  # type: ignore[arg-type]
        return self._value(operand)

    def _value(self, value: Value) -> Value:
        if isinstance(value, Register):
            return self._register(value)
        if isinstance(value, Negated):
            return Negated(self._register(value.register))
        if isinstance(value, VariableAddress) and value.variable.name in self.formal:
            return VariableAddress(self.formal[value.variable.name], value.offset)
        return value


def expanded(name: str, functions: Mapping[str, Function]) -> dict[str, Function]:
    """All functions of a text, kernels without calls."""
    inliner = Inliner(name, functions)
    return {
        key: inliner.expanded(function) if function.entry else function
        for key, function in functions.items()
    }


__all__: Sequence[str] = ["Inliner", "expanded", "read"]
