"""Where a server listens: addresses that are taken, wrong or too open."""

from __future__ import annotations

import contextlib
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.core.errors import EnvironmentLacks, UsageError
from bedplate.serving.process import Address


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """asyncio sets TCP_NODELAY only on sockets that name their protocol; without it every
    small answer after the first waits for the client's delayed acknowledgement."""
    with contextlib.closing(Address(port=0).bind()) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_port_0_becomes_a_real_port() -> None:
    """The URL names it; IPv6 hosts are in brackets."""
    address = Address(port=0)
    with contextlib.closing(address.bind()) as listener:
        assert address.url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_taken_port_is_the_environments_fault() -> None:
    """Exit code 3; the sentence names port, host and what to do."""
    with contextlib.closing(Address(port=0).bind()) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(
            EnvironmentLacks, match=rf"port {port} of 127\.0\.0\.1 is in use; .*ss -l"
        ):
            Address(port=port).bind()


@pytest.mark.parametrize(("host", "port"), [("203.0.113.1", 0), ("not a host", 0), ("", 70_000)])
def test_an_address_that_is_not_ours_is_a_usage_error(host: str, port: int) -> None:
    """Another machine's address, no address, and a port that cannot be."""
    with pytest.raises(UsageError, match=f"cannot listen on {host} port {port}"):
        Address(host, port).bind()


def test_a_unix_socket_is_its_users_alone_and_replaces_a_stale_one(tmp_path: Path) -> None:
    """Mode 0600 from the first moment; the socket of a killed process is no obstacle."""
    path = tmp_path / "s"
    code = f"import socket; socket.socket(socket.AF_UNIX).bind({str(path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    address = Address(path=path)
    with contextlib.closing(address.bind()) as listener:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert address.url(listener) == f"unix:{path}"


def test_a_unix_socket_in_no_folder_is_the_environments_fault(tmp_path: Path) -> None:
    """Exit code 3, the path in the sentence."""
    with pytest.raises(EnvironmentLacks, match=f"cannot listen on {tmp_path}/none/s"):
        Address(path=tmp_path / "none" / "s").bind()
