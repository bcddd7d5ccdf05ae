from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from pydantic import SecretStr

import weighbridge.drivers.process
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.process import LOOK_S, DriverProcess
from weighbridge.drivers.protocol import Cleanup, Prepare, Progress, Ready, Setup, Step
from weighbridge.suites import Objects, Workload

ROOT = Path(__file__).parents[2]
SETUP = Setup(
    target=Endpoint(
        api="swift",
        url="http://10.0.0.2:8080/auth/v1.0",
        user="test:tester",
        key=SecretStr("very-secret"),
    ),
    bucket_prefix="wb-1",
    seed=7,
)
MIX = Workload(
    name="mix",
    objects=Objects(size=65536, containers=2, per_container=10),
    operations={"read": 80, "write": 20},
    workers=(1, 16),
    runtime=4.0,
    warmup=1.0,
)


@contextmanager
def driver(
    tmp_path: Path, *argv: str, silence_s: float = 30.0, look: Callable[[], None] = lambda: None
) -> Iterator[DriverProcess]:
    log = tmp_path / "driver.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, *(argv or ("-m", "tests.support.fake_driver"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
        )
    with DriverProcess(process, log, silence_s=silence_s, look=look) as running:
        yield running
    assert process.returncode is not None
    assert process.stdin is not None
    assert process.stdin.closed
    assert process.stdout is not None
    assert process.stdout.closed


def test_a_driver_answers_every_command_in_turn_and_ends_well(tmp_path: Path) -> None:
    heard: list[Progress] = []
    with driver(tmp_path) as running:
        assert running.setup(SETUP).versions
        prepared = running.prepare(Prepare(workload=MIX), heard.append)
        measured = running.step(Step(workload=MIX, workers=16), heard.append)
        cleaned = running.cleanup(Cleanup(workload=MIX, what="all"))
        running.quit()
        assert running.process.returncode == 0
    assert prepared.objects == 20
    assert cleaned.deleted == 20
    assert {progress.phase for progress in heard} == {"prepare", "measure"}
    assert measured.measurement.workload == "mix"
    assert measured.measurement.workers == 16


def test_the_figures_of_the_fake_driver_are_consistent_and_depend_on_the_seed_alone(
    tmp_path: Path,
) -> None:
    results = []
    for seed in (7, 7, 8):
        with driver(tmp_path) as running:
            running.setup(SETUP.model_copy(update={"seed": seed}))
            results.append(running.step(Step(workload=MIX, workers=16)).measurement)
    assert results[0] == results[1]
    assert results[0] != results[2]
    measurement = results[0]
    in_flight = sum(tally.sum_us for tally in measurement.tallies) / 1e6 / measurement.window_s
    assert in_flight == pytest.approx(16, rel=0.02)
    for tally in measurement.tallies:
        seconds = [second for second in measurement.seconds if second.operation == tally.operation]
        assert sum(second.count for second in seconds) == tally.count
        assert sum(second.bytes for second in seconds) == tally.bytes
        assert sum(second.sum_us for second in seconds) == tally.sum_us
        assert max(second.max_us for second in seconds) == tally.max_us
        assert tally.latency is not None
        histogram = HdrHistogram.decode(tally.latency)
        assert histogram.get_total_count() == tally.count


def test_a_driver_that_reports_a_failure_raises_with_its_message_and_its_log(
    tmp_path: Path,
) -> None:
    with driver(tmp_path, "-m", "tests.support.fake_driver", "--fail", "step") as running:
        running.setup(SETUP)
        with pytest.raises(DriverError, match="'step' fails as asked") as caught:
            running.step(Step(workload=MIX, workers=1))
    assert "driver.log" in str(caught.value)


def test_a_driver_that_ends_during_a_command_raises_with_its_status_and_its_last_log_lines(
    tmp_path: Path,
) -> None:
    program = "import sys; sys.stdin.readline(); print('out of luck', file=sys.stderr); sys.exit(9)"
    with (
        driver(tmp_path, "-c", program) as running,
        pytest.raises(DriverError, match=r"exit status 9 during 'setup'") as caught,
    ):
        running.setup(SETUP)
    assert "| out of luck" in str(caught.value)


def test_a_driver_that_is_killed_raises_with_the_name_of_the_signal(tmp_path: Path) -> None:
    with driver(tmp_path, "-m", "tests.support.fake_driver", "--hang", "step") as running:
        running.setup(SETUP)
        os.kill(running.process.pid, signal.SIGKILL)
        with pytest.raises(DriverError, match="SIGKILL"):
            running.step(Step(workload=MIX, workers=1))


def test_a_silent_driver_raises_after_its_deadline_and_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    with driver(
        tmp_path, "-m", "tests.support.fake_driver", "--hang", "setup", silence_s=1.5
    ) as running:
        with pytest.raises(DriverError, match=r"was silent for 1\.5 s during 'setup'"):
            running.setup(SETUP)
        pid = running.process.pid
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_driver_that_ignores_everything_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighbridge.drivers.process, "QUIT_S", 0.5)
    ready = Ready(versions={}).model_dump_json()
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"print('{ready}', flush=True); time.sleep(600)"
    )
    with driver(tmp_path, "-c", program) as running:
        running.setup(SETUP)
    assert running.process.returncode == -signal.SIGKILL


LISTENS = """
import sys
input()
print('{"kind":"listening","port":4711,"key":"k"}', flush=True)
print('{"kind":"progress","phase":"prepare","done":0,"total":2}', flush=True)
print('{"kind":"ready","versions":{}}', flush=True)
input()
"""


def test_worker_processes_of_other_clients_are_started_before_a_listening_driver_is_ready(
    tmp_path: Path,
) -> None:
    started: list[int] = []
    with driver(tmp_path, "-c", LISTENS) as running:
        running.setup(SETUP, lambda event: started.append(event.port))
    assert started == [4711]


def test_a_driver_that_waits_for_worker_processes_nobody_starts_raises(tmp_path: Path) -> None:
    with (
        driver(tmp_path, "-c", LISTENS) as running,
        pytest.raises(DriverError, match="answered 'setup' with 'listening'"),
    ):
        running.setup(SETUP)


def test_the_end_of_something_a_driver_depends_on_is_seen_within_a_second(
    tmp_path: Path,
) -> None:
    assert LOOK_S <= 0.5
    since = time.monotonic()

    def look() -> None:
        if time.monotonic() - since > 0.5:
            raise DriverError("client-2: worker process 3 of 4 was ended by SIGKILL")

    with driver(
        tmp_path, "-m", "tests.support.fake_driver", "--hang", "setup", look=look
    ) as running:
        with pytest.raises(DriverError, match="worker process 3 of 4 was ended"):
            running.setup(SETUP)
        assert time.monotonic() - since < 10  # and not the minute of a silent driver


def test_what_the_driver_has_sent_is_not_lost_by_something_else_that_ends(
    tmp_path: Path,
) -> None:
    def look() -> None:
        assert running._lines.empty(), "looked although there was an event"

    with driver(tmp_path, look=look) as running:
        running.setup(SETUP)
        running.step(Step(workload=MIX, workers=1))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-9, "was ended by SIGKILL"),
        (137, "ended with exit status 137 (SIGKILL)"),
        (3, "ended with exit status 3"),
        (128, "ended with exit status 128"),
        (-200, "ended with exit status -200"),
    ],
)
def test_an_exit_status_names_its_signal(code: int, text: str) -> None:
    assert weighbridge.drivers.process.how_it_ended(code) == text


def test_a_line_that_is_not_an_event_raises_and_is_quoted(tmp_path: Path) -> None:
    with (
        driver(tmp_path, "-c", "input(); print('hello there')") as running,
        pytest.raises(DriverError, match=r"not an event .*hello there"),
    ):
        running.setup(SETUP)


def test_an_answer_to_another_command_raises(tmp_path: Path) -> None:
    program = 'input(); print(\'{"kind":"cleaned","deleted":0}\', flush=True); input()'
    with (
        driver(tmp_path, "-c", program) as running,
        pytest.raises(DriverError, match="answered 'setup' with 'cleaned'"),
    ):
        running.setup(SETUP)


def test_a_driver_that_failed_is_asked_nothing_more(tmp_path: Path) -> None:
    with driver(tmp_path, "-m", "tests.support.fake_driver", "--fail", "setup") as running:
        with pytest.raises(DriverError, match="fails as asked"):
            running.setup(SETUP)
        with pytest.raises(DriverError, match="before its last command was answered"):
            running.setup(SETUP)


def test_an_exception_in_the_conductor_ends_the_driver(tmp_path: Path) -> None:
    pids = []

    def interrupt(_progress: Progress) -> None:
        raise KeyboardInterrupt

    def conduct() -> None:
        with driver(tmp_path) as running:
            pids.append(running.process.pid)
            running.setup(SETUP)
            running.step(Step(workload=MIX, workers=1), interrupt)

    with pytest.raises(KeyboardInterrupt):
        conduct()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_the_key_is_in_no_error(tmp_path: Path) -> None:
    with (
        driver(tmp_path, "-c", "import sys; sys.exit(1)") as running,
        pytest.raises(DriverError) as caught,
    ):
        running.setup(SETUP)
    assert "very-secret" not in str(caught.value)
