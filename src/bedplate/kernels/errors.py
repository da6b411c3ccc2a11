"""What can go wrong when an op is chosen, packed or recorded.

    BedplateError
    └── KernelsError                 kernels.error
        ├── UnknownOpError           kernels.unknown_op        exit 2
        ├── ShapeError               kernels.shape             exit 2
        ├── DtypeError               kernels.dtype             exit 2
        ├── AttributeValueError      kernels.attribute         exit 2
        ├── IndexRangeError          kernels.index_range       exit 2
        ├── OverlapError             kernels.overlap           exit 2
        ├── NoImplementationError    kernels.no_implementation exit 3
        ├── MismatchError            kernels.mismatch          exit 1
        └── IsaError                 kernels.isa               exit 3

Every message names the op, the offending value and what would be accepted.
"""

from __future__ import annotations

from bedplate.core.errors import BedplateError


class KernelsError(BedplateError):
    """Root of this system's errors."""

    code = "kernels.error"


class UnknownOpError(KernelsError):
    """No op of that name exists."""

    code = "kernels.unknown_op"
    exit_code = 2


class ShapeError(KernelsError):
    """A tensor's rank, extent or stride contradicts the op's schema."""

    code = "kernels.shape"
    exit_code = 2


class DtypeError(KernelsError):
    """A tensor holds a number format the op does not accept there."""

    code = "kernels.dtype"
    exit_code = 2


class AttributeValueError(KernelsError):
    """An attribute is missing, unknown or outside its range."""

    code = "kernels.attribute"
    exit_code = 2


class IndexRangeError(KernelsError):
    """A token id, slot or block id points outside its table."""

    code = "kernels.index_range"
    exit_code = 2


class OverlapError(KernelsError):
    """Copy pairs of which one's destination is another's source or destination."""

    code = "kernels.overlap"
    exit_code = 2


class NoImplementationError(KernelsError):
    """No implementation on this device accepts these tensors."""

    code = "kernels.no_implementation"
    exit_code = 3


class IsaError(KernelsError):
    """An instruction set level was asked for that this processor or build lacks."""

    code = "kernels.isa"
    exit_code = 3


class MismatchError(KernelsError):
    """An implementation's output left its error bound, or it wrote where it must not."""

    code = "kernels.mismatch"
