"""Why cells are not ranked or not significant: each reason once, with the cells that it affects.

Reasons whose texts differ in their numbers alone are one, with the range of each number.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from string import ascii_lowercase
from typing import Final, Literal, get_args

from weighbridge.common.quantities import utc
from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.metrics import METRICS, PRIMARY, MetricKey
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.steadiness import NOT_STEADY
from weighbridge.results.figures.summary import NOT_VALID, Row
from weighbridge.results.figures.validity import ASIDES
from weighbridge.results.judge.comparison import Comparison, Effect, Kind, kind_of, subjects
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import counted, listed, ranged, without_numbers
from weighbridge.results.run import ResolvedPlan
from weighbridge.results.run.step import RAN_OUT
from weighbridge.suites import Bounds

ReasonStatus = Literal["not comparable", "not valid", "not durable", "provisional"]
"""What a reason makes of the cells that it affects, gravest first. Those that are not durable are
ranked.
"""

Cell = tuple[str, Kind, int]
"""Layout, kind of requests, worker count."""

_BETWEEN: Final = ("hosts differ", "hosts below promise", "hosts not attested", "few repeats")
"""Doubts about pairs of layouts, which no row has."""


class Reason(Record):
    """One reason. `mark` is shown beside the affected cells; `where` names them in words."""

    mark: str
    status: ReasonStatus
    words: str
    metrics: tuple[MetricKey, ...] = ()
    """The affected metrics; empty: all of them."""
    where: str
    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        what = f"{', '.join(METRICS[key].name for key in self.metrics)} " if self.metrics else ""
        return f"{what}{self.status}: {self.words} ({self.where})"


_Remark = tuple[ReasonStatus, tuple[str, ...], str, Cell]
"""Status, affected metrics, words and cell."""


def reasons(rows: Sequence[Row], comparison: Comparison) -> tuple[Reason, ...]:
    """All that keeps figures from being ranked or claimed, and lost writes, gravest first."""
    groups: dict[tuple[ReasonStatus, tuple[str, ...], str], list[tuple[str, Cell]]] = {}
    for status, metrics, words, cell in (*_of_rows(rows), *_of_pairs(comparison)):
        groups.setdefault((status, metrics, without_numbers(words)), []).append((words, cell))
    order = get_args(ReasonStatus)
    every = list(dict.fromkeys(_cell(row) for row in rows))
    names = subjects(rows)
    found: list[Reason] = []
    for (status, metrics, _), remarks in sorted(groups.items(), key=lambda x: order.index(x[0][0])):
        before, last = divmod(len(found), len(ascii_lowercase))
        cells = tuple(dict.fromkeys(cell for _, cell in remarks))
        found.append(
            Reason(
                mark=f"{ascii_lowercase[before - 1] if before else ''}{ascii_lowercase[last]}",
                status=status,
                words=ranged([words for words, _ in remarks]),
                metrics=metrics,
                where=_where(cells, every, names),
                cells=cells,
            )
        )
    return tuple(found)


def marks(row: Row, found: Sequence[Reason]) -> str:
    """The marks of the reasons that affect a row: `a c`."""
    return " ".join(reason.mark for reason in found if _cell(row) in reason.cells)


def faults(row: Row) -> list[str]:
    """Why a row is not valid or not steady, without mere remarks."""
    remarks = tuple(remark for point in row.points for remark in point.remarks)
    notes = [
        note
        for note in row.notes
        if note not in (NOT_VALID, NOT_STEADY) and not any(aside in note for aside in ASIDES)
    ]
    return [note.splitlines()[0] for note in notes if not note.endswith(remarks)]


def _cell(row: Row) -> Cell:
    return row.layout, kind_of(row), row.workers


def _of_rows(rows: Sequence[Row]) -> Iterator[_Remark]:
    for row in rows:
        if not row.valid or row.steady is False:
            # Named once, however many repeats were not steady.
            before, named, after = "; ".join(faults(row)).partition(f"{NOT_STEADY}: ")
            words = f"{before}{named}{after.replace(named, '') if named else after}"
            fallback = NOT_VALID if not row.valid else NOT_STEADY
            yield "not comparable" if row.valid else "not valid", (), words or fallback, _cell(row)
        if row.power is not None and row.power.endangered:
            yield "not durable", (), row.power.words, _cell(row)
        for doubt in row.doubts:
            yield _of_doubt(doubt, _cell(row))


def _of_pairs(comparison: Comparison) -> Iterator[_Remark]:
    for effect in comparison.effects:
        for layout in (effect.baseline, effect.subject):
            for doubt in effect.doubts if effect.workers is not None else ():
                if doubt.what in _BETWEEN and effect.workers is not None:
                    yield _of_doubt(doubt, (layout, kind_of(effect), effect.workers))


def _of_doubt(doubt: Doubt, cell: Cell) -> _Remark:
    status: ReasonStatus = "not comparable" if doubt.grade == "grave" else "provisional"
    return status, doubt.metrics, f"{doubt.what}: {doubt.words}", cell


def _where(cells: Sequence[Cell], every: Sequence[Cell], names: dict[Kind, str]) -> str:
    """Which cells: `all figures`, `all of swift`, `swift: 64 kB reads at 1 and 4 workers`."""
    touched = set(cells)
    if touched >= set(every):
        return "all figures"
    parts = []
    for layout in dict.fromkeys(name for name, _, _ in cells):
        mine = [cell for cell in every if cell[0] == layout]
        parts.append(
            f"all of {layout}"
            if touched >= set(mine)
            else f"{layout}: {', '.join(_kinds(touched, mine, names))}"
        )
    return "; ".join(parts)


def _kinds(touched: set[Cell], mine: Sequence[Cell], names: dict[Kind, str]) -> Iterable[str]:
    for kind in dict.fromkeys(cell[1] for cell in mine):
        counts = [cell[2] for cell in mine if cell[1] == kind]
        found = [cell[2] for cell in mine if cell[1] == kind and cell in touched]
        if found == counts and len(counts) > 1:
            yield names[kind]
        elif found:
            yield f"{names[kind]} at {listed([*map(str, found)])} worker{'s' * (found != [1])}"


# What of a comparison is inconclusive, why, and the one command that would settle it.


MOST_REPEATS: Final = 30
"""More repeats are not advised: a difference that needs them is too small to be worth it."""


class Remedy(Record):
    """`says` is one sentence; `command` is what to run, empty if no command would help."""

    says: str
    command: str = ""


def remedy_of(data: RunData) -> Remedy | None:
    """What would settle a run's inconclusive cells; None if there are none, and of a tuning."""
    if data.tuning is not None:
        return None
    run = str(data.store.folder)
    at = [utc(event.at) for event in data.events]
    took_s = [gap_s for one, two in pairwise(at) if (gap_s := (two - one).total_seconds()) < 3600]
    repeat_s = sum(took_s) / data.plan.suite.repeats  # without interruptions
    found = remedy(data.comparison, data.plan, data.manifest.command, run, repeat_s)
    if found is None or not data.spoilt:
        return found
    return Remedy(
        says=f"Other programs disturbed {counted(len(data.spoilt), 'window')}. To measure what "
        "they spoilt again, once the machine is quieter",
        command=shlex.join(("weighbridge", "resume", run, "--repair")),
    )


def remedy(
    comparison: Comparison,
    plan: ResolvedPlan,
    command: Sequence[str],
    run: str = "RUN",
    repeat_s: float = 0.0,
) -> Remedy | None:
    """What would settle open cells of a run, by its argv, its folder and the time of a repeat."""
    cells = [one for one in comparison.effects if one.workers is not None and one.metric in PRIMARY]
    open_cells = [effect for effect in cells if not effect.claimed]
    if not open_cells:
        return None
    counts = Counter(effect.verdict for effect in open_cells)
    names = " and ".join(METRICS[key].name for key in PRIMARY)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    head = f"{len(open_cells)} of {len(cells)} comparisons of {names} are inconclusive ({verdicts})"
    # The same again would not make a step valid.
    sound = [effect for effect in open_cells if all(row.valid for row in effect.sides or ())]
    doubts = {doubt.what for effect in sound for doubt in effect.doubts}
    wanted = [repeats for effect in sound for repeats in _repeats(effect, plan.suite.bounds)]
    noisy = doubts & {"hosts differ", "hosts below promise", "machine busy"}
    needs = ["a quiet machine"] * bool(noisy)
    needs += ["all hosts attested"] * ("hosts not attested" in doubts)
    needs += ["repeats that all count"] * ("repeats left out" in doubts)
    need, repeats = "", 0.0
    longer: dict[str, str] = {}
    if "few repeats" in doubts and plan.suite.repeats < REPEATS_FOR_A_CLAIM:
        repeats = REPEATS_FOR_A_CLAIM
        need = f"{REPEATS_FOR_A_CLAIM} repeats"
    else:
        need, longer = _longer(sound, command)
        if not need and wanted and min(wanted) <= MOST_REPEATS:
            repeats = max(repeats for repeats in wanted if repeats <= MOST_REPEATS)
            need = f"about {repeats} repeats"
    rerun = not need or bool(longer)
    needs += [need] * bool(need)
    rows = (row for effect in open_cells for row in effect.sides or ())
    if any(RAN_OUT in note for row in rows for note in row.notes):
        # No option of a run adds objects.
        needs.append("more objects to delete (`per_container` in a suite) or fewer workers")
        rerun, repeats = False, 0
    if not needs:
        why = "neither more repeats nor a quieter machine would change that: see the reasons above"
        if wanted:
            why = f"to settle those not significant would take more than {MOST_REPEATS} repeats"
        return Remedy(says=f"{head}; {why}.")
    says = f"{head}. They need {' and '.join(needs)}"
    if repeats:
        # A tenth more, since repeats do not all take as long.
        minutes = max(1, math.ceil(1.1 * (repeats - plan.suite.repeats) * repeat_s / 60))
        resumed = ("weighbridge", "resume", run, "--budget", f"{minutes}m")
        return Remedy(says=says, command=shlex.join(resumed))
    if not rerun:
        return Remedy(says=f"{says}.")
    return Remedy(says=says, command=shlex.join(_changed(plan, command, longer)))


def _longer(effects: Sequence[Effect], command: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The warm-up that windows need, empty if it was long enough, and the option that gives it."""
    points = [point for effect in effects for row in effect.sides or () for point in row.points]
    warmup_s = max((one.warmup_s for one in points if one.warmup_s is not None), default=None)
    if not warmup_s:
        return "", {}
    if list(command[1:2]) == ["study"]:
        return "a longer warm-up, which a copy of the study's file can have", {}
    return f"a warm-up of {warmup_s:g} s", {"--warmup": f"{warmup_s:g}s"}


def _repeats(effect: Effect, bounds: Bounds) -> Iterator[float]:
    """The repeats needed to settle a cell that is not significant; infinite if none would do.

    Errors fall with the root of the repeats. A difference beyond the threshold must be as far
    beyond it as the smallest that is detected 8 times in 10; one within it must have its complete
    interval there.
    """
    ratio, smallest = effect.ratio, effect.smallest
    if effect.verdict != "not significant" or ratio is None or smallest is None:
        return
    if ratio.low is None or ratio.high is None:
        return
    bound = math.log(METRICS[effect.metric].bound_of(bounds))
    far = abs(math.log(ratio.value)) - bound
    now = math.log(ratio.high / ratio.low) / 2
    if far > 0:
        now = max(math.log(smallest) - bound, 0.0)
    repeats = math.ceil(ratio.repeats * (now / abs(far)) ** 2) if far else math.inf
    yield max(repeats, ratio.repeats + 1)


def _changed(plan: ResolvedPlan, command: Sequence[str], changes: dict[str, str]) -> list[str]:
    """The command with these options, which count as the last; of other verbs `compare`."""
    argv = list(command)
    if len(argv) < 2 or argv[1] not in ("compare", "study"):
        argv = ["weighbridge", "compare", "--suite", plan.suite.name]
        argv += ["--layouts", ",".join(plan.measured), "--hardware", plan.hardware.name]
    for option, value in changes.items():
        argv += [option, value]
    return argv
