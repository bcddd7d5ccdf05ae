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
from suite_command import trial, weighbridge
from weighbridge.results.features.open_run import open_run
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.show.feature import Answer

pytestmark = [pytest.mark.system, pytest.mark.alone]

# Constant delays keep workers in step: a second has a batch more or less than the next.
SUITE = trial(
    *("[swift]", "{read: 100}", "5s"),
    per_container=8,
    workers=4,
    warmup="500ms",
    suite="cache: none\ncleanup: with-deployment",
)
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
def burning() -> Iterator[None]:
    """Programs that use half of this machine's CPUs: one of two."""
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(max(1, (os.cpu_count() or 1) // 2))
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_beside_a_program_that_burns_a_core_it_says_so_first_ranks_nothing_and_exits_with_4(
    tmp_path: Path,
) -> None:
    with burning():
        found = compare(tmp_path, repeats=1, patience="2s")
    lines = found.printed.splitlines()
    said = next(number for number, line in enumerate(lines) if "of this machine's CPUs (" in line)
    assert "waiting up to 2 s for a quiet machine" in lines[said]
    assert "python" in lines[said]
    assert not any("step 1/" in line for line in lines[:said]), "before anything is measured"
    assert any("what is measured now is provisional" in line for line in lines)
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
