"""A run that a client joins, as real processes on loopback: what is measured; each death once."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.drivers.joining.two_sides import free_port, within
from tests.weighbridge.command_line import command, environment
from tests.weighbridge.test_line import KEY, null_target
from weighbridge.common.errors import EXIT_FINE, EXIT_TARGET, EXIT_USAGE
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.long

START_S = 60.0
"""For all that starts on a busy machine."""
TARGET = ("--delay-ms", "20")


class Sides:
    """A run that waits for one client, and that client: their processes and folder."""

    def __init__(self, folder: Path, target: str, duration: str) -> None:
        self.folder = folder
        self.target_port = int(target.rpartition(":")[2])
        self.token = folder / "token"
        self.place = f"127.0.0.1:{free_port()}"
        words = ("--sizes", "4k", "--mix", "write", "--workers", "4", "--repeats", "1")
        self.run = self._start(
            "run",
            *("compare", "--s3", f"a={target}", *words, "--duration", duration, "--no-charts"),
            *("--clients-join", f"{self.place}=1", "--token-file", self.token),
            *("--out", folder / "runs"),
            AWS_ACCESS_KEY_ID="weigh:er",
            AWS_SECRET_ACCESS_KEY=KEY,
        )
        assert within(START_S, self.token.exists)
        self.client = self.join("guest")

    def join(self, name: str, token: Path | None = None) -> subprocess.Popen[bytes]:
        token = token or self.token
        return self._start(name, "join", self.place, "--token-file", token, "--name", name)

    def said(self, name: str) -> str:
        return " ".join((self.folder / f"{name}.txt").read_text().split())

    def steps(self) -> list[StepResult]:
        (run,) = (self.folder / "runs").iterdir()
        return list(RunStore.open(run).steps())

    def measuring(self) -> bool:
        """Whether worker processes of both sides make load."""
        return self._loads(self.run) and self._loads(self.client)

    def all(self) -> list[psutil.Process]:
        """All processes of both sides."""
        both = [psutil.Process(self.run.pid), psutil.Process(self.client.pid)]
        return [*both, *(one for side in both for one in side.children(recursive=True))]

    def _loads(self, side: subprocess.Popen[bytes]) -> bool:
        below = psutil.Process(side.pid).children(recursive=True)
        return any(self._is_loading(one) for one in below)

    def _is_loading(self, process: psutil.Process) -> bool:
        try:
            return "worker" in process.cmdline() and any(
                one.raddr and one.raddr.port == self.target_port
                for one in process.net_connections("tcp")
            )
        except psutil.Error:
            return False

    def _start(self, name: str, *words: str | Path, **more: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.txt").open("wb") as log:
            return subprocess.Popen(
                command(*words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(self.folder, COLUMNS="300", **more),
            )

    def end(self) -> None:
        for one in (self.run, self.client):
            if one.poll() is None:
                one.kill()
            one.wait()


@contextmanager
def sides(folder: Path, duration: str) -> Iterator[Sides]:
    with null_target(*TARGET) as target:
        both = Sides(folder, target, duration)
        try:
            yield both
        finally:
            both.end()


def ended(processes: list[psutil.Process]) -> bool:
    return not [
        one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    ]


def test_a_client_that_joined_makes_half_of_the_load_and_no_secret_is_seen(tmp_path: Path) -> None:
    with sides(tmp_path, "3s") as both:
        assert within(START_S, both.measuring, 0.5), both.said("run")
        seen = [
            word
            for one in both.all()
            for word in (*one.cmdline(), *(one.environ().values() if _is_client(one, both) else ()))
        ]
        assert not [word for word in seen if KEY in word or both.token.read_text().strip() in word]
        wrong = tmp_path / "wrong"
        wrong.write_text("w" * 64)
        wrong.chmod(0o600)
        assert both.join("stranger", wrong).wait(START_S) == EXIT_USAGE
        assert both.run.wait(START_S) == EXIT_FINE, both.said("run")
        assert both.client.wait(START_S) == EXIT_FINE, both.said("guest")
        (step,) = both.steps()
    assert step.measurement is not None
    assert step.valid, step.notes
    assert step.measurement.load is not None
    clients = step.measurement.load.clients
    assert [one.client for one in clients] == ["client-1", "guest"]
    assert min(one.cpu_s for one in clients) > 0
    assert clients[1].cpu_limit > 0
    assert f"weighbridge join {both.place} --token-file token" in both.said("run")
    assert "guest has joined: 1 of 1 clients" in both.said("run")
    assert "without the token of this run" in both.said("run")
    assert "refuses this token" in both.said("stranger")
    assert both.said("guest").endswith("the run has ended")


def _is_client(process: psutil.Process, both: Sides) -> bool:
    """Whether it belongs to the client, whose environment has no key of its own."""
    return both.client.pid in (process.pid, *(one.pid for one in process.parents()))


def test_a_client_that_is_lost_in_a_step_ends_it_within_five_seconds_with_its_name(
    tmp_path: Path,
) -> None:
    with sides(tmp_path, "60s") as both:
        assert within(START_S, both.measuring, 0.5), both.said("run")
        there = both.all()
        both.client.kill()
        began_s = time.monotonic()
        assert within(20.0, lambda: bool(both.steps()), 0.1)
        took_s = time.monotonic() - began_s
        (step,) = both.steps()
        assert both.run.wait(START_S) == EXIT_TARGET
        assert within(5.0, lambda: ended(there), 0.1)
    assert took_s < 5.0
    assert step.measurement is None
    assert "guest: worker process 2 of 2 has ended: the host is gone" in step.notes[0]


def test_a_client_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    with sides(tmp_path, "60s") as both:
        assert within(START_S, both.measuring, 0.5), both.said("run")
        there = both.all()
        both.run.kill()
        assert both.client.wait(15.0) == EXIT_TARGET, both.said("guest")
        assert within(15.0, lambda: ended(there), 0.1)
    assert "is lost: the run was killed" in both.said("guest")


def test_a_run_that_waits_in_vain_leaves_nothing_behind(tmp_path: Path) -> None:
    with null_target(*TARGET) as target:
        done = subprocess.run(
            command(
                *("compare", "--s3", f"a={target}", "--clients-join", f"127.0.0.1:{free_port()}=2"),
                *("--token-file", tmp_path / "token", "--join-wait", "0.5s"),
                *("--out", tmp_path / "runs"),
            ),
            env=environment(tmp_path, AWS_ACCESS_KEY_ID="weigh:er", AWS_SECRET_ACCESS_KEY=KEY),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == EXIT_TARGET
    assert "2 of 2 clients have not joined" in done.stderr
    assert not (tmp_path / "runs").exists()
