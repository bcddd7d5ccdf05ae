"""Runs simulated from drawn logarithms, for the benchmarks of claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weighbridge.results.figures.doubt import beside
from weighbridge.results.figures.summary import Point, Row, verdict_on
from weighbridge.suites import Operation

Array = np.ndarray
DIRECTION: Final = np.array([1.0, -1.0])[:, None, None, None]
"""Of throughput and p90: one rises where the other falls."""


@dataclass(frozen=True)
class SimulatedCell:
    """One workload and operation at one worker count."""

    workload: str
    operation: Operation
    workers: int
    size_bytes: float


def noise_of(draw: np.random.Generator, layouts: int, repeats: int, cells: int) -> Array:
    """Noise of variance 1: metric (throughput, p90), layout, repeat, cell.

    Half of the variance comes from the deployment, shared by all its cells.
    """
    visits = draw.normal(size=(layouts, repeats, 1))
    steps = draw.normal(size=(2, layouts, repeats, cells))
    steps[1] = -0.8 * steps[0] + 0.6 * steps[1]
    return math.sqrt(0.5) * (DIRECTION * visits[None] + steps)


def rows_of(
    logs: Array,
    cells: Sequence[SimulatedCell],
    layouts: Sequence[str],
    *,
    ops_s: float,
    p90_ms: float,
    samples: int,
    others: Array | None = None,
    moves: Array | None = None,
) -> tuple[Row, ...]:
    """The table of a run with these logarithms, relative to a throughput and a p90.

    `others`: the share of the machine's CPUs that other programs used; `moves`: how windows moved
    (both by layout, repeat, cell). Without them the machine is quiet, and all is steady.
    """
    throughputs, p90s_ms = ops_s * np.exp(logs[0]), p90_ms * np.exp(logs[1])
    if others is None:
        others = np.zeros(logs.shape[1:])
    return tuple(
        _row(
            cell,
            layout,
            throughputs[at, :, number],
            p90s_ms[at, :, number],
            samples,
            others[at, :, number].tolist(),
            None if moves is None else moves[at, :, number].tolist(),
        )
        for number, cell in enumerate(cells)
        for at, layout in enumerate(layouts)
    )


def _row(
    cell: SimulatedCell,
    layout: str,
    ops_s: Array,
    p90_ms: Array,
    samples: int,
    others: Sequence[float],
    moves: Sequence[float] | None,
) -> Row:
    def figures(throughput: float, p90: float, count: int) -> dict[str, float]:
        return {"throughput": throughput, "p90": p90, "samples": count, "errors": 0}

    points = tuple(
        Point(
            repeat=repeat,
            valid=True,
            steady=True if moves is None else None,
            others=others[repeat],
            move=None if moves is None else moves[repeat],
            figures=figures(*both, samples),
        )
        for repeat, both in enumerate(zip(ops_s.tolist(), p90_ms.tolist(), strict=True))
    )
    return Row(
        layout=layout,
        api="s3",
        workload=cell.workload,
        operation=cell.operation,
        object_size_bytes=cell.size_bytes,
        workers=cell.workers,
        repeats=len(points),
        figures=figures(float(np.median(ops_s)), float(np.median(p90_ms)), samples * len(points)),
        valid=True,
        steady=verdict_on(points).steady,
        doubts=tuple(beside(others)),
        points=points,
    )
