"""The audit trail: who did what to which thing.

Provided by licensing (a tamper-evident chain); called by orchestrator and
serving. Data never holds prompts, keys or hashes of keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class AuditSink(Protocol):
    """Where audited actions go."""

    def record(self, actor: str, action: str, subject: str, data: Mapping[str, Any]) -> None:
        """Record one action; it is durable when this returns."""
        ...
