"""Made-up runs of the same thing on many days, for tests of histories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from fake_run import WORKLOADS, fake_run

SMALL: Final = WORKLOADS[0].model_copy(update={"workers": (4,), "runtime": 10.0})
FIRST_DAY: Final = datetime(2026, 1, 1, 6, tzinfo=UTC)


def past_run(runs: Path, day: int, **more: Any) -> Path:
    """The folder of the run of this day, which scatters by about 2 %; its name tells the day.

    `more` are arguments of `fake_run`.
    """
    given = {"workloads": [SMALL], "layouts": ("rgw-beast",), "telemetry": False, **more}
    made = fake_run(runs, seed=day, **given).folder
    begun = FIRST_DAY + timedelta(days=day)
    folder = made.rename(runs / f"day-{day:03}")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"run_id": folder.name, "created_at": begun.isoformat()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    plan = json.loads((folder / "plan.resolved.json").read_text())
    plan["suite"]["seed"] = 2014
    (folder / "plan.resolved.json").write_text(json.dumps(plan))
    return folder


def past_runs(
    runs: Path, days: Sequence[int], step_at: int | None = None, step: float = 1.0, **more: Any
) -> list[Path]:
    """A run for each day; from `step_at` on requests take `step` times as long."""
    return [
        past_run(runs, day, slower=step if step_at is not None and day >= step_at else 1.0, **more)
        for day in days
    ]
