"""Recompute a run's summary and effects with SciPy and HdrHistogram, from its steps alone.

    python tests/support/recompute.py RUN...

It imports nothing of `weighbridge`. Which repeats count, and whether cells are compared block by
block, it takes from `derived/`; every figure, interval and ratio is computed again.
"""

import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray
from scipy import stats

Cell = tuple[str, ...]
"""Layout, API, driver, workload, workers and operation."""
NAMES = {"throughput": ("throughput", "ops_s"), "p90": ("p90", "ms")}
LEAST_P90 = 36
"""Fewer samples give no closed 95 % interval of order statistics."""


def cell_of(place: Mapping[str, Any]) -> Cell:
    names = ("layout", "api", "driver", "workload", "workers", "operation")
    return tuple(str(place[name]) for name in names)


def lines_of(text: str) -> Iterable[dict[str, str]]:
    return csv.DictReader(text.splitlines())


def samples_ms(encoded: str | None) -> NDArray[np.float64]:
    """Every sample of a histogram, at the upper end of its bucket."""
    if encoded is None:
        return np.empty(0)
    histogram = HdrHistogram.decode(encoded)
    tops, counts = [], []
    for bucket in histogram.get_recorded_iterator():  # the same object each time
        tops.append(histogram.get_highest_equivalent_value(bucket.value_iterated_to))
        counts.append(bucket.count_at_value_iterated_to)
    return np.repeat(np.array(tops) / 1000, np.array(counts, dtype=int))


def p90_ms(tally: Mapping[str, Any]) -> float | None:
    """By Kaplan and Meier: requests in flight took at least so long."""
    ended, pending = samples_ms(tally["latency"]), samples_ms(tally.get("in_flight"))
    if len(ended) < LEAST_P90:
        return None
    surviving = stats.ecdf(stats.CensoredData(uncensored=ended, right=pending)).sf
    past = surviving.quantiles[surviving.probabilities <= 0.1 + 1e-12]
    max_us = max(tally["max_us"] or 0, tally.get("in_flight_max_us") or 0)
    return min(float(past[0]), max_us / 1000) if len(past) else None


def interval(tested: Any, middle: float) -> NDArray[np.float64]:
    """The ratio or mean whose logarithm is the middle, and the ends of its 95 % interval."""
    return np.exp([middle, *tested.confidence_interval(0.95)])


def ratios(base: dict[int, float], other: dict[int, float]) -> list[NDArray[np.float64]]:
    """The ratio with its interval: by Welch, and by the differences of blocks."""
    a, b = (np.log(list(side.values())) for side in (base, other))
    both = sorted(base.keys() & other.keys())
    pairs = np.log([[base[block], other[block]] for block in both])
    paired = stats.ttest_rel(pairs[:, 1], pairs[:, 0])
    return [
        interval(stats.ttest_ind(b, a, equal_var=False), b.mean() - a.mean()),
        interval(paired, (pairs[:, 1] - pairs[:, 0]).mean()),
    ]


def figures_of(run: Path) -> dict[str, dict[Cell, dict[int, float]]]:
    """Throughput in op/s and p90 in ms by cell and repeat, of all measured steps."""
    steps = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    last: dict[str, Any] = {}
    for step in steps:
        again = step.get("again") or {"others": 0.0, "before": 1.0}
        if again["others"] is not None and again["others"] < again["before"]:
            last[json.dumps(step["key"], sort_keys=True)] = step
    found: dict[str, dict[Cell, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for step in last.values():
        key, measured = step["key"], step["measurement"]
        if key["rate_per_s"] is not None or key["layer"]:
            continue
        for tally in measured["tallies"] if measured else ():
            cell = cell_of({**key, "operation": tally["operation"]})
            found["throughput"][cell][key["repeat"]] = tally["count"] / measured["window_s"]
            if (p90 := p90_ms(tally)) is not None:
                found["p90"][cell][key["repeat"]] = p90
    return found


def close(texts: Iterable[str], values: Iterable[float]) -> bool:
    both = zip(texts, values, strict=True)
    return all(text and math.isclose(float(text), value, rel_tol=1e-9) for text, value in both)


def differences(run: Path, repeats: Mapping[Cell, set[int]]) -> list[str]:
    """What differs between `derived/` and this computation; `repeats`: those that count."""
    figures, wrong, seen = figures_of(run), [], 0
    for line in lines_of((run / "derived/summary.csv").read_text()):
        cell = cell_of(line)
        for metric, (stem, unit) in NAMES.items():
            known = {r: v for r, v in figures[metric][cell].items() if r in repeats[cell]}
            if line[f"{stem}_{unit}"] == "" or line["layer"] or len(known) < len(repeats[cell]):
                continue
            logs, seen = np.log(list(known.values())), seen + 1
            over = [f"{stem}_over_repeats_{end}_{unit}" for end in ("low", "high")]
            texts = [line[name] for name in (f"{stem}_{unit}", *over)]
            computed = interval(stats.ttest_1samp(logs, 0.0), logs.mean()) if len(logs) > 1 else ()
            if len(logs) > 1 and not close(texts, computed):
                wrong.append(f"{cell}: {stem}_{unit} is {texts}, here {computed}")
    for line in lines_of((run / "derived/effects.csv").read_text()):
        if line["metric"] not in NAMES or line["workers"] == "" or line["ratio_low"] == "":
            continue
        if float(line["adjusted"]) != 1.0:
            continue
        sides = []
        for layout in (line["baseline"], line["subject"]):
            cell = cell_of({**line, "layout": layout})
            values = figures[line["metric"]][cell]
            sides.append({r: v for r, v in values.items() if r in repeats[cell]})
        texts, seen = [line[name] for name in ("ratio", "ratio_low", "ratio_high")], seen + 1
        both = ratios(sides[0], sides[1])
        if line["noise"]:  # intervals are wider by what runs of the machine differ by
            texts, both = texts[:1], [computed[:1] for computed in both]
        if not any(close(texts, computed) for computed in both):
            wrong.append(f"{cell}: the ratio of {line['metric']} is {texts}, here {both}")
    return wrong or ([] if seen else ["nothing was compared"])


def counting(run: Path, steps_csv: str) -> dict[Cell, set[int]]:
    """The repeats that count, from the table `steps`: those that are ranked, or else valid, or else
    all, whichever are as many as `summary.csv` says.
    """
    grades: dict[Cell, dict[int, int]] = defaultdict(dict)
    for line in lines_of(steps_csv):
        if line["rate_per_s"] == "" and line["layer"] == "":
            grade = (line["valid"] == "true") + (line["ranked"] == "true")
            grades[cell_of(line)][int(line["repeat"]) - 1] = grade
    found: dict[Cell, set[int]] = {}
    for line in lines_of((run / "derived/summary.csv").read_text()):
        for least in (0, 1, 2):
            of = {n for n, grade in grades[cell_of(line)].items() if grade >= least}
            if len(of) == int(line["repeats"]):
                found[cell_of(line)] = of
    return found


def main(runs: Sequence[str]) -> int:
    from weighbridge.results.features.open_run import open_run  # noqa: PLC0415 - for its table
    from weighbridge.results.show.tables import STEPS  # noqa: PLC0415 - as above

    wrong = []
    for run in map(Path, runs):
        wrong += differences(run, counting(run, STEPS.of_runs([open_run(run)]).csv))
    sys.stdout.write("".join(f"{text}\n" for text in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
