"""`bedplate serve MODEL`: one model, one process, the OpenAI API."""

from __future__ import annotations

import argparse
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.cli.flags import common_flags
from bedplate.core import keyfile, keys, paths
from bedplate.core.errors import UsageError
from bedplate.core.parent import end_with_parent
from bedplate.core.units import format_bytes

if TYPE_CHECKING:
    from bedplate.serving.api import Access, Engine


def register(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "serve",
        parents=[common_flags()],
        help="serve one model over the OpenAI API",
        description="Serve one model over the OpenAI API, on this machine alone by default.",
    )
    verb.add_argument("model", help="a .gguf file, a safetensors folder, or a name such as smollm2")
    add_engine_flags(verb)
    verb.add_argument("--host", help="address to listen on (127.0.0.1)")
    verb.add_argument("--port", type=int, help="port to listen on (8000; 0: any free one)")
    verb.add_argument("--uds", metavar="PATH", help="listen on a Unix socket instead")
    verb.add_argument("--served-model-name", metavar="NAME", help="the model's name in the API")
    verb.add_argument("--internal-key-file", type=Path, help=argparse.SUPPRESS)
    verb.add_argument("--parent", type=int, help=argparse.SUPPRESS)
    verb.set_defaults(run=run)


def add_engine_flags(verb: argparse.ArgumentParser) -> None:
    """The flags that shape an engine; unset ones come from the configuration."""
    group = verb.add_argument_group("engine")
    group.add_argument("--device", metavar="BACKEND[:INDEX]", help="HAL device (cpu)")
    group.add_argument(
        "--dtype",
        choices=["auto", "float32", "bfloat16", "quantized"],
        help="how weights are held and multiplied (auto: quantized where the file is)",
    )
    group.add_argument("--max-model-len", type=int, metavar="TOKENS", help="longest request")
    group.add_argument("--max-num-seqs", type=int, metavar="N", help="requests running at once")
    group.add_argument(
        "--max-num-batched-tokens", type=int, metavar="TOKENS", help="token budget of one step"
    )
    group.add_argument("--block-size", type=int, metavar="TOKENS", help="tokens in a KV block")
    group.add_argument("--kv-memory-bytes", type=int, metavar="BYTES", help="size of the KV pool")
    group.add_argument(
        "--enable-prefix-caching",
        action=argparse.BooleanOptionalAction,
        help="share the KV of equal prefixes (on)",
    )
    group.add_argument(
        "--metrics-alias", choices=["vllm", "none"], help="repeat metrics under vLLM's names (vllm)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Load, print where to talk to it, answer until told to stop."""
    from bedplate.core.config import load
    from bedplate.core.logging import configure
    from bedplate.serving.api import Address, Engine, ServingConfig, serve

    configure()
    if arguments.parent:
        # Without its supervisor nobody could stop it when it hangs.
        end_with_parent(arguments.parent, signal.SIGKILL)
    data = paths.data_dir(arguments.data_dir)
    configuration = load(
        {"serving": ServingConfig},
        flags={"serving": engine_values(arguments)},
        file=arguments.config,
        data_dir=data,
    )
    config = configuration.section(ServingConfig)
    address = Address(config.host, config.port, Path(arguments.uds) if arguments.uds else None)
    listener = address.bind()
    with contextlib.ExitStack() as undo:
        undo.callback(address.close, listener)
        if arguments.internal_key_file is None:
            keyfile.check(data)  # before the model is loaded, which takes time
        engine = Engine(arguments.model, config.options(), name=arguments.served_model_name)
        undo.callback(engine.close)
        # A key that is made now will be seen: nothing that fails comes after it.
        access, shown = access_of(arguments.internal_key_file, data)
        undo.pop_all()
    print(describe(engine), flush=True)
    if shown is not None:
        print(f"API key, shown once: {shown}", flush=True)
    url = address.url(listener)
    return serve(listener, engine, access, lambda: print(f"listening on {url}/v1", flush=True))


def access_of(internal_key_file: Path | None, data: Path) -> tuple[Access, str | None]:
    """Who may call: the platform's other processes, or the keys of the data directory.

    The second value is a key made just now, to be shown.
    """
    from bedplate.serving.api import Access

    if internal_key_file is None:
        ring, shown = keyfile.load_or_make(data)
        return Access(ring), shown
    try:
        internal = internal_key_file.read_text()
    except OSError as cause:
        raise UsageError(f"cannot read {internal_key_file}: {cause.strerror}") from cause
    return Access(keys.KeyRing({}), internal), None


def engine_values(arguments: argparse.Namespace) -> dict[str, object]:
    """The flags as keys of the section `serving`; None where not given."""
    return {
        "host": getattr(arguments, "host", None),
        "port": getattr(arguments, "port", None),
        "device": arguments.device,
        "dtype": arguments.dtype,
        "max_model_len": arguments.max_model_len,
        "max_num_seqs": arguments.max_num_seqs,
        "max_num_batched_tokens": arguments.max_num_batched_tokens,
        "block_size": arguments.block_size,
        "kv_memory_bytes": arguments.kv_memory_bytes,
        "enable_prefix_caching": arguments.enable_prefix_caching,
        "metrics_alias": arguments.metrics_alias,
    }


def describe(engine: Engine) -> str:
    """Two lines on what was loaded, for people."""
    config, limits, info = engine.model.config, engine.limits, engine.device.info
    isa = info.properties.get("cpu.isa", "")
    threads = info.properties.get("cpu.threads", "")
    where = f"{engine.device.id}" + (f" [{isa}], {threads} threads" if isa else "")
    sharing = "on" if limits.prefix_sharing else "off"
    return (
        f"{engine.name} (llama, {config.parameters / 1e6:.1f} M parameters, "
        f"{engine.model.weight_format()} as {engine.precision}) on {where}\n"
        f"KV pool {limits.block_count:,} blocks of {limits.block_tokens} tokens "
        f"({format_bytes(engine.kv_bytes)}), prefix sharing {sharing}"
    )
