"""Recompute a run's summary and effects with numpy, SciPy and HdrHistogram, from its steps alone.

    python tests/support/recompute.py RUN...

Of `weighbridge` it imports nothing: it reads `steps.jsonl`, and the CSV files in `derived/`. Which
repeats count, and whether cells are compared block by block, it takes from them; every figure,
interval and ratio of throughput and p90 is computed again. It prints what differs; exit code 1.
"""

import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray
from scipy import stats

Cell = tuple[str, str, str, str, int, str]
"""Layout, API, driver, workload, workers and operation."""
Interval = tuple[float, float, float]
TOLERANCE = 1e-9
LEAST_P90 = 36
"""Fewer samples give no closed 95 % interval of order statistics."""


def cell_of(place: Mapping[str, Any]) -> Cell:
    names = ("layout", "api", "driver", "workload")
    layout, api, driver, workload = (str(place[name]) for name in names)
    return layout, api, driver, workload, int(place["workers"]), str(place["operation"])


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


def p90_ms(ended: NDArray[np.float64], pending: NDArray[np.float64], max_ms: float) -> float | None:
    """By Kaplan and Meier: `pending` requests took at least so long."""
    if len(ended) < LEAST_P90:
        return None
    times, events = np.unique(ended, return_counts=True)
    at_risk = len(ended) - np.searchsorted(np.sort(ended), times)
    at_risk = at_risk + len(pending) - np.searchsorted(np.sort(pending), times)
    surviving = np.cumprod(1 - events / at_risk)
    past = np.flatnonzero(surviving <= 0.1 + 1e-12)
    return min(float(times[past[0]]), max_ms) if len(past) else None


def ends(log: float, reach: float) -> Interval:
    return math.exp(log), math.exp(log - reach), math.exp(log + reach)


def interval(values: NDArray[np.float64]) -> Interval:
    """The geometric mean with its 95 % interval by Student's t on logarithms."""
    logs, n = np.log(values), len(values)
    if n == 1:
        return ends(logs[0], math.nan)
    reach = stats.t.ppf(0.975, n - 1) * logs.std(ddof=1) / math.sqrt(n)
    return ends(logs.mean(), reach)


def ratios(base: dict[int, float], other: dict[int, float]) -> list[Interval]:
    """The ratio with its interval: by Welch, and by the differences of blocks."""
    a, b = (np.log(list(side.values())) for side in (base, other))
    middle = b.mean() - a.mean()
    parts = [side.var(ddof=1) / len(side) for side in (a, b)]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(p**2 / (len(s) - 1) for p, s in zip(parts, (a, b), strict=True))
    welch = stats.t.ppf(0.975, freedom) * error
    both = sorted(base.keys() & other.keys())
    apart = np.array([math.log(other[block] / base[block]) for block in both])
    paired = stats.t.ppf(0.975, len(both) - 1) * apart.std(ddof=1) / math.sqrt(len(both))
    return [ends(middle, welch), ends(apart.mean(), paired)]


def figures_of(run: Path) -> dict[str, dict[Cell, dict[int, float]]]:
    """Throughput in op/s and p90 in ms by cell and repeat, of all measured steps."""
    last = {}
    for line in (run / "steps.jsonl").read_text().splitlines():
        step = json.loads(line)
        last[json.dumps(step["key"], sort_keys=True)] = step
    found: dict[str, dict[Cell, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for step in last.values():
        key, measured = step["key"], step["measurement"]
        if key["rate_per_s"] is not None or key["layer"]:
            continue
        for tally in measured["tallies"] if measured else ():
            cell = cell_of({**key, "operation": tally["operation"]})
            found["throughput"][cell][key["repeat"]] = tally["count"] / measured["window_s"]
            ended, pending = samples_ms(tally["latency"]), samples_ms(tally.get("in_flight"))
            max_us = max(tally["max_us"] or 0, tally.get("in_flight_max_us") or 0)
            p90 = p90_ms(ended, pending, max_us / 1000)
            if p90 is not None:
                found["p90"][cell][key["repeat"]] = p90
    return found


def close(text: str, value: float) -> bool:
    return text != "" and math.isclose(float(text), value, rel_tol=TOLERANCE)


def differences(run: Path, repeats: Mapping[Cell, set[int]]) -> list[str]:
    """What differs between `derived/` and this computation; `repeats`: those that count."""
    figures, wrong, seen = figures_of(run), [], 0
    names = {"throughput": ("throughput", "ops_s"), "p90": ("p90", "ms")}
    for line in csv.DictReader((run / "derived/summary.csv").read_text().splitlines()):
        cell = cell_of(line)
        for metric, (stem, unit) in names.items():
            known = {r: v for r, v in figures[metric][cell].items() if r in repeats[cell]}
            if line[f"{stem}_{unit}"] == "" or line["layer"] or len(known) < len(repeats[cell]):
                continue
            middle, low, high = interval(np.array(list(known.values())))
            over = f"{stem}_over_repeats"
            columns = {f"{stem}_{unit}": middle, f"{over}_low_{unit}": low}
            columns |= {f"{over}_high_{unit}": high}
            for column, value in columns.items():
                seen += 1
                if not (close(line[column], value) or len(known) == 1 == len(repeats[cell])):
                    wrong.append(f"{cell}: {column} is {line[column]}, here {value}")
    for line in csv.DictReader((run / "derived/effects.csv").read_text().splitlines()):
        if line["metric"] not in names or line["workers"] == "" or line["ratio_low"] == "":
            continue
        sides = []
        for layout in (line["baseline"], line["subject"]):
            cell = cell_of({**line, "layout": layout})
            values = figures[line["metric"]][cell]
            sides.append({r: v for r, v in values.items() if r in repeats[cell]})
        seen += 1
        texts = [line[name] for name in ("ratio", "ratio_low", "ratio_high")]
        computed = ratios(sides[0], sides[1])
        if not any(all(map(close, texts, ratio)) for ratio in computed):
            wrong.append(f"{cell}: the ratio of {line['metric']} is {texts}, here {computed}")
    return wrong or ([] if seen else ["nothing was compared"])


def counting(run: Path, steps_csv: str) -> dict[Cell, set[int]]:
    """The repeats that count, from the table `steps`: those that are ranked, or else valid, or else
    all, whichever are as many as `summary.csv` says.
    """
    grades: dict[Cell, dict[int, int]] = defaultdict(dict)
    for line in csv.DictReader(steps_csv.splitlines()):
        if line["rate_per_s"] == "" and line["layer"] == "":
            grade = (line["valid"] == "true") + (line["ranked"] == "true")
            grades[cell_of(line)][int(line["repeat"]) - 1] = grade
    found: dict[Cell, set[int]] = {}
    for line in csv.DictReader((run / "derived/summary.csv").read_text().splitlines()):
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
