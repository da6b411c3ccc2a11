"""Chat templates: what they may do, and what happens to those that do more."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path

import psutil
import pytest

from bedplate.serving import template as server
from bedplate.serving import template_child as module
from bedplate.serving.errors import RequestRefused, UnsupportedModel
from bedplate.serving.template import ChatTemplate

MESSAGES = [{"role": "user", "content": "Hi {{ 7 * 7 }}"}]

Make = Callable[..., ChatTemplate]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes templates and ends their children."""
    with ExitStack() as stack:
        yield lambda source, variables=None: stack.enter_context(
            closing(ChatTemplate(source, variables or {}))
        )


def test_messages_are_data_not_template(make: Make) -> None:
    """Braces in a message stay as they are, and the variables are there."""
    source = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    text = make(source, {"bos_token": "<s>"}).render(MESSAGES)
    assert text == "<s>[user]Hi {{ 7 * 7 }}"


def test_the_generation_prompt_can_be_left_out(make: Make) -> None:
    """`add_generation_prompt` reaches the template."""
    template = make("{{ 'go' if add_generation_prompt else 'stop' }}")
    assert template.render(MESSAGES) == "go"
    assert template.render(MESSAGES, add_generation_prompt=False) == "stop"


@pytest.mark.parametrize(
    "source",
    [
        "{{ lipsum.__globals__['os'].system('true') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ raise_exception('no system role here') }}",
        "{{ messages[0].content.missing.deeper }}",
        "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ 'x' * 10000 }}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'x' * 10000000000 }}",
        "{{ (8 + messages|length) ** (9 ** 9) }}",
        "{{ 'x'.ljust(9999999999) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '{:>9999999999}'.format(1) }}",
        "{{ 'x'|center(9999999999) }}",
        "{{ 'x'|indent(9999999999) }}",
        "{{ [1] * 10000000000 }}",
    ],
)
def test_a_hostile_template_costs_one_refusal(
    make: Make, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Escapes, endless loops, recursion and huge values end as a refusal of that request."""
    monkeypatch.setattr(server, "DEADLINE_S", server.DEADLINE_S / 4)  # some take all of it
    with pytest.raises(RequestRefused) as info:
        make(source).render(MESSAGES)
    assert info.value.status == 400
    assert info.value.condition == "template_error"


def test_a_template_that_does_not_compile_refuses_the_model(make: Make) -> None:
    """The model is refused at load, with the reason."""
    with pytest.raises(UnsupportedModel, match="does not compile"):
        make("{% for %}")


def test_the_limits_leave_room_for_real_prompts(make: Make) -> None:
    """A conversation of 2,000 messages renders."""
    source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\n{% endfor %}"
    text = make(source).render(MESSAGES * 2000)
    assert text.count("user") == 2000
    assert len(text) < module.LONGEST_OUTPUT_CHARACTERS


def test_the_template_serves_on_after_a_hostile_message(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that makes the template run away is refused; the next one renders."""
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    template = make("{% if messages[0].content == 'loop' %}" + loop + "{% endif %}done")
    with monkeypatch.context() as patch:
        patch.setattr(server, "DEADLINE_S", server.DEADLINE_S / 4)
        with pytest.raises(RequestRefused, match="did not finish"):
            template.render([{"role": "user", "content": "loop"}])
    assert template.render(MESSAGES) == "done"


def test_tojson_writes_json_as_models_expect_it(make: Make) -> None:
    """Tool descriptions: characters stay readable, and an indent is kept."""
    tools = {"name": "süd", "n": [1, 2]}
    assert make("{{ tools | tojson }}", {"tools": tools}).render(MESSAGES) == json.dumps(
        tools, ensure_ascii=False
    )
    assert make("{{ tools | tojson(indent=2) }}", {"tools": tools}).render(MESSAGES) == json.dumps(
        tools, ensure_ascii=False, indent=2
    )


def test_the_longest_output_is_still_an_output() -> None:
    """The limit itself passes, one character more does not."""
    template = module.compile_template("{{ text }}{{ more }}")
    longest = "x" * module.LONGEST_OUTPUT_CHARACTERS
    assert module.render(template, {"text": longest, "more": ""}) == {"text": longest}
    assert "error" in module.render(template, {"text": longest, "more": "x"})


LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


def test_a_crash_is_not_called_slowness(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that is killed in the middle is named as that, with the signal."""
    monkeypatch.setattr(server, "DEADLINE_S", 60.0)
    template = make(LOOP)
    child = template._child
    assert child is not None
    process = psutil.Process(child._process.pid)
    idle_s = process.cpu_times().user

    def kill_when_busy() -> None:
        while process.cpu_times().user < idle_s + 0.1:
            time.sleep(0.01)
        process.kill()

    killer = threading.Thread(target=kill_when_busy)
    killer.start()
    with pytest.raises(RequestRefused, match=r"crashed its process \(SIGKILL\)"):
        template.render(MESSAGES)
    killer.join()


def test_a_child_that_ended_unasked_is_replaced(make: Make) -> None:
    """The kernel ends a child with the thread that started it; that costs no request."""
    template = make("done")
    child = template._child
    assert child is not None
    child._process.kill()
    child._process.wait()
    assert template.render(MESSAGES) == "done"


def test_the_time_of_day_is_there(make: Make) -> None:
    """`strftime_now` gives hours and minutes, not midnight."""
    before = datetime.now()
    text = make("{{ strftime_now('%Y-%m-%d %H:%M:%S.%f') }}").render(MESSAGES)
    assert before <= datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f") <= datetime.now()


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with open pipes, ended by force at the latest."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, *command], stdin=pipe, stdout=pipe) as child:
        try:
            yield child
        finally:
            child.kill()


def tell(child: subprocess.Popen[bytes], *messages: object) -> None:
    """Write lines of JSON."""
    assert child.stdin is not None
    child.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    child.stdin.flush()


def test_the_kernel_ends_a_child_that_computes_too_long() -> None:
    """Also when nobody is there to look at the clock; every prompt has its own time."""
    code = "from bedplate.serving import template_child as m; m.CPU_S = 1; m.main()"
    with started("-c", code, str(os.getpid())) as child:
        tell(child, {"source": LOOP, "variables": {}}, {})
        assert child.wait(60) == -signal.SIGXCPU


def test_a_child_ends_with_its_server() -> None:
    """Killed, the server cannot end it; the kernel does, though its pipe stays open."""
    middle = (
        "import os, subprocess, sys, time; subprocess.Popen([sys.executable, '-m', "
        "'bedplate.serving.template_child', str(os.getpid())]); time.sleep(600)"
    )
    with started("-c", middle) as parent:
        tell(parent, {"source": "x", "variables": {}})
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"{}\n"
        (child,) = psutil.Process(parent.pid).children()
        parent.kill()
        psutil.wait_procs([child], timeout=30)
        alive = child.is_running() and child.status() != psutil.STATUS_ZOMBIE
        if alive:
            child.kill()
        assert not alive


def test_a_module_in_the_working_directory_is_not_run(tmp_path: Path) -> None:
    """A model's folder may hold a file named like a module of ours."""
    for name in ("queue", "jinja2", "json", "bedplate"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    code = (
        "import os, sys; from contextlib import closing; "
        "from bedplate.serving.template import ChatTemplate; "
        "os.chdir(sys.argv[1]); sys.path.insert(0, '')\n"
        "with closing(ChatTemplate('done', {})) as t: print(t.render([]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "done\n"
    assert not (tmp_path / "ran").exists()


def test_limits_that_were_made_harder_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own `ulimit` may be below ours, and may not be raised."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.setrlimit", lambda what, both: told.append(both))
    for hard in (3600, resource.RLIM_INFINITY):
        monkeypatch.setattr("resource.getrlimit", lambda what, hard=hard: (hard, hard))
        module.limit(resource.RLIMIT_CPU, 7000)
    assert told == [(3600, 3600), (7000, resource.RLIM_INFINITY)]
