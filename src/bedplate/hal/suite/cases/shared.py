"""What shows in a launch of any kind of code: dynamic_shared, clusters."""

from __future__ import annotations

from bedplate.hal import abi
from bedplate.hal.batch import U32, Batch
from bedplate.hal.suite.registry import case
from bedplate.hal.suite.subject import Subject, expect

BAD = abi.BP_INVALID_ARGUMENT


@case("dynamic_shared", "positive")
def shared_memory_is_whole(s: Subject) -> None:
    """Every block may use all of it, up to the limit, and sees only its own writes."""
    most = s.info.limits.get("dynamic_shared", 1)
    for size in (4, 100, most):
        out = s.memory(4 * 10)
        batch = Batch()
        batch.launch(s.kernel("use_shared"), (10,), [out, U32(size)], shared_bytes=size)
        s.completes(batch, f"a launch with {size} bytes")
        told = set(s.words(out, "u4"))
        expect(told == {size // 4}, f"with {size} bytes, blocks kept {told} words")


@case("dynamic_shared", "negative")
def more_than_the_limit_is_refused(s: Subject) -> None:
    """One byte more, and the largest number."""
    for size in (s.info.limits.get("dynamic_shared", 1) + 1, (1 << 32) - 1):
        batch = Batch()
        batch.launch(s.kernel("nothing"), (1,), shared_bytes=size)
        s.refused_batch(batch, BAD, f"a launch with {size} bytes of shared memory")


@case("clusters", "positive", catches=["false_claim"])
def a_cluster_of_two_runs(s: Subject) -> None:
    """Every block once."""
    out = s.memory(16)
    batch = Batch()
    batch.launch(s.kernel("count_blocks"), (4,), [out])
    batch._commands[0].cluster = [2, 1, 1]
    status = s.submit(s.queue(), batch)
    s.works(status, "submitting a launch in clusters of two")
    s.completes(batch, "a launch in clusters of two")


@case("clusters", "absent")
def clusters_are_unsupported(s: Subject) -> None:
    """A launch that asks for them is refused."""
    batch = Batch()
    batch.launch(s.kernel("nothing"), (4,))
    batch._commands[0].cluster = [2, 1, 1]
    s.refused_batch(batch, abi.BP_UNSUPPORTED, "a launch in clusters")


@case("clusters", "negative")
def odd_clusters_are_refused(s: Subject) -> None:
    """More blocks than the limit, a grid that is no multiple, a zero beside another number."""
    most = s.info.limits.get("clusters", 1)
    for cluster in ([most + 1, 1, 1], [3, 1, 1], [2, 0, 1]):
        batch = Batch()
        batch.launch(s.kernel("nothing"), (4 * (most + 1) if cluster[0] > most else 4,))
        batch._commands[0].cluster = cluster
        s.refused_batch(batch, BAD, f"a launch in clusters of {cluster}")
