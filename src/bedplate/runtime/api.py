"""What others may use of the runtime.

with Allocator(open_device("cpu")) as memory:
    main, side = memory.stream(), memory.stream()
    block = memory.pool("activations").allocate(1 << 20, main)
    block.used_on(side)
    block.free()
    memory.seal()
"""

from bedplate.runtime.allocator import POOLS, Allocator, Block, Pool, Stream
from bedplate.runtime.errors import (
    BadBlock,
    OptionsInvalid,
    OutOfMemory,
    OverQuota,
    RuntimeFault,
    SteadyStateViolation,
    TraceInvalid,
)
from bedplate.runtime.lint import RuntimeContract
from bedplate.runtime.numbers import NumbersAllocator
from bedplate.runtime.picture import page as picture_page
from bedplate.runtime.picture import text as picture_text
from bedplate.runtime.recording import Job, find_job
from bedplate.runtime.replay import POLICIES, Outcome, Plan, plan, replay
from bedplate.runtime.snapshot import snapshot, write_snapshot
from bedplate.runtime.stats import Figure, PoolStats, Side
from bedplate.runtime.tensors import PoolTensors
from bedplate.runtime.torch_plugin import torch_stats, use_in_torch
from bedplate.runtime.trace import Trace, write_csv, write_log
from bedplate.runtime.trace import load as load_trace

__all__ = [
    "POLICIES",
    "POOLS",
    "Allocator",
    "BadBlock",
    "Block",
    "Figure",
    "Job",
    "NumbersAllocator",
    "OptionsInvalid",
    "OutOfMemory",
    "Outcome",
    "OverQuota",
    "Plan",
    "Pool",
    "PoolStats",
    "PoolTensors",
    "RuntimeContract",
    "RuntimeFault",
    "Side",
    "SteadyStateViolation",
    "Stream",
    "Trace",
    "TraceInvalid",
    "find_job",
    "load_trace",
    "picture_page",
    "picture_text",
    "plan",
    "replay",
    "snapshot",
    "torch_stats",
    "use_in_torch",
    "write_csv",
    "write_log",
    "write_snapshot",
]
