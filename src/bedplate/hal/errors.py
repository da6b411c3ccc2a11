"""What can go wrong at the hardware boundary.

::

    HalError                       exit 1  hal.internal
    ├── InvalidArgument            exit 2  stale handle, range past the end, wrong shape
    │   └── InvalidExtension       exit 2  reserved word or unknown tail of a struct is not zero
    ├── Unsupported                exit 1  the backend lacks the function or the variant
    ├── NotFound                   exit 2  no such device, module, kernel or table
    ├── OutOfDeviceMemory          exit 1
    ├── DeadlineExceeded           exit 1  a wait gave up; the device is still usable
    ├── DeviceError                exit 1  work failed while it ran; the timeline is poisoned
    │   ├── DeviceLost             exit 1  nothing on the device works any more
    │   └── WorkCancelled          exit 1  its queue, timeline or device went first
    ├── Unavailable                exit 3  the backend cannot work here
    │   ├── BackendMissing         exit 3  no candidate has that name
    │   ├── BackendRefused         exit 3  a candidate has it, but may not be loaded
    │   └── VersionConflict        exit 3  the two sides have different ABI majors
    └── ManifestInvalid            exit 2  the file that describes a backend is wrong

Native statuses map one to one; the sentence is the backend's own.
"""

from __future__ import annotations

from bedplate.core.errors import BedplateError, EnvironmentLacks, UsageError
from bedplate.hal import abi


class HalError(BedplateError):
    """The root of this system's errors."""

    code = "hal.internal"


class InvalidArgument(HalError, UsageError):
    """A handle, range, shape or value is wrong; nothing was done."""

    code = "hal.invalid_argument"


class InvalidExtension(InvalidArgument):
    """A struct carries something this side does not know."""

    code = "hal.invalid_ext"


class Unsupported(HalError):
    """The backend lacks the function or the variant."""

    code = "hal.unsupported"


class NotFound(HalError, UsageError):
    """There is no such device, module, kernel or table."""

    code = "hal.not_found"


class OutOfDeviceMemory(HalError):
    """Device or host memory is exhausted."""

    code = "hal.out_of_memory"


class DeadlineExceeded(HalError):
    """A wait gave up; the device is still usable."""

    code = "hal.deadline"


class DeviceError(HalError):
    """Work failed while it ran; what it would have signalled is poisoned."""

    code = "hal.launch_fault"


class DeviceLost(DeviceError):
    """The device is gone; close it and open another."""

    code = "hal.device_lost"


class WorkCancelled(DeviceError):
    """The queue, timeline or device went before the work was done."""

    code = "hal.cancelled"


class Unavailable(HalError, EnvironmentLacks):
    """The backend exists but cannot work here."""

    code = "hal.unavailable"


class BackendMissing(Unavailable):
    """No candidate has that name."""

    code = "hal.backend_missing"


class BackendRefused(Unavailable):
    """A candidate has that name, but may not be loaded."""

    code = "hal.backend_refused"


class VersionConflict(Unavailable):
    """The two sides speak different majors of the ABI."""

    code = "hal.version"


class ManifestInvalid(HalError, UsageError):
    """The file that describes a backend is wrong."""

    code = "hal.manifest"


BY_STATUS: dict[int, type[HalError]] = {
    abi.BP_INVALID_ARGUMENT: InvalidArgument,
    abi.BP_INVALID_EXT: InvalidExtension,
    abi.BP_UNSUPPORTED: Unsupported,
    abi.BP_UNAVAILABLE: Unavailable,
    abi.BP_OUT_OF_MEMORY: OutOfDeviceMemory,
    abi.BP_NOT_FOUND: NotFound,
    abi.BP_DEADLINE: DeadlineExceeded,
    abi.BP_DEVICE_LOST: DeviceLost,
    abi.BP_LAUNCH_FAULT: DeviceError,
    abi.BP_CANCELLED: WorkCancelled,
    abi.BP_VERSION: VersionConflict,
    abi.BP_INTERNAL: HalError,
    abi.BP_BUSY: InvalidArgument,
}


def status_name(status: int) -> str:
    """`hal.<condition>` of a native status; `hal.status_<n>` for an unknown one."""
    known = abi.STATUS_NAMES.get(status)
    return f"hal.{known.removeprefix('BP_').lower()}" if known else f"hal.status_{-status}"


def from_status(status: int, text: str, *, asynchronous: bool = False) -> HalError:
    """The typed error of a native status; `text` is the backend's sentence.

    `asynchronous` errors come from work that already ran: whatever their
    status, they are a `DeviceError`, and their code keeps the status.
    """
    kind = BY_STATUS.get(status, HalError)
    if asynchronous and not issubclass(kind, DeviceError | DeadlineExceeded):
        kind = DeviceError
    message = text or f"the backend gave the status {status} without a reason"
    return kind(message, code=status_name(status))
