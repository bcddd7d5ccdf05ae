"""A known knob of a real radosgw on capped hosts is found, and a dummy is not.

That the order of the trials does not matter, tests/weighbridge/tuning shows.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from deployed_layouts import left_over
from suite_command import weighbridge
from weighbridge.environment import place
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.tuning.tuning_result import setting_results
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.trial import CONFIRMATION

pytestmark = [pytest.mark.system, pytest.mark.pair, pytest.mark.long]

# Answers of 500 bytes in two pieces: with Nagle's algorithm the second waits for the
# acknowledgement of the first, which a Linux client delays by 40 ms. Two workers then get some 45 a
# second, however fast the host is, and 300 to 500 without it. The dummy is about work that is done
# once in half an hour. A trial of one second counts 45 answers, and whatever else this machine does
# takes some of them: the threshold is far beyond that and far below the knob's effect. Two rounds
# are spare for trials that are not valid because the driver lacked CPU.
TUNING = """
name: known-knob
about: One setting that is known to matter, and one that cannot
layout: rgw-beast:radosgw.tcp_nodelay=false
hardware: lab-cpu
api: s3
cache: none
workloads:
  - name: tiny-read
    objects: {size: 500B, containers: 1, per_container: 20}
    operations: {read: 100}
    workers: [2]
    runtime: 1s
    warmup: 300ms
objectives: [{of: throughput, workload: tiny-read}]
threshold: {throughput_ratio: 1.5}
trials: {least: 5, most: 7, baseline_every: 5}
confirm: 0
parameters:
  - {key: radosgw.tcp_nodelay, values: [true]}
  - {key: radosgw.gc.processor_period, values: [30m]}
"""


@pytest.mark.parametrize("confirm", [0, pytest.param(1, marks=pytest.mark.test_all)])
def test_a_knob_that_matters_is_found_and_a_dummy_shows_no_effect_on_a_real_radosgw(
    tmp_path: Path, confirm: int
) -> None:
    (tmp_path / "known-knob.yaml").write_text(TUNING)
    done = weighbridge(
        f"tune {tmp_path}/known-knob.yaml --no-attest --no-charts --seed 1 --confirm {confirm} "
        f"--out {tmp_path}/runs",
        env={"COLUMNS": "160"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    data = open_run(run)
    table = setting_results(data)
    assert table is not None
    verdicts = {next(iter(entry.variant.settings)): entry.verdict for entry in table.entries}
    assert verdicts["radosgw.tcp_nodelay"] == "better"
    assert verdicts["radosgw.gc.processor_period"] in ("not significant", "too small to matter")
    # Rounds of baseline, settings that are not clear yet, baseline, all on one deployment in which
    # radosgw alone was restarted.
    assert 20 <= len(data.trials) <= 28
    assert {trial.deployment for trial in data.trials} == {0}
    assert {trial.scope for trial in data.trials[1:]} <= {"restart", "nothing"}
    assert not any(trial.failed for trial in data.trials)
    lines = list(csv.DictReader((run / "derived" / "ledger.csv").read_text().splitlines()))
    assert {line["verdict"] for line in lines} == set(verdicts.values())
    pasted = (run / "derived" / "winner" / "ceph.conf").read_text()
    assert "tcp_nodelay=1" in pasted
    assert "processor_period" not in pasted
    for again in map(RunData, (run / CONFIRMATION).iterdir() if confirm else ()):
        assert {key.layout for key in again.steps} == {layout.name for layout in again.plan.layouts}
    assert (run / CONFIRMATION).exists() == bool(confirm)
    assert left_over() == [], place()
