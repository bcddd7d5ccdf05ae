"""The noise floor of a rig: how far two arms of the same layout are apart, visited alike in every block (an A/A trial).

Whatever differs between a layout and its twin is neither's doing. A difference between two layouts that is no larger than that is
none that this rig can show, however sure its test is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from results.comparison import Metric, NoiseFloor
from results.contrast import METRICS, Contrast, at_workers, over_all
from results.kinds import kind_of
from results.statistics import LEVEL, corrected, geometric_mean
from results.summary import Row


def floors(rows: Sequence[Row], twins: Mapping[str, str]) -> tuple[NoiseFloor, ...]:
    """The noise floor of each metric, by each twin; nothing where no cell of the two could be compared."""
    found = (_floor(rows, metric, layout, twin) for twin, layout in twins.items() for metric in METRICS)
    return tuple(floor for floor in found if floor is not None)


def floor_of(noise: Sequence[NoiseFloor], one: Contrast) -> float | None:
    """What a contrast has to be beyond; None where it is not known: of no A/A trial, and of latencies told in bins."""
    if one.bins is not None:
        return None
    known = [floor.overall if one.workers is None else floor.ratio for floor in noise if floor.metric == one.metric]
    return max((ratio for ratio in known if ratio is not None), default=None)


def _floor(rows: Sequence[Row], metric: Metric, layout: str, twin: str) -> NoiseFloor | None:
    cells, wholes = [], []
    for _, group in groupby((row for row in rows if row.layout in (layout, twin)), key=kind_of):
        one, again = ({row.workers: row for row in kind if row.layout == name} for kind in [list(group)] for name in (layout, twin))
        pairs = [(row, again[workers]) for workers, row in one.items() if workers in again]
        each = [at_workers(metric, *pair) for pair in pairs]
        cells += each
        wholes += [over_all(each)] if each else []
    known = [(cell, cell.ratio) for cell in cells if cell.ratio is not None and cell.bins is None]
    if not known:
        return None
    apart = [ratio.either_way for _, ratio in known]
    q_values = corrected([cell.p for cell, _ in known if cell.p is not None])
    return NoiseFloor(
        metric=metric,
        layout=layout,
        twin=twin,
        ratio=max(apart),
        typical=geometric_mean(apart),
        overall=max((one.ratio.either_way for one in wholes if one.ratio is not None), default=None),
        cells=len(known),
        shown=sum(q <= LEVEL for q in q_values),
        repeats=min(ratio.repeats for _, ratio in known),
    )
