"""The first question to a platform that has just started, and how to call it.

A key that was made now is shown whatever becomes of the question: it cannot be
shown again. A platform that stops after the answer has no key, and nothing is
said of calling it.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.cli.output import note, print_json
from bedplate.core import keyfile
from bedplate.core.command import command
from bedplate.core.errors import EXIT_DONE, EXIT_FAILED

if TYPE_CHECKING:
    from bedplate.orchestrator.api import Platform, Reply

MOST_TOKENS = 48


def greet(
    arguments: argparse.Namespace, plate: Platform, again: Sequence[str], *, lasts: bool = True
) -> int:
    """Ask the model, then show the answer, its times and how to call it; the exit code.

    `again` are the words that start such a platform.
    """
    from bedplate.orchestrator.api import GatewayError

    shown = False
    try:
        reply = question(arguments, plate)
        if arguments.json:
            shown = True
            print_report(plate, reply)
        else:
            print(f"\n\n{speed(reply)}\n")
    except GatewayError as error:
        note(arguments, f"the question was not answered: {error}")
        return EXIT_FAILED
    finally:
        if not arguments.json:
            if lasts:
                print_how_to_call(plate, again)
        elif not shown:
            print_report(plate, None)
    return EXIT_DONE


def question(arguments: argparse.Namespace, plate: Platform) -> Reply:
    """Ask what `--prompt` says, greedily; the answer appears as it comes."""
    from bedplate.orchestrator.api import ask

    def show(text: str) -> None:
        if not arguments.json:
            print(text, end="", flush=True)

    show(f"\n> {arguments.prompt}\n")
    return ask(
        plate.url,
        plate.internal_key,
        plate.model,
        [{"role": "user", "content": arguments.prompt}],
        on_text=show,
        temperature=0,
        max_tokens=MOST_TOKENS,
    )


def speed(reply: Reply) -> str:
    """One line on how fast the answer came."""
    return (
        f"first token after {reply.time_to_first_token_ns / 1e6:.0f} ms, "
        f"{reply.completion_tokens} tokens at {reply.tokens_per_second:.0f} tokens/s"
    )


def print_report(plate: Platform, reply: Reply | None) -> None:
    """What `--json` prints; without a reply its fields are null."""
    report: dict[str, object] = {
        "url": plate.base_url,
        "model": plate.model,
        "started": plate.started_here,
        "api_key": plate.key,
        "answer": None,
        "prompt_tokens": None,
        "completion_tokens": None,
        "time_to_first_token_ns": None,
        "tokens_per_second": None,
    }
    if reply is not None:
        report |= {
            "answer": reply.text,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "time_to_first_token_ns": reply.time_to_first_token_ns,
            "tokens_per_second": round(reply.tokens_per_second, 3),
        }
    print_json(report)


def where_the_key_is(data: Path, again: Sequence[str]) -> str:
    """The line on a key that is not shown again, and how to make a new one."""
    remove = f"rm {shlex.quote(str(data / keyfile.FILE))}"
    anew = " && ".join((remove, command("down", data), command(again, data)))
    return (
        "the example needs the key that the first start showed: export BEDPLATE_API_KEY=...; "
        f"if it is lost, `{anew}` makes a new one"
    )


def print_how_to_call(plate: Platform, again: Sequence[str]) -> None:
    """An example that works as it stands, and the key when it is new."""
    if plate.key is not None:
        print(f"API key, shown once: {plate.key}")
    elif "BEDPLATE_API_KEY" not in os.environ:
        print(where_the_key_is(plate.data, again))
    # In the example the key stands only where it was made just now.
    quote, key = ("'", plate.key) if plate.key else ('"', "$BEDPLATE_API_KEY")
    # Bounded: left to itself, a small model may go on until its context is full.
    body = (
        f'{{"model": "{plate.model}", "max_tokens": 48, "temperature": 0.2, '
        '"messages": [{"role": "user", "content": "Hi"}]}'
    )
    print(f"call it at {plate.base_url} with any OpenAI client, or:")
    print(f"  curl {plate.base_url}/chat/completions \\")
    print(f"    -H {quote}Authorization: Bearer {key}{quote} \\")
    print(f"    -H 'Content-Type: application/json' -d '{body}'")
