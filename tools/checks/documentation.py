"""The documentation site builds without a warning: no dead link, no lost page."""

from __future__ import annotations

from pathlib import Path

import docs


def site(root: Path, fix: bool) -> list[str]:
    """The warnings of a build that leaves site/ alone."""
    return docs.build(root, root / "build" / "docs" / "checked")
