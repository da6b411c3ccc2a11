"""The seam of the tools: code beside the kernel's own, compiled in only when asked for.

A tool is given to the compiler and called while code is made; what it emits runs with the
kernel. Without tools not one instruction is added. `key` names the tool in the cache.

There now: `wrote` (used by `verify`). The others are called from where their subject is
lowered: `accessed` by loads, stores and atomics with the address of every lane,
`waited` at barriers, `branched` where a branch may split the warp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bedplate.simt.emitter import Emitter
    from bedplate.simt.module import Instruction, Register
    from bedplate.simt.scalar import Scalar


class Tool:
    """Hooks that do nothing."""

    key: str = ""

    def wrote(
        self, emitter: Emitter, made: Instruction, register: Register, scalar: Scalar
    ) -> None:
        """A register was written, in the lanes of `emitter.mask`."""

    def accessed(
        self, emitter: Emitter, made: Instruction, space: str, addresses: Any, bytes: int
    ) -> None:
        """Memory is about to be touched: `<32 x i64>` addresses, bytes a lane."""

    def waited(self, emitter: Emitter, made: Instruction) -> None:
        """A warp is about to wait at a barrier."""

    def branched(self, emitter: Emitter, made: Instruction, taken: Any) -> None:
        """A branch whose lanes may disagree; `taken` is a mask."""
