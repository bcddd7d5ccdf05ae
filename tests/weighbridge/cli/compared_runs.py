"""For tests: made-up runs to compare, and the command that compares them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from fake_run import WORKLOADS, fake_run
from made_up import fake_measurement
from weighbridge.command import weighbridge
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested, Kind, Unit

SMALL = WORKLOADS[0].model_copy(update={"workers": (1, 32), "runtime": 10.0})


def another(runs: Path, seed: int, **fields: Any) -> Path:
    """Another run of the same plan, except for these fields of its suite, with another seed."""
    folder = fake_run(runs, workloads=[SMALL], telemetry=False, seed=seed).folder
    plan = json.loads((folder / "plan.resolved.json").read_text())
    plan["suite"] |= {"seed": 2014, **fields}
    (folder / "plan.resolved.json").write_text(json.dumps(plan))
    return folder


def slowed(run: Path, to: Path, stalled: Collection[int]) -> Path:
    """A copy of a run in which swift takes 8 times as long with 32 workers, and stalls for 4 s in
    these repeats.
    """
    store = RunStore.open(shutil.copytree(run, to))
    for key, step in store.latest().items():
        if (key.layout, key.workers) == ("swift", 32):
            assert step.measurement is not None
            mean_ms = 8000 * step.measurement.window_s * 32 / step.measurement.tallies[0].count
            slow = fake_measurement(window_s=10, workers=32, mean_ms=mean_ms, seed=key.repeat)
            gap = {3, 4, 5, 6} if key.repeat in stalled else {}
            seconds = tuple(
                one.model_copy(update={"count": 0}) if one.second in gap else one
                for one in slow.seconds
            )
            store.append(
                step.model_copy(
                    update={"measurement": slow.model_copy(update={"seconds": seconds})}
                )
            )
    return store.folder


def attested(
    run: Path,
    to: Path,
    value: float,
    *,
    kind: Kind = "cpu",
    what: str = "CPU",
    unit: Unit = "events/s",
) -> Path:
    """A copy of a run with this attestation of gateway-1 under swift, and a fixed one under
    rgw-beast.
    """
    store = RunStore.open(shutil.copytree(run, to))
    gave = {"swift": value, "rgw-beast": 1000.0}
    store.attest(
        Attested(
            layout=layout, repeat=0, host="gateway-1", kind=kind, what=what, value=of, unit=unit
        )
        for layout, of in gave.items()
    )
    return store.folder


def run(code: int, *arguments: object) -> str:
    """What `compare-runs` prints, which has to end with this code."""
    done = CliRunner(env={"COLUMNS": "140"}).invoke(
        weighbridge,
        ["compare-runs", *map(str, arguments)],
        catch_exceptions=False,
        standalone_mode=False,
    )
    assert done.return_value == code, done.output
    return done.output
