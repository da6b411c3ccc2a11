"""`bedplate up`: start the platform on this machine and ask it one question."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from bedplate.cli.flags import common_flags
from bedplate.core.errors import EXIT_DONE

if TYPE_CHECKING:
    from bedplate.orchestrator.api import Platform, Reply

PROMPT = "Name three seas."
MOST_TOKENS = 48


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    from bedplate.cli.serve import add_engine_flags

    verb = verbs.add_parser(
        "up",
        parents=[common_flags()],
        help="start the platform on this machine",
        description="Find the hardware, start engine and gateway, and ask the model one question.",
    )
    verb.add_argument("model", nargs="?", help="a name, a .gguf file or a safetensors folder")
    mode = verb.add_mutually_exclusive_group()
    mode.add_argument("--foreground", action="store_true", help="stay until Ctrl-C, then stop it")
    mode.add_argument("--demo", action="store_true", help="answer the question, stop, and exit")
    verb.add_argument("--host", help="address of the gateway (127.0.0.1)")
    verb.add_argument("--port", type=int, help="port of the gateway (8000)")
    verb.add_argument("--prompt", default=PROMPT, help=f"the question ({PROMPT})")
    add_engine_flags(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Start, ask, show; then return, stay or stop."""
    from bedplate.cli.hardware import describe_hardware
    from bedplate.core.config import load
    from bedplate.core.paths import data_dir
    from bedplate.orchestrator.api import GatewayConfig, OrchestratorConfig, Platform

    stays = arguments.foreground or arguments.demo
    configuration = load(
        {"gateway": GatewayConfig, "orchestrator": OrchestratorConfig},
        flags={
            "gateway": {"host": arguments.host, "port": arguments.port},
            "orchestrator": {"model": arguments.model},
        },
        file=arguments.config,
        data_dir=data_dir(arguments.data_dir),
    )
    gateway = configuration.section(GatewayConfig)
    orchestrator = configuration.section(OrchestratorConfig)
    note(arguments, describe_hardware())
    plate = Platform.up(
        orchestrator.model,
        data_dir=arguments.data_dir,
        host=gateway.host,
        port=gateway.port,
        engine_flags=engine_flags(arguments),
        hang_after_s=orchestrator.hang_after_s,
        parent=os.getpid() if stays else None,
        on_note=lambda text: note(arguments, text),
    )
    if not plate.started_here:
        show_running(arguments, plate)
        return EXIT_DONE
    try:
        greet(arguments, plate)
        if arguments.foreground:
            note(arguments, "running; Ctrl-C stops it")
            plate.wait()
    except KeyboardInterrupt:
        note(arguments, "stopping")
    finally:
        if stays:
            plate.down()
    return EXIT_DONE


def note(arguments: argparse.Namespace, text: str) -> None:
    """A line for people; with --json stdout is for machines."""
    print(text, file=sys.stderr if arguments.json else sys.stdout, flush=True)


def engine_flags(arguments: argparse.Namespace) -> list[str]:
    """The engine's flags that were given, as `bedplate serve` takes them."""
    from bedplate.cli.serve import engine_values

    given = []
    if arguments.config:
        given += ["--config", os.path.abspath(arguments.config)]
    for name, value in engine_values(arguments).items():
        if name in ("host", "port") or value is None:
            continue
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            given.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            given += [flag, str(value)]
    return given


def show_running(arguments: argparse.Namespace, plate: Platform) -> None:
    """The platform runs already: say where."""
    if arguments.json:
        from bedplate.cli.output import print_json

        print_json({"url": plate.base_url, "model": plate.model, "started": False})
        return
    print(f"already running: {plate.model} at {plate.base_url}")


def greet(arguments: argparse.Namespace, plate: Platform) -> None:
    """Ask the model, then show the answer, its times and how to call it."""
    from bedplate.orchestrator.api import ask

    messages = [{"role": "user", "content": arguments.prompt}]
    if not arguments.json:
        print(f"\n> {arguments.prompt}")

    def show(text: str) -> None:
        if not arguments.json:
            print(text, end="", flush=True)

    reply = ask(
        plate.url,
        plate.internal_key,
        plate.model,
        messages,
        on_text=show,
        temperature=0,
        max_tokens=MOST_TOKENS,
    )
    if arguments.json:
        from bedplate.cli.output import print_json

        print_json(report(plate, reply))
        return
    print(f"\n\n{speed(reply)}\n")
    print_how_to_call(plate)


def speed(reply: Reply) -> str:
    """One line on how fast the answer came."""
    return (
        f"first token after {reply.time_to_first_token_ns / 1e6:.0f} ms, "
        f"{reply.completion_tokens} tokens at {reply.tokens_per_second:.0f} tokens/s"
    )


def report(plate: Platform, reply: Reply) -> dict[str, object]:
    """What `--json` prints."""
    return {
        "url": plate.base_url,
        "model": plate.model,
        "started": True,
        "api_key": plate.key,
        "answer": reply.text,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "time_to_first_token_ns": reply.time_to_first_token_ns,
        "tokens_per_second": round(reply.tokens_per_second, 3),
    }


def print_how_to_call(plate: Platform) -> None:
    """An example that works as it stands, and the key when it is new."""
    if plate.key is not None:
        print(f"API key, shown once: {plate.key}")
    # In the example the key stands only where it was made just now.
    quote, key = ("'", plate.key) if plate.key else ('"', "$BEDPLATE_API_KEY")
    body = f'{{"model": "{plate.model}", "messages": [{{"role": "user", "content": "Hi"}}]}}'
    print(f"call it at {plate.base_url} with any OpenAI client, or:")
    print(f"  curl {plate.base_url}/chat/completions \\")
    print(f"    -H {quote}Authorization: Bearer {key}{quote} \\")
    print(f"    -H 'Content-Type: application/json' -d '{body}'")
