"""What a comparison concludes beside programs that burn CPUs of this machine, and on a quiet one:
the command, by its outcome.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deployed_layouts import left_over
from suite_command import heard, started, trial, weighbridge
from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID
from weighbridge.results.features.open_run import open_run
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.feature import Answer

pytestmark = [pytest.mark.system, pytest.mark.alone]

CHANGES = {"per_container": 8, "warmup": "500ms", "suite": "cache: none\ncleanup: with-deployment"}
# Constant delays keep workers in step: a second has a batch more or less than the next.
SUITE = trial("[swift]", "{read: 100}", "5s", workers=4, **CHANGES)
LAYOUTS = "null:delay_ms=60,null:delay_ms=20"


@dataclass(frozen=True)
class Outcome:
    """What a comparison came to: exit status, what was printed, and its folder."""

    code: int
    printed: str
    data: RunData

    @property
    def verdicts(self) -> set[str]:
        return {
            one.verdict
            for one in self.data.comparison.effects
            if one.metric in ("throughput", "p90")
        }


def compare(folder: Path, *, repeats: int, patience: str) -> Outcome:
    (folder / "delays.yaml").write_text(SUITE)
    done = weighbridge(
        f"compare --suite {folder}/delays.yaml --layouts {LAYOUTS} --hardware lab-cpu --no-attest "
        f"--no-charts --repeats {repeats} --out {folder}/runs",
        env={"COLUMNS": "200", "WEIGHBRIDGE_PATIENCE": patience},
    )
    assert "Traceback" not in done.stderr, done.stderr
    runs = list((folder / "runs").iterdir())
    assert len(runs) == 1, done.stdout + done.stderr
    return Outcome(done.returncode, done.stdout, open_run(runs[0]))


@contextmanager
def burning(share: float) -> Iterator[None]:
    """Programs that use this share of this machine's CPUs if they get it."""
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(max(1, round((os.cpu_count() or 1) * share)))
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_beside_programs_that_burn_every_core_it_says_so_first_ranks_nothing_and_exits_with_4(
    tmp_path: Path,
) -> None:
    with burning(1.0):
        found = compare(tmp_path, repeats=1, patience="2s")
    lines = found.printed.splitlines()
    said = next(number for number, line in enumerate(lines) if "of this machine's CPUs (" in line)
    assert "waiting up to 2 s for a quiet machine" in lines[said]
    assert "python" in lines[said]
    assert not any("step 1/" in line for line in lines[:said]), "before anything is measured"
    assert any("no result is comparable unless they end" in line for line in lines)
    assert found.verdicts == {"not comparable"}
    assert {doubt.what for one in found.data.comparison.effects for doubt in one.doubts} >= {
        "machine busy"
    }
    assert not any(row.ranked for row in found.data.rows)
    assert found.code == 4, found.printed
    answer = Answer(found.data).headline
    assert f"{answer}." in found.printed
    assert answer.startswith("No ranking: ")
    assert "other programs used" in found.printed
    assert " as fast as " not in found.printed
    assert left_over() == []


@pytest.mark.test_all
def test_what_a_burst_disturbed_comes_again_and_what_a_load_disturbed_when_repair_asks(
    tmp_path: Path,
) -> None:
    suite = trial("[swift]", "{read: 100}", "5s", workers="1, 2, 4", **CHANGES)
    (tmp_path / "delays.yaml").write_text(suite)
    run = started(
        f"compare --suite {tmp_path}/delays.yaml --layouts {LAYOUTS} --hardware lab-cpu "
        f"--no-attest --no-charts --repeats 1 --out {tmp_path}/runs",
        subprocess.PIPE,
        env={"COLUMNS": "200"},
    )
    said = heard(run, "step 2/6")
    with burning(1.0):
        said += heard(run, "step 3/6")
    said += heard(run, "step 4/6")
    with burning(1.0):
        said += heard(run, "not measured again: they disturb every window")
    said += run.communicate()[0]
    assert run.returncode in (EXIT_FINE, EXIT_INVALID), said
    (folder,) = (tmp_path / "runs").iterdir()
    store = RunStore.open(folder)
    ordinary = [one.key for one in store.steps() if one.again is None]
    (again,) = (one for one in store.steps() if one.again is not None)
    assert again.key == ordinary[1]
    assert store.latest()[again.key] == again, "it was disturbed less, and counts"
    assert set(open_run(folder).spoilt) == set(ordinary[3:])
    assert f"resume {folder} --repair" in said
    repaired = weighbridge(f"resume {folder} --repair --no-charts", env={"COLUMNS": "200"})
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert "3 windows measured again; 3 of these measurements were disturbed less" in (
        repaired.stdout
    )
    assert open_run(folder).spoilt == {}
    assert left_over() == []


@pytest.mark.test_all
def test_beside_a_program_that_burns_half_of_the_machine_there_is_an_answer(tmp_path: Path) -> None:
    with burning(0.5):
        found = compare(tmp_path, repeats=5, patience="2s")
    assert found.code == 0, found.printed
    assert found.verdicts <= {"better", "provisional"}, found.printed
    assert " 3" in Answer(found.data).headline


@pytest.mark.test_all
def test_on_a_quiet_machine_it_concludes_and_exits_with_0(tmp_path: Path) -> None:
    found = compare(tmp_path, repeats=5, patience="60s")
    assert found.code == 0, found.printed
    (throughput,) = (
        one
        for one in found.data.comparison.effects
        if one.metric == "throughput" and one.workers == 4
    )
    assert (throughput.verdict, throughput.doubts) == ("better", ()), (
        throughput.text,
        found.printed,
    )
    assert f"{Answer(found.data).headline}." in found.printed
    assert " as fast as " in found.printed
    assert throughput.ratio is not None
    # Four workers in a closed loop that wait 20 instead of 60 ms: three times, but for what an
    # answer itself takes.
    assert throughput.ratio.low is not None
    assert throughput.ratio.high is not None
    assert 2 < throughput.ratio.low <= throughput.ratio.high < 3.3
    (p90,) = (
        one for one in found.data.comparison.effects if one.metric == "p90" and one.workers == 4
    )
    assert p90.verdict == "better", p90.text
    assert left_over() == []
