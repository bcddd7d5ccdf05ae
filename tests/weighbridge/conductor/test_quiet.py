"""Waiting for a busy machine, and reporting one that stays busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stub_run import Run, Seen
from weighbridge.conductor import quiet
from weighbridge.conductor.quiet import BackgroundLoad, BusyProgram, QuietMachine, background_load

IDLE = BackgroundLoad(share=0.02)
BUSY = BackgroundLoad(
    share=0.53,
    programs=(
        BusyProgram(pid=4711, name="burner", cpus=0.99),
        BusyProgram(pid=12, name="other", cpus=0.07),
    ),
)


class Clock:
    """Advances by a second with each look."""

    def __init__(self, looks: Callable[[int], BackgroundLoad]) -> None:
        self.now_s = 0.0
        self._looks = looks

    def look(self) -> BackgroundLoad:
        self.now_s += 1.0
        return self._looks(int(self.now_s))

    def quiet(self, patience_s: float = 60.0) -> QuietMachine:
        return QuietMachine(look=self.look, clock=lambda: self.now_s, patience_s=patience_s)


def test_a_quiet_machine_is_checked_once_and_not_reported() -> None:
    said: list[str] = []
    clock = Clock(lambda _: IDLE)
    assert clock.quiet().wait(said.append) is None
    assert (clock.now_s, said) == (1.0, [])


def test_a_run_waits_until_a_busy_machine_is_quiet() -> None:
    said: list[str] = []
    clock = Clock(lambda at: BUSY if at < 10 else IDLE)
    assert clock.quiet().wait(said.append) is None
    assert clock.now_s == 10.0
    assert said == [f"{BUSY.words}; waiting up to 60 s for a quiet machine", "the machine is quiet"]


def test_a_machine_that_stays_busy_is_reported_after_a_minute() -> None:
    said: list[str] = []
    clock = Clock(lambda _: BUSY)
    assert clock.quiet().wait(said.append) == BUSY
    assert 60.0 <= clock.now_s <= 62.0
    assert said[-1] == (
        "others use 53 % of this machine's CPUs (burner 4711: 0.99 CPU, other 12: 0.07 CPU); what "
        "is measured now is provisional"
    )


def test_after_a_wait_in_vain_there_is_no_other_until_the_machine_was_quiet() -> None:
    clock = Clock(lambda at: IDLE if at in (63, 64) else BUSY)
    waiting = clock.quiet()
    assert waiting.wait(lambda _: None) == BUSY
    before_s = clock.now_s
    assert waiting.wait(lambda _: None) == BUSY
    assert clock.now_s == before_s + 1.0
    assert waiting.wait(lambda _: None) is None
    assert clock.now_s == before_s + 2.0
    clock.now_s = 64.0
    assert waiting.wait(lambda _: None) == BUSY
    assert clock.now_s >= 64.0 + 60.0


def test_a_tenth_of_the_machine_is_busy_and_less_is_not() -> None:
    assert BackgroundLoad(share=0.1).busy
    assert not BackgroundLoad(share=0.099).busy


def test_time_that_a_hypervisor_took_is_named() -> None:
    assert (
        BackgroundLoad(share=0.5, stolen=0.3).words
        == "others use 50 % of this machine's CPUs (taken by the hypervisor: 30 %)"
    )


def test_a_deployment_on_a_busy_machine_is_recorded_with_share_and_names(tmp_path: Path) -> None:
    run = Run(tmp_path)
    store, seen = run.store(), Seen()
    looks = iter([BUSY, BUSY, IDLE])
    waiting = QuietMachine(look=lambda: next(looks), clock=iter([0.0, 0.0, 61.0]).__next__)
    run.into(store, display=seen, quiet=waiting)
    (event,) = [one for one in store.events() if one.kind == "busy"]
    assert (event.share, event.repeat, event.layout) == (0.53, 0, store.events()[0].layout)
    assert "burner 4711" in event.text
    assert "waiting up to 60 s" in seen.said[1]


@pytest.fixture
def stat(tmp_path: Path) -> Path:
    (tmp_path / "stat").write_text("cpu  100 0 100 1000 0 0 0 50 0 0\n")
    return tmp_path


def test_stolen_time_is_read_from_the_kernels_count_and_counts_as_used(
    stat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pass_time(seconds: float) -> None:
        (stat / "stat").write_text("cpu  100 0 100 1000 0 0 0 100 0 0\n")

    monkeypatch.setattr(quiet.time, "sleep", pass_time)
    monkeypatch.setattr(quiet.time, "monotonic", iter([0.0, 1.0]).__next__)
    monkeypatch.setattr(quiet.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(quiet.os, "sysconf", lambda _: 100)
    found = background_load(proc=stat)
    assert found.stolen == pytest.approx(0.5)
    assert found.share == pytest.approx(0.5, abs=0.1)


@pytest.fixture
def burner() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        yield program
        program.kill()


def test_a_program_that_uses_a_core_is_found_by_number_and_name(
    burner: subprocess.Popen[bytes],
) -> None:
    # A busy machine has many programs: ask for all.
    found = background_load(1.0, most=10_000)
    assert burner.pid in {one.pid for one in found.programs}
