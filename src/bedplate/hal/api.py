"""What others may use of the HAL.

    with open_device("cpu") as device, device.queue() as queue:
        x = device.upload(np.ones((2, 3), "f4"))
        y = device.empty((2, 3), DType.BF16)
        queue.op("convert", [x], [y])
        print(queue.download(y))

Backends, devices and files are chosen by name only; see `bedplate hal list`.
"""

from bedplate.hal.batch import F32, I32, I64, U32, U64, Argument, Batch, Place, Scalar
from bedplate.hal.bench import QUANTITIES as BENCH_QUANTITIES
from bedplate.hal.bench import measure as bench_device
from bedplate.hal.buffer import Buffer, Range, Tensor
from bedplate.hal.conform import DeviceReport, explain_cases, liar_index, seed_liars
from bedplate.hal.conform import conform as conform_backend
from bedplate.hal.conform import exit_code as conform_exit_code
from bedplate.hal.conform import junit as conform_junit
from bedplate.hal.counting import counted
from bedplate.hal.device import Device, DeviceInfo
from bedplate.hal.doctor import Finding, ListedBackend, examine, listing
from bedplate.hal.dtype import DType, as_dtype
from bedplate.hal.errors import (
    BackendMissing,
    BackendRefused,
    DeadlineExceeded,
    DeviceError,
    DeviceLost,
    HalError,
    InvalidArgument,
    ManifestInvalid,
    NotFound,
    OutOfDeviceMemory,
    Unavailable,
    Unsupported,
    VersionConflict,
    WorkCancelled,
)
from bedplate.hal.external import export_memory, import_memory
from bedplate.hal.graph import Graph
from bedplate.hal.icd import Registration
from bedplate.hal.icd import registrations as opencl_registrations
from bedplate.hal.inprocess import (
    NativeCode,
    ProvidedDevice,
    Provider,
    Source,
    register_origin,
)
from bedplate.hal.inprocess import register as register_provider
from bedplate.hal.inprocess import unregister as unregister_provider
from bedplate.hal.module import Kernel, Module
from bedplate.hal.open import open_device, parse_spec
from bedplate.hal.ops import OpPlan, TensorRole, op_names, op_tensors, pack_attributes
from bedplate.hal.queue import Queue
from bedplate.hal.suite.run import CaseResult
from bedplate.hal.suite.worker import serve as serve_cases
from bedplate.hal.template import create as new_backend
from bedplate.hal.timeline import Fence, Timeline
from bedplate.hal.timer import ClockPair, DeviceTimer

__all__ = [
    "BENCH_QUANTITIES",
    "F32",
    "I32",
    "I64",
    "U32",
    "U64",
    "Argument",
    "BackendMissing",
    "BackendRefused",
    "Batch",
    "Buffer",
    "CaseResult",
    "ClockPair",
    "DType",
    "DeadlineExceeded",
    "Device",
    "DeviceError",
    "DeviceInfo",
    "DeviceLost",
    "DeviceReport",
    "DeviceTimer",
    "Fence",
    "Finding",
    "Graph",
    "HalError",
    "InvalidArgument",
    "Kernel",
    "ListedBackend",
    "ManifestInvalid",
    "Module",
    "NativeCode",
    "NotFound",
    "OpPlan",
    "OutOfDeviceMemory",
    "Place",
    "ProvidedDevice",
    "Provider",
    "Queue",
    "Range",
    "Registration",
    "Scalar",
    "Source",
    "Tensor",
    "TensorRole",
    "Timeline",
    "Unavailable",
    "Unsupported",
    "VersionConflict",
    "WorkCancelled",
    "as_dtype",
    "bench_device",
    "conform_backend",
    "conform_exit_code",
    "conform_junit",
    "counted",
    "examine",
    "explain_cases",
    "export_memory",
    "import_memory",
    "liar_index",
    "listing",
    "new_backend",
    "op_names",
    "op_tensors",
    "open_device",
    "opencl_registrations",
    "pack_attributes",
    "parse_spec",
    "register_origin",
    "register_provider",
    "seed_liars",
    "serve_cases",
    "unregister_provider",
]
