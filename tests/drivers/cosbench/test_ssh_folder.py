"""An archive on another host, by an SSH server of this machine with its own keys."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import asyncssh
import pytest

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import collect, folder_at


class AnyUser(asyncssh.SSHServer):
    """Lets in anyone with the given key."""

    def __init__(self, key: asyncssh.SSHKey) -> None:
        self._key = key

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == "bench" and key.public_data == self._key.public_data


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Serves `tmp_path` by SFTP, to a user with a separate home who knows the server; makes the
    place of a path in it.
    """
    host_key, user_key = (
        asyncssh.generate_private_key("ssh-ed25519"),
        asyncssh.generate_private_key("ssh-ed25519"),
    )
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def serve() -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            lambda: AnyUser(user_key),
            "127.0.0.1",
            0,
            server_host_keys=[host_key],
            sftp_factory=True,
            allow_scp=False,
        )

    async def end(server: asyncssh.SSHAcceptor) -> None:
        server.close()
        await server.wait_closed()
        # Connections whose peer is gone end by themselves, in separate tasks.
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(serve(), loop).result(20)
    port = server.get_port()
    ssh = tmp_path / "home" / ".ssh"
    ssh.mkdir(parents=True)
    user_key.write_private_key(str(ssh / "id_ed25519"))
    (ssh / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    try:
        yield lambda path: f"ssh://bench@127.0.0.1:{port}{tmp_path}/{path}"
    finally:
        asyncio.run_coroutine_threadsafe(end(server), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_an_archive_is_read_from_another_host_like_one_of_this_host(
    tmp_path: Path, place: Callable[[str], str]
) -> None:
    folder = tmp_path / "cosbench" / "archive" / "w1-n"
    folder.mkdir(parents=True)
    (folder.parent / "run-history.csv").write_text("Id,Name\nw1,n,2026-11-21 00:00:00,then\n")
    (folder / "w1-n.csv").write_text("figures")
    (folder / "scripts.log").touch()
    (tmp_path / "cosbench" / "log").mkdir()
    log = "x" * 600_000 + "\n[INFO] - begin to process workload w1\n[ERROR] - why\n"
    (tmp_path / "cosbench" / "log" / "system.log").write_text(log)
    reached = folder_at(place("cosbench/archive"))
    try:
        found = collect(
            reached,
            "w1",
            "n",
            datetime.fromisoformat("2026-11-21 00:00:00"),
            "FINISHED",
            lambda _seconds: None,
        )
        assert found.summary == "figures"
        assert found.system_log == "[ERROR] - why\n"
        assert reached.names("w2-none") == ()
        assert reached.read("w1-n/none") is None
    finally:
        reached.close()


def test_an_unknown_host_is_not_trusted(tmp_path: Path, place: Callable[[str], str]) -> None:
    (tmp_path / "home" / ".ssh" / "known_hosts").write_text("")
    with pytest.raises(DriverError, match="this user does not know its key") as error:
        folder_at(place(""))
    assert "ssh-keyscan" in error.value.advice


def test_a_missing_key_and_a_missing_folder_are_reported(
    tmp_path: Path, place: Callable[[str], str]
) -> None:
    with pytest.raises(DriverError, match="there is no such folder on that host"):
        folder_at(place("none"))
    (tmp_path / "home" / ".ssh" / "id_ed25519").unlink()
    with pytest.raises(DriverError, match="Permission denied") as error:
        folder_at(place(""))
    assert "with a key" in error.value.advice


def test_a_host_that_does_not_answer_is_named() -> None:
    with pytest.raises(DriverError, match=r"127\.0\.0\.1: over ssh: "):
        folder_at("ssh://bench@127.0.0.1:9/archive")
