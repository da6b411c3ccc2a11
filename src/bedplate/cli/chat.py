"""`bedplate chat`: talk to the running platform."""

from __future__ import annotations

import argparse
import sys

from bedplate.cli.flags import common_flags
from bedplate.core.errors import EXIT_DONE


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "chat",
        parents=[common_flags()],
        help="talk to the running platform",
        description="With a message: answer it and exit. Without: a conversation until Ctrl-D.",
    )
    verb.add_argument("message", nargs="?", help="what to say")
    verb.add_argument("--system", help="a system message to start with")
    verb.add_argument("--temperature", type=float, help="0 is greedy (the server's default)")
    verb.add_argument("--max-tokens", type=int, help="longest answer")
    verb.add_argument("--seed", type=int, help="equal seeds give equal answers")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One answer, or a conversation."""
    from bedplate.orchestrator.api import Platform

    plate = Platform.find(arguments.data_dir)
    history = [{"role": "system", "content": arguments.system}] if arguments.system else []
    if arguments.message is not None:
        return say(arguments, plate, history, arguments.message)
    print(f"{plate.model} at {plate.base_url}; Ctrl-D ends", file=sys.stderr)
    while True:
        try:
            message = input("> ")
        except (EOFError, KeyboardInterrupt):
            print(file=sys.stderr)
            return EXIT_DONE
        if message.strip():
            say(arguments, plate, history, message)


def say(arguments: argparse.Namespace, plate, history: list[dict[str, str]], message: str) -> int:  # type: ignore[no-untyped-def]
    """Send the conversation with one more message; the answer joins it."""
    from bedplate.cli.output import print_json
    from bedplate.orchestrator.api import ask

    history.append({"role": "user", "content": message})
    given = {
        "temperature": arguments.temperature,
        "max_tokens": arguments.max_tokens,
        "seed": arguments.seed,
    }

    def show(text: str) -> None:
        if not arguments.json:
            print(text, end="", flush=True)

    reply = ask(
        plate.url,
        plate.internal_key,
        plate.model,
        history,
        on_text=show,
        **{name: value for name, value in given.items() if value is not None},
    )
    history.append({"role": "assistant", "content": reply.text})
    if arguments.json:
        print_json(reply)
    else:
        print()
    return EXIT_DONE
