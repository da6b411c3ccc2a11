"""`bedplate up`: start the platform on this machine and ask it one question."""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from bedplate.cli.flags import common_flags
from bedplate.cli.greeting import greet
from bedplate.cli.output import note, people, print_json
from bedplate.core import keyfile
from bedplate.core.command import quoted
from bedplate.core.errors import EXIT_DONE, EXIT_FAILED
from bedplate.core.paths import data_dir, make_private, run_dir

if TYPE_CHECKING:
    from bedplate.core.config import Configuration
    from bedplate.orchestrator.api import Platform

PROMPT = "Name three seas."
STOPPING = "stopping; streams that are open may end, Ctrl-C again cuts them"


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    from bedplate.cli.serve import add_engine_flags

    verb = verbs.add_parser(
        "up",
        parents=[common_flags()],
        help="start the platform on this machine",
        description="Find the hardware, start engine and gateway, and ask the model one question. "
        "The platform stays in the background; with --foreground this command stays with it.",
    )
    verb.add_argument("model", nargs="?", help="a name, a .gguf file or a safetensors folder")
    mode = verb.add_mutually_exclusive_group()
    mode.add_argument("--foreground", action="store_true", help="stay until Ctrl-C, then stop it")
    mode.add_argument("--demo", action="store_true", help="answer the question, stop, and exit")
    verb.add_argument("--host", help="address of the gateway (127.0.0.1)")
    verb.add_argument("--port", type=int, help="port of the gateway (8000; 0: any free one)")
    verb.add_argument("--prompt", default=PROMPT, help=f"the question ({PROMPT})")
    add_engine_flags(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Start, ask, show; then return, stay or stop."""
    from bedplate.cli.terminal import own_terminal

    try:
        signal.signal(signal.SIGTERM, _interrupt)
        if not (arguments.foreground or arguments.demo):
            return start_and_greet(arguments, stays=False)
        with own_terminal():
            return start_and_greet(arguments, stays=True)
    except KeyboardInterrupt:  # before it was ready
        note(arguments, "\nstopped before it answered")
        return EXIT_FAILED


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def start_and_greet(arguments: argparse.Namespace, *, stays: bool) -> int:
    """The whole verb; with `stays` the platform ends when this process does."""
    plate = started(arguments, parent=os.getpid() if stays else None)
    if not plate.started_here:
        show_running(arguments, plate)
        return greet(arguments, plate, start_again(arguments)) if arguments.demo else EXIT_DONE
    code = EXIT_FAILED  # until it answered
    try:
        code = greet(arguments, plate, start_again(arguments), lasts=not arguments.demo)
        if arguments.foreground:
            note(arguments, "running; Ctrl-C stops it")
            if not plate.wait():
                logs = run_dir(plate.data)
                note(arguments, f"the platform ended by itself; its logs are in {logs}")
                return EXIT_FAILED
        elif not stays:
            note(arguments, in_background(plate))
    except KeyboardInterrupt:
        note(arguments, f"\n{STOPPING if stays else in_background(plate)}")
    finally:
        if stays:
            stop(plate)
        if arguments.demo:
            again = quoted(start_again(arguments), plate.data)
            note(arguments, f"the demo has stopped; {again} starts it to stay")
    return code


def in_background(plate: Platform) -> str:
    """What to do with a platform that stays."""
    status, down = quoted("status", plate.data), quoted("down", plate.data)
    return f"it runs in the background; {status} shows it, {down} stops it"


def start_again(arguments: argparse.Namespace) -> list[str]:
    """The command's words without `--demo`, the data directory apart."""
    words = ["up"] + ([arguments.model] if arguments.model else [])
    for name in ("host", "port"):
        if (value := getattr(arguments, name)) is not None:
            words.append(f"--{name}={value}")
    return words + engine_flags(arguments)


def stop(plate: Platform) -> None:
    """Stop the platform; a second Ctrl-C makes it hurry, a third changes nothing."""
    try:
        plate.down()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        plate.down()  # a second request to stop cuts what is still open


def started(arguments: argparse.Namespace, parent: int | None) -> Platform:
    """The platform: started now, with what was found on the way, or found running."""
    from bedplate.cli.hardware import describe_hardware
    from bedplate.cli.progress import waiting
    from bedplate.orchestrator.api import GatewayConfig, OrchestratorConfig, Platform

    if Platform.runs(arguments.data_dir):
        return Platform.up(
            arguments.model,
            data_dir=arguments.data_dir,
            host=arguments.host,
            port=arguments.port,
        )
    from bedplate.serving.api import ServingConfig

    configuration = configured(arguments)
    check_folder(data_dir(arguments.data_dir))
    gateway = configuration.section(GatewayConfig)
    orchestrator = configuration.section(OrchestratorConfig)
    for line in describe_hardware(configuration.section(ServingConfig).device):
        note(arguments, line)
    begun = time.monotonic()
    with waiting(people(arguments)) as show:
        plate = Platform.up(
            orchestrator.model,
            data_dir=arguments.data_dir,
            host=gateway.host,
            port=gateway.port,
            engine_flags=engine_flags(arguments),
            hang_after_s=orchestrator.hang_after_s,
            parent=parent,
            keep_key=not arguments.demo,
            on_note=show,
        )
    if plate.started_here:
        seconds = time.monotonic() - begun
        note(arguments, f"{plate.model} answers at {plate.base_url} after {seconds:.1f} s")
    return plate


def check_folder(data: Path) -> None:
    """Refuse a data directory that cannot be used before the hardware is tried, which takes
    seconds the first time and keeps what it finds there."""
    if os.environ.get("BEDPLATE_API_KEY"):
        make_private(data)
    else:
        keyfile.check(data)


def configured(arguments: argparse.Namespace) -> Configuration:
    """The sections that starting needs, flags included."""
    from bedplate.cli.serve import engine_values
    from bedplate.core.config import load
    from bedplate.orchestrator.api import GatewayConfig, OrchestratorConfig
    from bedplate.serving.api import ServingConfig

    engine = {k: v for k, v in engine_values(arguments).items() if k not in ("host", "port")}
    return load(
        {"gateway": GatewayConfig, "orchestrator": OrchestratorConfig, "serving": ServingConfig},
        flags={
            "gateway": {"host": arguments.host, "port": arguments.port},
            "orchestrator": {"model": arguments.model},
            "serving": engine,
        },
        file=arguments.config,
        data_dir=data_dir(arguments.data_dir),
    )


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
            given.append(f"{flag}={value}")
    return given


def show_running(arguments: argparse.Namespace, plate: Platform) -> None:
    """The platform runs already: say where."""
    if engine_flags(arguments):
        down = quoted("down", plate.data)
        note(arguments, f"it keeps the engine flags it was started with, until {down}")
    if arguments.json and not arguments.demo:
        print_json({"url": plate.base_url, "model": plate.model, "started": False})
        return
    note(arguments, f"already running: {plate.model} at {plate.base_url}")
    note(arguments, "call it with any OpenAI client and the key that the first start showed")
