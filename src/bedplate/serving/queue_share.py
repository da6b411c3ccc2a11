"""Who may take the next place in the queue.

A caller may hold at most `SHARE` times as many places as are free. One caller alone
gets three quarters of the queue; several that ask for all they can get equal parts,
and one that comes later still finds places. Nobody needs to be known beforehand.

Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
switches" (1998).
"""

from __future__ import annotations

from bedplate.serving.errors import RequestRefused

SHARE = 3


class QueueShare:
    """Counts the places that each caller holds. Not thread-safe."""

    def __init__(self, places: int) -> None:
        """For a queue of so many requests, running ones included."""
        self.places = places
        self.taken = 0
        self._held: dict[str, int] = {}

    def take(self, caller: str | None) -> None:
        """Take one place; None takes any that is left. Raises `RequestRefused`, 429."""
        free = self.places - self.taken
        if free <= 0:
            self._refuse(f"the queue is full with {self.taken} requests")
        if caller is not None:
            held = self._held.get(caller, 0)
            if held >= SHARE * free:
                self._refuse(
                    f"this caller holds {held} of {self.places} places in the queue, "
                    f"and the {free} that are free are kept for others"
                )
            self._held[caller] = held + 1
        self.taken += 1

    def _refuse(self, why: str) -> None:
        raise RequestRefused(why, code="serving.queue_full", status=429, remedy="try again later")

    def give_back(self, caller: str | None) -> None:
        """A request of `caller` ended."""
        self.taken -= 1
        if caller is not None:
            self._held[caller] -= 1
            if not self._held[caller]:
                del self._held[caller]

    def clear(self) -> None:
        """Every request ended at once."""
        self.taken = 0
        self._held.clear()
