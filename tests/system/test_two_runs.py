"""Two at once on one machine: the second is refused before anything of it starts, and the first
does not notice.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from suite_command import ended, heard, started, trial, valid_steps
from weighbridge.environment import place
from weighbridge.results.run.store import RunStore
from weighbridge.topologies.lab import ending

pytestmark = pytest.mark.system

SUITE = trial("[s3]", "{read: 100}", "6s", workers=1)


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    (folder / "trial.yaml").write_text(SUITE)
    words = "--layouts null:delay_ms=5 --repeats 2 --hardware lab-cpu --no-charts --no-attest"
    process = started(f"compare --suite trial.yaml {words} --out runs", subprocess.PIPE, cwd=folder)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def test_whoever_comes_second_is_refused_naming_the_first_which_goes_on(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        said = heard(first, "step 1/2")
        (run,) = (tmp_path / "runs").iterdir()
        words = "--suite trial.yaml --layouts null --hardware lab-cpu --no-attest --out second"
        seconds = [
            started(one, subprocess.PIPE, cwd=tmp_path)
            for one in (
                f"compare {words}",
                "up null --hardware lab-cpu",
                "baseline lab-cpu",
                f"resume {run}",
            )
        ]
        outcomes = [ended(one) for one in seconds]
        code, rest = ended(first)
    for refused, words in outcomes:
        assert refused == 2, words
        assert f"process {first.pid}" in words
        assert str(run.relative_to(tmp_path)) in words
        assert "since" in words
    assert not (tmp_path / "second").exists()
    steps = valid_steps(code, said + rest, RunStore.open(run)).latest().values()
    assert [step.measurement is not None for step in steps] == [True, True]
    assert not any(
        tally.errors for step in steps if step.measurement for tally in step.measurement.tallies
    )
    where = place()
    assert ending.find_leftovers(home=where.home, state=where.state) == ()
