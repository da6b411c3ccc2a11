"""`bedplate chat`: talk to the running platform."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from typing import TYPE_CHECKING, Any

from bedplate.cli.flags import common_flags
from bedplate.core.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from bedplate.orchestrator.api import Platform, Reply


TEMPERATURE = 0.2  # small models lose the thread at 1, the API's default


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "chat",
        parents=[common_flags()],
        help="talk to the running platform",
        description="With a message: answer it and exit. Without: a conversation until Ctrl-D; "
        "Ctrl-C cuts an answer short.",
    )
    verb.add_argument("message", nargs="*", help="what to say; words are joined by spaces")
    verb.add_argument("--system", metavar="TEXT", help="a system message to start with")
    verb.add_argument(
        "--temperature", type=float, default=TEMPERATURE, help=f"0 is greedy ({TEMPERATURE})"
    )
    verb.add_argument("--max-tokens", type=int, metavar="TOKENS", help="longest answer")
    verb.add_argument("--seed", type=int, help="equal seeds give equal answers")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One answer, or a conversation."""
    from bedplate.orchestrator.api import Platform

    message = " ".join(arguments.message)
    if arguments.message and not message.strip():
        raise UsageError(
            "the message is empty", remedy="say something, or leave it out for a conversation"
        )
    check(arguments.message, arguments.system, arguments.temperature, arguments.max_tokens)
    conversation = Conversation(arguments, Platform.find(arguments.data_dir))
    if message:
        conversation.say(message)
        return EXIT_DONE
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (gives `input` its line editing)
    return conversation.run()


def check(words: list[str], system: str | None, temperature: float, max_tokens: int | None) -> None:
    """Raise `UsageError` for what no request can carry."""
    if max_tokens is not None and max_tokens < 1:
        raise UsageError(f"--max-tokens {max_tokens} is no answer", remedy="give 1 or more")
    if not math.isfinite(temperature) or temperature < 0:
        raise UsageError(
            f"--temperature {temperature:g} is not a temperature",
            remedy="give a number from 0 to 2",
        )
    for text in (*words, system or ""):
        if not encodable(text):
            raise UsageError(f"{text!a} is not UTF-8 text", remedy="write it in UTF-8")


def encodable(text: str) -> bool:
    """Whether it is text, and not bytes that the terminal passed on."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Conversation:
    """What was said so far, and the platform that answers."""

    def __init__(self, arguments: argparse.Namespace, plate: Platform) -> None:
        self._json = bool(arguments.json)
        self._plate = plate
        self._history: list[dict[str, str]] = []
        if arguments.system:
            self._history.append({"role": "system", "content": arguments.system})
        given = {
            "temperature": arguments.temperature,
            "max_tokens": arguments.max_tokens,
            "seed": arguments.seed,
        }
        self._parameters = {name: value for name, value in given.items() if value is not None}

    def run(self) -> int:
        """Read messages until the end of input; an error costs one message, not the talk."""
        from bedplate.orchestrator.api import GatewayError

        terminal = sys.stdin.isatty()
        if terminal:
            hint = "Ctrl-D ends, Ctrl-C cuts an answer short"
            print(f"{self._plate.model} at {self._plate.base_url}; {hint}", file=sys.stderr)
        while True:
            try:
                message = input("> " if terminal else "")
            except (EOFError, KeyboardInterrupt):
                if terminal:
                    print()
                return EXIT_DONE
            if not message.strip():
                continue
            if not encodable(message):
                if not terminal:
                    raise UsageError(f"{message!a} is not UTF-8 text")
                print("bedplate chat: that is not UTF-8 text", file=sys.stderr)
                continue
            try:
                self.say(message)
            except GatewayError as error:
                if not terminal:
                    raise
                print(f"bedplate chat: {error}", file=sys.stderr)
            except KeyboardInterrupt:
                print()

    def say(self, message: str) -> None:
        """Send one more message and show the answer; both join the conversation together."""
        asked = {"role": "user", "content": message}
        reply = self._ask([*self._history, asked])
        self._history += [asked, {"role": "assistant", "content": reply.text}]
        if self._json:
            from bedplate.cli.output import print_json

            print_json(reply)
        else:
            print()

    def _ask(self, messages: list[dict[str, str]]) -> Reply:
        from bedplate.orchestrator.api import ask

        plate = self._plate
        parameters: dict[str, Any] = self._parameters
        return ask(
            plate.url, plate.internal_key, plate.model, messages, on_text=self._show, **parameters
        )

    def _show(self, text: str) -> None:
        if not self._json:
            print(text, end="", flush=True)
