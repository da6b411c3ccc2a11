"""Foreign backends for tests: small C files built into shared objects.

`build` compiles with the system's compiler against our headers, each text once
in a session; `register` writes a manifest beside the library.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from pathlib import Path

from bedplate.hal.manifest import SCHEMA
from bedplate.hal.trust import digest

INCLUDE = Path(__file__).resolve().parents[2] / "native" / "hal" / "include"

PREAMBLE = """
#include "bedplate/hal.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int32_t none(uint32_t *count) { *count = 1; return 0; }
static int32_t said(char *buffer, uint64_t capacity, uint64_t *length) {
    *length = 0;
    if (capacity) buffer[0] = 0;
    return 0;
}
static bp_core core = {.head = {1, sizeof(bp_core)}, .enumerate = none, .last_error = said};
static bp_mem mem = {.head = {1, sizeof(bp_mem)}};
static bp_queue queue = {.head = {1, sizeof(bp_queue)}};
static bp_timeline timeline = {.head = {1, sizeof(bp_timeline)}};
static bp_api api = {.head = {1, sizeof(bp_api)}, .major = 0, .minor = 1, .core = &core,
                     .mem = &mem, .queue = &queue, .timeline = &timeline};
#define QUERY                                                                        \\
    BP_EXPORT int32_t bedplate_hal_backend_query(const bp_host *host, uint32_t wanted, \\
                                                 const bp_api **out)
"""

MINIMAL = "QUERY { (void)host; (void)wanted; *out = &api; return 0; }"


def build(folder: Path, name: str, body: str = MINIMAL) -> Path:
    """A shared object `<folder>/<name>.so` of PREAMBLE and `body`."""
    library = folder / f"{name}.so"
    library.write_bytes(compiled(body))
    library.chmod(0o755)
    return library


@functools.cache
def compiled(body: str) -> bytes:
    """What the compiler makes of PREAMBLE and `body`."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "foreign.c"), Path(folder, "foreign.so")
        source.write_text(PREAMBLE + body)
        command = ["gcc", "-std=gnu11", "-shared", "-fPIC", "-w", f"-I{INCLUDE}"]
        subprocess.run([*command, "-o", str(library), str(source)], check=True)
        return library.read_bytes()


def register(library: Path, name: str, /, **changes: str) -> Path:
    """A manifest `<name>.json` beside the library, with parts replaced."""
    content = {
        "schema": SCHEMA,
        "name": name,
        "library": library.name,
        "abi": "0.1",
        "isa": "any",
        "sha256": digest(library) if library.exists() else "0" * 64,
    }
    path = library.parent / f"{name}.json"
    path.write_text(json.dumps(content | changes))
    path.chmod(0o644)
    return path
