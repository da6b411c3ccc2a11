"""What goes wrong in the software GPU.

::

    SimtFault               exit 1
    ├── PtxInvalid          exit 2   text that is not PTX, with file:line:column
    │   └── PtxUnsupported  exit 2   an instruction or modifier that this machine lacks
    ├── LaunchInvalid       exit 2   a grid, block, argument or kernel name that is wrong
    ├── OutOfDeviceMemory   exit 1   what was asked and what there is
    ├── LaunchFailed        exit 1   a kernel that ended in a fault; carries launch/1's fault
    ├── EnginesDiffer       exit 1   the two engines disagree, at the first register
    └── CompilerFailed      exit 1   LLVM refused what we gave it
"""

from __future__ import annotations

from bedplate.core.errors import BedplateError, UsageError
from bedplate.core.launch import LaunchFault, LaunchStatus


class SimtFault(BedplateError):
    """Root of this system's errors."""

    code = "simt.internal"


class PtxInvalid(SimtFault, UsageError):
    """Text that cannot be read as PTX."""

    code = "simt.ptx_invalid"


class PtxUnsupported(PtxInvalid):
    """PTX that asks for what this machine does not have."""

    code = "simt.ptx_unsupported"


class LaunchInvalid(SimtFault, UsageError):
    """A launch that cannot be started as it is asked for."""

    code = "simt.launch_invalid"


class OutOfDeviceMemory(SimtFault):
    """The device's memory does not hold the request."""

    code = "simt.out_of_memory"


class LaunchFailed(SimtFault):
    """A kernel did not end well; the machine is usable, its memory as the kernel left it."""

    code = "simt.launch_failed"

    def __init__(
        self, message: str, *, status: LaunchStatus, fault: LaunchFault | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.fault = fault
        self.printed = ""
        """What its `printf` calls said before."""
        self.printed_lost = 0


class EnginesDiffer(SimtFault):
    """The fast machine and the reference disagree."""

    code = "simt.engines_differ"


class CompilerFailed(SimtFault):
    """LLVM did not take a module of ours, which is an error of ours."""

    code = "simt.compiler_failed"
