"""The engine's device memory: weights, KV, activations and the step's own arrays, by pool.

All of it is taken before the first step; `seal` then counts whatever would
still call the driver.
"""

from __future__ import annotations

from bedplate.core.metrics import MetricRegistry
from bedplate.hal.api import Device
from bedplate.runtime.api import POOLS, Allocator, PoolTensors, publish


class EnginePools:
    """Pools over a device. Closing the device first is right, and gives all of it back."""

    def __init__(self, device: Device) -> None:
        # Tensors are ranges of the device's memories, which mapped pieces are not.
        self.allocator = Allocator(device, "mapping:off")
        self._stream = self.allocator.stream()
        self.weights = self._tensors("weights")
        self.kv = self._tensors("kv")
        self.activations = self._tensors("activations")
        self.scratch = self._tensors("scratch")

    def _tensors(self, pool: str) -> PoolTensors:
        return PoolTensors(self.allocator, pool, self._stream)

    def seal(self) -> None:
        """The steady state begins: driver calls are violations from now on."""
        self.allocator.seal("count")

    def driver_calls_since_seal(self) -> int:
        """Violations of all pools; 0 in a steady state."""
        return sum(self.allocator.stats(pool).sealed_calls for pool in POOLS)

    def publish(self, registry: MetricRegistry, device: str) -> None:
        """The registry's `alloc_*` rows of every pool, read when they are asked for."""
        publish(self.allocator, registry, device)

    def close(self) -> None:
        """Release what the host holds of it, and the memory if the device is still open."""
        self.allocator.close()
