"""The name under which a model is served when nobody gave one.

That of its file or folder: it is what the person who starts it typed, and the same
for every verb. What a file says of itself may be shared by ten files in one folder.
"""

from __future__ import annotations

import os

from bedplate.core.errors import UsageError


def model_name(model: str) -> str:
    """The last name of a path, without `.gguf`; a known name as it is.

    Links are not followed: a cache's files are often links to hashes. Raises
    `UsageError` when there is no name, as for the root folder.
    """
    name = os.path.basename(os.path.abspath(os.path.expanduser(model))).removesuffix(".gguf")
    if not name:
        raise UsageError(
            f"the model {model!r} gives no name to serve it under",
            code="core.model_name",
            remedy="give the path of a .gguf file or of a model's folder",
        )
    return name
