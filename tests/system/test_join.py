"""A load client that nobody can reach from outside: in a network namespace of its own, with a way
out and none in but replies, it joins a comparison; its own NIC says what it sent.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from weighbridge.common.errors import EXIT_FINE
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.system

KEY = "a-planted-secret"
HERE, THERE = "10.213.7.1", "10.213.7.2"
PORT = 17420
OBJECT_BYTES = 65536


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def namespace() -> Iterator[str]:
    """A network namespace whose only link is to this machine, at HERE."""
    name = f"wb{secrets.token_hex(3)}"
    ip("netns", "add", name)
    try:
        ip("link", "add", name, "type", "veth", "peer", "name", "out", "netns", name)
        ip("address", "add", f"{HERE}/30", "dev", name)
        ip("link", "set", name, "up")
        ip("-n", name, "address", "add", f"{THERE}/30", "dev", "out")
        ip("-n", name, "link", "set", "out", "up")
        yield name
    finally:
        # With its end there, the link here is gone, too.
        ip("netns", "delete", name)


@contextmanager
def started(log: Path, *argv: str | Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("wb") as output,
        subprocess.Popen(argv, stdout=output, stderr=output, env={**os.environ, **more}) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def received_bytes(link: str) -> int:
    """What this machine got over a link of its own."""
    return int(Path(f"/sys/class/net/{link}/statistics/rx_bytes").read_text())


def test_a_client_in_a_network_of_its_own_makes_half_of_the_load(tmp_path: Path) -> None:
    weighbridge = (sys.executable, "-m", "weighbridge")
    with ExitStack() as stack:
        link = stack.enter_context(namespace())
        target = stack.enter_context(
            subprocess.Popen(
                [*weighbridge, "null-target", "--host", HERE, "--port", "0", "--delay-ms", "20",
                 "--user", "u"],
                stdout=subprocess.PIPE,
                env={**os.environ, "WEIGHBRIDGE_NULL_KEY": KEY},
            )
        )  # fmt: skip
        stack.callback(target.kill)
        assert target.stdout is not None
        url = json.loads(target.stdout.readline())["listening"]
        token = tmp_path / "token"
        token.write_text("t" * 64)
        token.chmod(0o600)
        # The client may come first: it waits for the run.
        client = stack.enter_context(
            started(
                tmp_path / "client.txt",
                *("ip", "netns", "exec", link, *weighbridge, "join", f"{HERE}:{PORT}"),
                *("--token-file", token, "--name", "guest"),
            )
        )
        run = stack.enter_context(
            started(
                tmp_path / "run.txt",
                *(
                    *weighbridge,
                    "compare",
                    "--s3",
                    f"a={url}",
                    "--sizes",
                    "64KiB",
                    "--mix",
                    "write",
                ),
                *("--workers", "4", "--duration", "2s", "--repeats", "1", "--no-charts"),
                *("--clients-join", f"{HERE}:{PORT}=1", "--token-file", token),
                *("--out", tmp_path / "runs"),
                AWS_ACCESS_KEY_ID="u",
                AWS_SECRET_ACCESS_KEY=KEY,
            )
        )
        assert run.wait(60.0) == EXIT_FINE, (tmp_path / "run.txt").read_text()
        assert client.wait(10.0) == EXIT_FINE, (tmp_path / "client.txt").read_text()
        sent = received_bytes(link)
    ((step,),) = (RunStore.open(one).steps() for one in (tmp_path / "runs").iterdir())
    measurement = step.measurement
    assert measurement is not None
    assert measurement.load is not None
    assert [one.client for one in measurement.load.clients] == ["client-1", "guest"]
    # The step's window is a part of what was sent over the link.
    assert sent > measurement.tallies[0].count / 2 * OBJECT_BYTES * 0.8
    assert measurement.tallies[0].errors == {}
