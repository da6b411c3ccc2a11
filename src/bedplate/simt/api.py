"""What others may use of the software GPU.

machine = Machine(arch="sm_90")
x = machine.array(numpy.arange(1024, dtype=numpy.float32))
machine.load(open("saxpy.ptx").read())["saxpy"][8, 128](numpy.float32(2), x, y, 1024)

What needs LLVM, which takes longer to import than all the rest, is imported when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bedplate.simt.abi import Window
from bedplate.simt.arguments import DeviceArray
from bedplate.simt.checks.finding import Finding
from bedplate.simt.checks.finding import junit as check_junit
from bedplate.simt.checks.finding import sarif as check_sarif
from bedplate.simt.errors import (
    CompilerFailed,
    EnginesDiffer,
    LaunchFailed,
    LaunchInvalid,
    OutOfDeviceMemory,
    PtxInvalid,
    PtxUnsupported,
    SimtFault,
)
from bedplate.simt.fingerprint import code as code_fingerprint
from bedplate.simt.machine import Kernel, LoadedModule, Machine, Run
from bedplate.simt.memory import HostWindow
from bedplate.simt.native import MOST_SHARED, NativeKernel, NativeKernels, native_kernels
from bedplate.simt.nativeabi import NativeFault, NativeLaunch
from bedplate.simt.occupancy import (
    ARCHITECTURES,
    Architecture,
    Occupancy,
    Usage,
    architecture,
    by_block_size,
    occupancy,
)
from bedplate.simt.page import page as profile_page
from bedplate.simt.parser import parse
from bedplate.simt.picture import picture as profile_picture
from bedplate.simt.ptxas import Resources
from bedplate.simt.ptxas import read as read_ptxas
from bedplate.simt.report import Report
from bedplate.simt.request import Request, sizes
from bedplate.simt.request import changed as changed_arrays
from bedplate.simt.request import read as read_request
from bedplate.simt.request import value as argument_value
from bedplate.simt.sources import Sources
from bedplate.simt.sources import beside as sources_beside
from bedplate.simt.sources import plain as plain_line

if TYPE_CHECKING:
    from bedplate.simt.checks.check import Checked, check
    from bedplate.simt.checks.check import chosen as checks_of
    from bedplate.simt.console import Console
    from bedplate.simt.reference import Reference
    from bedplate.simt.stepper import Quit, Stepper
    from bedplate.simt.trace import Issue, Timeline, Tracer, row_json, row_text, timeline
    from bedplate.simt.verify import Verified, verify

_LATE = {
    "Checked": ("checks.check", "Checked"),
    "Console": ("console", "Console"),
    "Issue": ("trace", "Issue"),
    "Quit": ("stepper", "Quit"),
    "Reference": ("reference", "Reference"),
    "Stepper": ("stepper", "Stepper"),
    "Timeline": ("trace", "Timeline"),
    "Tracer": ("trace", "Tracer"),
    "Verified": ("verify", "Verified"),
    "check": ("checks.check", "check"),
    "checks_of": ("checks.check", "chosen"),
    "row_json": ("trace", "row_json"),
    "row_text": ("trace", "row_text"),
    "timeline": ("trace", "timeline"),
    "verify": ("verify", "verify"),
}
"""Names whose modules import LLVM: where they are, and what they are called there."""

__all__ = [
    "ARCHITECTURES",
    "MOST_SHARED",
    "Architecture",
    "Checked",
    "CompilerFailed",
    "Console",
    "DeviceArray",
    "EnginesDiffer",
    "Finding",
    "HostWindow",
    "Issue",
    "Kernel",
    "LaunchFailed",
    "LaunchInvalid",
    "LoadedModule",
    "Machine",
    "NativeFault",
    "NativeKernel",
    "NativeKernels",
    "NativeLaunch",
    "Occupancy",
    "OutOfDeviceMemory",
    "PtxInvalid",
    "PtxUnsupported",
    "Quit",
    "Reference",
    "Report",
    "Request",
    "Resources",
    "Run",
    "SimtFault",
    "Sources",
    "Stepper",
    "Timeline",
    "Tracer",
    "Usage",
    "Verified",
    "Window",
    "architecture",
    "argument_value",
    "by_block_size",
    "changed_arrays",
    "check",
    "check_junit",
    "check_sarif",
    "checks_of",
    "code_fingerprint",
    "native_kernels",
    "occupancy",
    "parse",
    "plain_line",
    "profile_page",
    "profile_picture",
    "read_ptxas",
    "read_request",
    "row_json",
    "row_text",
    "sizes",
    "sources_beside",
    "timeline",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inside = _LATE[name]
    found = globals()[name] = getattr(import_module(f"bedplate.simt.{module}"), inside)
    return found
