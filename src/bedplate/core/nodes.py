"""Taking a node out of service and back.

Provided by orchestrator; asked by observability's quarantine. Every action
carries the session that asked, and repeating one changes nothing.
"""

from __future__ import annotations

from typing import Protocol


class NodeControl(Protocol):
    """Whoever decides what runs on a node."""

    def cordon(self, node: str, reason: str, session: str) -> None:
        """Give the node no new work."""
        ...

    def drain(self, node: str, reason: str, session: str) -> None:
        """Cordon, then move its work elsewhere."""
        ...

    def uncordon(self, node: str, reason: str, session: str) -> None:
        """Let the node take work again."""
        ...
