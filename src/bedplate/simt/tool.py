"""The seam of the tools: code beside the kernel's own, compiled in only when asked for.

A tool is given to the compiler and called while code is made; what it emits runs with the
kernel. Without tools not one instruction is added. `key` names the tool in the cache.

`verify` uses `wrote`, profiles `entered`, `accessed` and `branched`. Hooks are called from
where their subject is lowered, with `emitter.mask` the lanes that run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from bedplate.simt.emitter import Emitter
    from bedplate.simt.graph import Block
    from bedplate.simt.module import Instruction, Register
    from bedplate.simt.scalar import Scalar


class Where(Protocol):
    """The addresses of an access; what a tool does not ask for costs nothing."""

    @property
    def base(self) -> Any | None:
        """A scalar `i64`: lane k has `base + values[k]`; None when no shape is known."""

    @property
    def values(self) -> Sequence[int]:
        """What to add for each lane."""

    @property
    def exact(self) -> Any | None:
        """An `i1` that must hold for base and values to be right, None when they are."""

    @property
    def every(self) -> Callable[[], Any]:
        """The addresses of all lanes as `<32 x i64>`, always right."""


class AllLanes:
    """A `Where` of addresses that have no shape."""

    base: Any | None = None
    values: Sequence[int] = ()
    exact: Any | None = None

    def __init__(self, addresses: Any) -> None:
        self._addresses = addresses

    @property
    def every(self) -> Callable[[], Any]:
        """The addresses themselves."""
        return lambda: self._addresses


class Tool:
    """Hooks that do nothing."""

    key: str = ""
    optimised: bool = True
    """Whether the code with this tool is worth the time of LLVM's passes."""

    def wrote(
        self, emitter: Emitter, made: Instruction, register: Register, scalar: Scalar
    ) -> None:
        """A register was written, in the lanes of `emitter.mask`."""

    def accessed(
        self,
        emitter: Emitter,
        made: Instruction,
        space: str,
        where: Where,
        bytes: int,
        values: Sequence[Any] = (),
    ) -> None:
        """Memory is about to be touched, `bytes` a lane; `values` are what is stored."""

    def synced(self, emitter: Emitter, made: Instruction, named: Any) -> None:
        """Lanes wait for each other; `named` is the mask that each lane gives."""

    def ended(self, emitter: Emitter, mask: Any) -> None:
        """The lanes of `mask`, which may be none, end for good."""

    def entered(self, emitter: Emitter, block: Block) -> None:
        """A block of the graph is about to run, in the lanes of `emitter.block_mask`."""

    def waited(self, emitter: Emitter, made: Instruction, number: Any, count: Any) -> None:
        """A warp is about to wait at barrier `number` for `count` threads, 0 for all."""

    def branched(self, emitter: Emitter, made: Instruction, taken: Any) -> None:
        """A branch whose lanes may disagree; `taken` is a mask."""
