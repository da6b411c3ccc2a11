"""The child process that runs one chat template; started by `template`.

Speaks JSON lines on its standard streams: first the template, then one line for
each prompt to render. Its environment holds no key, its memory and its time are
limited by the kernel, its parent ends it when it takes too long, and it ends with
its parent, whose process id is its argument. It runs as the same user,
so it is a second fence behind the sandbox, not a jail. Imports little, so that it
starts in a tenth of a second.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.exceptions import SecurityError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bedplate.core.parent import end_with_parent

MEMORY_BYTES = 512 << 20
# Of one prompt. The parent ends a child that takes too long; this holds when it cannot.
CPU_S = 5
LONGEST_OUTPUT_CHARACTERS = 4_000_000
LONGEST_REASON_CHARACTERS = 300


class _TooMuch(Exception):
    """The output grew beyond any sound prompt."""


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def compile_template(source: str) -> Template:
    """The template in its sandbox, with the functions that model files expect."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _now
    return environment.from_string(source)


def render(template: Template, values: Mapping[str, Any]) -> dict[str, str]:
    """`{"text": ...}`, or `{"error": ...}` with one clause on what went wrong."""
    pieces, written = [], 0
    try:
        for piece in template.generate(**values):
            written += len(piece)
            if written > LONGEST_OUTPUT_CHARACTERS:
                raise _TooMuch
            pieces.append(piece)
    except SecurityError:
        return {"error": "reached outside its sandbox"}
    except (_TooMuch, MemoryError):
        return {"error": "wrote more than any prompt may hold"}
    except RecursionError:
        return {"error": "calls itself without end"}
    except Exception as cause:  # a template can raise anything
        return {"error": f"refuses these messages: {str(cause)[:LONGEST_REASON_CHARACTERS]}"}
    return {"text": "".join(pieces)}


def main() -> None:
    """Serve the parent until it closes the pipe."""
    limit(resource.RLIMIT_AS, MEMORY_BYTES)
    limit(resource.RLIMIT_CORE, 0)
    end_with_parent(int(sys.argv[1]), signal.SIGKILL)
    _limit_time()
    start = json.loads(sys.stdin.readline())
    try:
        template = compile_template(start["source"])
    except (TemplateError, MemoryError, RecursionError) as cause:
        _answer({"error": str(cause) or type(cause).__name__})
        return
    _answer({})
    for line in sys.stdin:
        _limit_time()
        _answer(render(template, {**start["variables"], **json.loads(line)}))


def _limit_time() -> None:
    """Let the kernel end this process when it computes `CPU_S` seconds from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime) + CPU_S
    limit(resource.RLIMIT_CPU, seconds)


def limit(what: int, value: int) -> None:
    """Set a soft limit; one that whoever started us made harder stays."""
    hard = resource.getrlimit(what)[1]
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (soft, hard))


def _answer(message: Mapping[str, str]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
