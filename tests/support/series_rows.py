"""Made-up compared runs for tests of histories: rows without a run folder."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from fake_layers import hardware
from weighbridge.results.features.run_guard import ComparedRun
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.summary import Point, Row
from weighbridge.results.run.resolved import Manifest, PlannedLayout, ResolvedPlan
from weighbridge.suites import Objects, Suite, Workload

REPEATS = 5


def made_run(
    day: int,
    ops_s: Mapping[str, float],
    *,
    doubts: Sequence[Doubt] = (),
    repeats: int = REPEATS,
    release: str = "ceph-16",
    valid: bool = True,
    suite: str = "made-up",
    **of_suite: Any,
) -> ComparedRun:
    """A run of this day with these throughputs by layout; 100 / throughput is its p90."""
    workload = Workload(
        name="small-read",
        objects=Objects(size=64_000),
        operations={"read": 100},
        workers=(4,),
        runtime=20.0,
    )
    planned = tuple(PlannedLayout(name=name, gateway="rgw", release=release) for name in ops_s)
    made = Suite(
        name=suite,
        about="made up",
        workloads=(workload,),
        repeats=repeats,
        layouts=tuple(ops_s),
        **of_suite,
    )
    begun = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    return ComparedRun(
        folder=Path(),
        manifest=Manifest(
            run_id=f"day-{day:03}", suite=suite, state="done", created_at=begun.isoformat()
        ),
        plan=ResolvedPlan(suite=made, hardware=hardware(), layouts=planned),
        rows=tuple(
            _row(name, rate, tuple(doubts), repeats, valid=valid) for name, rate in ops_s.items()
        ),
    )


def scattered(count: int, seed: int, spread: float = 0.02) -> list[float]:
    """Throughputs around 1000 op/s of runs in which nothing changed."""
    draw = np.random.default_rng(seed)
    found: list[float] = (1000 * np.exp(spread * draw.normal(size=count))).tolist()
    return found


def _row(layout: str, rate: float, doubts: tuple[Doubt, ...], repeats: int, *, valid: bool) -> Row:
    figures = {"throughput": rate, "p90": 100_000 / rate, "samples": 20_000, "errors": 0}
    return Row.model_validate(
        {
            "layout": layout,
            "api": "s3",
            "workload": "small-read",
            "operation": "read",
            "object_size_bytes": 64_000,
            "workers": 4,
            "repeats": repeats,
            "figures": figures,
            "valid": valid,
            "steady": True,
            "doubts": doubts,
            "points": tuple(
                Point(repeat=number, valid=valid, steady=True, figures=figures)
                for number in range(repeats)
            ),
        }
    )
