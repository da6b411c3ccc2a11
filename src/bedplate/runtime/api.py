"""What others may use of the runtime.

with Allocator(open_device("cpu")) as memory:
    main, side = memory.stream(), memory.stream()
    block = memory.pool("activations").allocate(1 << 20, main)
    block.used_on(side)
    block.free()
    memory.seal()
"""

from bedplate.runtime.allocator import POOLS, Allocator, Block, Pool, Stream
from bedplate.runtime.checker import Checker, Hazard, Record, Span
from bedplate.runtime.errors import (
    BadBlock,
    BatchFailed,
    HazardFound,
    OptionsInvalid,
    OutOfMemory,
    OverQuota,
    PolicyBroken,
    RuntimeFault,
    SchedulerStopped,
    SteadyStateViolation,
    StreamDeadline,
    TraceInvalid,
)
from bedplate.runtime.explain import Shortfall, explain
from bedplate.runtime.explore import Explored, Program, ProgramHost, Ready, Rule, explore
from bedplate.runtime.graph import Graph, Recording
from bedplate.runtime.lint import RuntimeContract
from bedplate.runtime.metrics import publish
from bedplate.runtime.numbers import NumbersAllocator
from bedplate.runtime.picture import page as picture_page
from bedplate.runtime.picture import text as picture_text
from bedplate.runtime.recording import Job, find_job
from bedplate.runtime.replay import POLICIES, Outcome, Plan, plan, replay
from bedplate.runtime.rmm import write_csv
from bedplate.runtime.sanitize import Reuse, sanitize
from bedplate.runtime.scheduler import QueueStats, Scheduler, SchedulerQueue
from bedplate.runtime.snapshot import snapshot, write_snapshot
from bedplate.runtime.stats import DriverCalls, Figure, PoolStats, Side
from bedplate.runtime.tensors import PoolTensors
from bedplate.runtime.torch_plugin import torch_stats, use_in_torch
from bedplate.runtime.trace import Trace, write_log
from bedplate.runtime.trace import load as load_trace
from bedplate.runtime.tracer import Tracer
from bedplate.runtime.work import WorkStream, span_of
from bedplate.runtime.workload import WORKLOADS, workload

__all__ = [
    "POLICIES",
    "POOLS",
    "WORKLOADS",
    "Allocator",
    "BadBlock",
    "BatchFailed",
    "Block",
    "Checker",
    "DriverCalls",
    "Explored",
    "Figure",
    "Graph",
    "Hazard",
    "HazardFound",
    "Job",
    "NumbersAllocator",
    "OptionsInvalid",
    "OutOfMemory",
    "Outcome",
    "OverQuota",
    "Plan",
    "PolicyBroken",
    "Pool",
    "PoolStats",
    "PoolTensors",
    "Program",
    "ProgramHost",
    "QueueStats",
    "Ready",
    "Record",
    "Recording",
    "Reuse",
    "Rule",
    "RuntimeContract",
    "RuntimeFault",
    "Scheduler",
    "SchedulerQueue",
    "SchedulerStopped",
    "Shortfall",
    "Side",
    "Span",
    "SteadyStateViolation",
    "Stream",
    "StreamDeadline",
    "Trace",
    "TraceInvalid",
    "Tracer",
    "WorkStream",
    "explain",
    "explore",
    "find_job",
    "load_trace",
    "picture_page",
    "picture_text",
    "plan",
    "publish",
    "replay",
    "sanitize",
    "snapshot",
    "span_of",
    "torch_stats",
    "use_in_torch",
    "workload",
    "write_csv",
    "write_log",
    "write_snapshot",
]
