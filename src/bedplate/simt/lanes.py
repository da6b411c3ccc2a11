"""Values of a warp in LLVM: `<32 x T>` vectors, `i32` masks, and what both need.

A value is a scalar when all lanes share it; operations of LLVM take either, so a lowering
is written once. Nothing here knows PTX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from bedplate.simt.scalar import LANES, Scalar

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
PTR = ir.PointerType()
MASK = ir.VectorType(I1, LANES)


def integer(bits: int) -> ir.Type:
    """The integer of that width."""
    return ir.IntType(bits)


def element(scalar: Scalar) -> ir.Type:
    """The LLVM type of one lane."""
    if scalar.kind == "float" and scalar.name in ("f16", "f32", "f64"):
        return {16: F16, 32: F32, 64: F64}[scalar.bits]
    return integer(scalar.bits)


def vector(of: ir.Type) -> ir.VectorType:
    """A warp of them."""
    return ir.VectorType(of, LANES)


def room(builder: ir.IRBuilder, size: int, align: int) -> Any:
    """Bytes on the stack, as a pointer without a type; llvmlite's own has one."""
    made = builder.alloca(ir.ArrayType(I8, size))
    made.align = align
    made.type = PTR
    return made


def is_vector(value: Any) -> bool:
    """Whether a value has lanes."""
    return isinstance(value.type, ir.VectorType)


def lane_type(value: Any) -> ir.Type:
    """The type of one lane of a value."""
    return value.type.element if is_vector(value) else value.type


def like(value: Any, constant: float | int) -> ir.Constant:
    """A constant of the type of `value`, in every lane."""
    if is_vector(value):
        return ir.Constant(value.type, [constant] * value.type.count)
    return ir.Constant(value.type, constant)


def retyped(value: Any, of: ir.Type) -> ir.Type:
    """`of`, with as many lanes as `value` has."""
    return ir.VectorType(of, value.type.count) if is_vector(value) else of


def splat(builder: ir.IRBuilder, value: Any, count: int = LANES) -> Any:
    """One value in every lane."""
    if isinstance(value, ir.Constant):
        return ir.Constant(ir.VectorType(value.type, count), [value.constant] * count)
    undefined = ir.Constant(ir.VectorType(value.type, count), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    zeros = ir.Constant(ir.VectorType(I32, count), [0] * count)
    return builder.shuffle_vector(first, undefined, zeros)


def shuffled(builder: ir.IRBuilder, value: Any, order: Sequence[int]) -> Any:
    """The lanes of `value` at the places `order`."""
    mask = ir.Constant(ir.VectorType(I32, len(order)), list(order))
    return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), mask)


def cast(builder: ir.IRBuilder, value: Any, of: ir.Type) -> Any:
    """The same bits as lanes of type `of`."""
    wanted = retyped(value, of)
    return value if value.type == wanted else builder.bitcast(value, wanted)


def resized(builder: ir.IRBuilder, value: Any, bits: int, *, signed: bool = False) -> Any:
    """An integer made wider or narrower."""
    have = lane_type(value).width
    wanted = retyped(value, integer(bits))
    if have == bits:
        return value
    if have > bits:
        return builder.trunc(value, wanted)
    return builder.sext(value, wanted) if signed else builder.zext(value, wanted)


def mask_bits(builder: ir.IRBuilder, value: Any) -> Any:
    """`<32 x i1>` as an `i32`."""
    return builder.bitcast(value, I32)


def mask_lanes(builder: ir.IRBuilder, value: Any) -> Any:
    """An `i32` as `<32 x i1>`."""
    return builder.bitcast(value, MASK)


def rarely(builder: ir.IRBuilder, condition: Any, value: Any, other: Callable[[], Any]) -> Any:
    """`value`, and what `other` makes of it behind a branch when `condition` holds in a lane."""
    if is_vector(condition):
        bits = builder.bitcast(condition, integer(condition.type.count))
        condition = builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))
    before = builder.block
    with builder.if_then(condition, likely=False):
        made, inside = other(), builder.block
    chosen = builder.phi(value.type)
    chosen.add_incoming(value, before)
    chosen.add_incoming(made, inside)
    return chosen


def suffix(type_: ir.Type) -> str:
    """How LLVM names a type in an intrinsic: `v32f32`."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{suffix(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return {"half": "f16", "float": "f32", "double": "f64"}[str(type_)]


def intrinsic(
    builder: ir.IRBuilder, name: str, arguments: Sequence[Any], *, result: ir.Type | None = None
) -> Any:
    """Call `llvm.NAME` on the type of the first argument."""
    returns = arguments[0].type if result is None else result
    full = f"llvm.{name}.{suffix(arguments[0].type)}"
    return builder.call(declared(builder.module, full, returns, arguments), arguments)


def declared(module: ir.Module, name: str, returns: ir.Type, arguments: Sequence[Any]) -> Any:
    """A function of that name, declared once."""
    found = module.globals.get(name)
    if found is None:
        kind = ir.FunctionType(returns, [argument.type for argument in arguments])
        found = ir.Function(module, kind, name)
    return found
