"""A tuned level of the `cpu` backend: one native module, built for one instruction set.

The module's kernels take any strides between rows and heads but dense
innermost dimensions, and weights in panels; what they do not take is refused
with the reason, and the portable level behind does it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bedplate.hal.api import Batch, Buffer, Device, DType, Tensor
from bedplate.kernels.call import Call
from bedplate.kernels.formats import Array, BlockArray
from bedplate.kernels.implementation import TensorSource
from bedplate.kernels.launches import BUILDERS, activation_row_bytes, pack_launch
from bedplate.kernels.pack import Packed, panel_shape
from bedplate.kernels.vocabulary import INT8_BLOCKS

MOST_ATTENTION_DIM = 128
ATTENTION_MULTIPLE = 16
"""Head dimensions and block sizes come in whole vectors of the widest level."""
MOST_GROUP = 32
MOST_ROPE_DIM = 512


class CpuModule:
    """The ops of one `libbedplate_kernels_cpu_<isa>.so` on a device."""

    def __init__(self, device: Device, isa: str, library: Path, weights: TensorSource) -> None:
        self.name = isa
        self._device, self._weights = device, weights
        self._module = device.load_native_module(library)

    def refuses(self, call: Call) -> str | None:
        """A layout or a size these kernels are not written for."""
        if call.schema.name not in BUILDERS:
            return f"this level has no {call.schema.name} of its own"
        for rule, operand in zip(call.schema.tensors, call.operands, strict=True):
            if isinstance(operand, Packed):
                if operand.layout != "panels":
                    return f"{rule.name} is packed as {operand.layout}, needs panels"
            elif rule.name in ("b", "w"):
                return f"{rule.name} is not packed"
            elif isinstance(operand, Tensor) and not _dense_inside(operand):
                return f"{rule.name} is not dense in its last dimension"
        return _SPECIAL[call.schema.name](call) if call.schema.name in _SPECIAL else None

    def workspace_bytes(self, call: Call) -> int:
        """int8 activations of a product; weights, candidates and ids of a row."""
        name, extents = call.schema.name, call.extents
        if name == "quantized_matmul" and call.attributes["activation"] == INT8_BLOCKS:
            return extents["M"] * activation_row_bytes(extents["K"])
        return 12 * extents["R"] * extents["V"] if name == "sample" else 0

    def record(self, batch: Batch, call: Call, workspace: Buffer | None) -> None:
        """One launch, two for a product with int8 activations, none for empty outputs."""
        if any(0 in call.needed(r.name).shape for r in call.schema.outputs if not r.optional):
            return
        for launch in BUILDERS[call.schema.name](call, workspace):
            batch.launch(
                self._module.kernel(launch.kernel),
                (launch.grid,),
                launch.arguments,
                shared_bytes=launch.shared_bytes,
            )

    def pack(self, op: str, weight: Array | BlockArray, dtype: DType) -> Packed:
        """Panels of 16 output columns, made by the module itself on all threads."""
        n, k = weight.shape
        if isinstance(weight, BlockArray):
            source, data = weight.format.name, weight.data
        else:
            source, data = "bf16" if weight.dtype == np.uint16 else "f32", weight
        raw = np.ascontiguousarray(data).view(np.uint8)
        rows = self._device.upload(raw)
        name = dtype.name.lower()
        kind = DType.U8 if op == "quantized_matmul" else dtype
        panels = self._weights.empty(panel_shape(op, name, n, k), kind)
        launch = pack_launch(op, source, rows, raw.shape[1], panels, (n, k))
        batch = Batch()
        batch.launch(self._module.kernel(launch.kernel), (launch.grid,), launch.arguments)
        with self._device.queue() as queue:
            queue.submit(batch)
            queue.synchronize()
        rows.buffer.release()
        return Packed(op, name, (n, k), "panels", panels)


def _dense_inside(tensor: Tensor) -> bool:
    return not tensor.shape or tensor.shape[-1] <= 1 or tensor.strides[-1] == 1


def _dense(tensor: Tensor, first_axis: int) -> bool:
    step = 1
    for axis in range(len(tensor.shape) - 1, first_axis - 1, -1):
        if tensor.shape[axis] > 1 and tensor.strides[axis] != step:
            return False
        step *= tensor.shape[axis]
    return True


def _caches(call: Call, first_axis: int) -> str | None:
    for name in ("k_cache", "v_cache"):
        if not _dense(call.needed(name), first_axis):
            return f"{name} is not dense"
    return None


def _rope(call: Call) -> str | None:
    dim = call.extents["D"]
    return f"head dimension {dim} is above {MOST_ROPE_DIM}" if dim > MOST_ROPE_DIM else None


def _attention(call: Call) -> str | None:
    dim, size = call.extents["D"], call.extents["BlockSize"]
    if dim % ATTENTION_MULTIPLE or dim > MOST_ATTENTION_DIM or size % ATTENTION_MULTIPLE:
        return f"head dimension {dim} or block size {size} is not a multiple of 16 up to 128"
    heads, kv_heads = call.extents["Hq"], call.extents["Hkv"]
    if kv_heads == 0 or heads % kv_heads or heads // kv_heads > MOST_GROUP:
        return f"{heads} heads over {kv_heads} are no groups of up to {MOST_GROUP}"
    return _caches(call, 0)


def _block_copy(call: Call) -> str | None:
    k_cache, v_cache = call.needed("k_cache"), call.needed("v_cache")
    if not _dense(call.needed("pairs"), 0):
        return "pairs is not dense"
    if k_cache.strides[1] != v_cache.strides[1] or k_cache.dtype != v_cache.dtype:
        return "k_cache and v_cache differ in layout"
    return _caches(call, 1)


def _convert(call: Call) -> str | None:
    same = call.needed("x").dtype == call.needed("out").dtype
    return "x and out have the same format" if same else None


_SPECIAL = {
    "block_copy": _block_copy,
    "convert": _convert,
    "kv_write": lambda call: _caches(call, 0),
    "paged_attention": _attention,
    "rope": _rope,
}
