"""Why cells are not ranked or not significant: each reason once, with the cells that it affects.

Reasons whose texts differ in their numbers alone are one, with the range of each number.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.steadiness import NOT_STEADY
from weighbridge.results.figures.summary import NOT_VALID, Row
from weighbridge.results.figures.validity import ASIDES
from weighbridge.results.judge.comparison import Comparison, Effect, Kind, kind_of, subjects
from weighbridge.results.judge.contrast import ALWAYS
from weighbridge.results.numbers import listed, ranged, without_numbers
from weighbridge.results.run import ResolvedPlan
from weighbridge.results.run.step import RAN_OUT
from weighbridge.suites import Bounds

ReasonStatus = Literal["not valid", "not comparable", "not durable", "provisional"]
"""What a reason makes of the cells that it affects. Those that are not durable are ranked."""

Cell = tuple[str, Kind, int]
"""Layout, kind of requests, worker count."""

_BETWEEN: Final = ("hosts differ", "hosts below promise", "hosts not attested", "few repeats")
"""Doubts about pairs of layouts, which no row has."""
_ORDER: Final[tuple[ReasonStatus, ...]] = (
    "not comparable",
    "not valid",
    "not durable",
    "provisional",
)


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


def reasons(rows: Sequence[Row], comparison: Comparison) -> tuple[Reason, ...]:
    """All that keeps figures from being ranked or claimed, and lost writes, gravest first."""
    groups: dict[tuple[ReasonStatus, tuple[str, ...], str], list[tuple[str, Cell]]] = {}
    for status, metrics, words, cell in (*_of_rows(rows), *_of_pairs(comparison)):
        groups.setdefault((status, metrics, without_numbers(words)), []).append((words, cell))
    ordered = sorted(groups.items(), key=lambda item: _ORDER.index(item[0][0]))
    every = list(dict.fromkeys(_cell(row) for row in rows))
    names = subjects(rows)
    made = []
    for number, ((status, metrics, _), found) in enumerate(ordered):
        cells = tuple(dict.fromkeys(cell for _, cell in found))
        made.append(
            Reason(
                mark=_mark(number),
                status=status,
                words=ranged([words for words, _ in found]),
                metrics=metrics,
                where=_where(cells, every, names),
                cells=cells,
            )
        )
    return tuple(made)


def marks(row: Row, found: Sequence[Reason]) -> str:
    """The marks of the reasons that affect a row: `a c`."""
    return " ".join(one.mark for one in found if _cell(row) in one.cells)


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


def _of_rows(rows: Sequence[Row]) -> Iterator[tuple[ReasonStatus, tuple[str, ...], str, Cell]]:
    for row in rows:
        if not row.valid or row.steady is False:
            fallback = NOT_VALID if not row.valid else NOT_STEADY
            words = _named_once("; ".join(faults(row)), f"{NOT_STEADY}: ") or fallback
            yield "not comparable" if row.valid else "not valid", (), words, _cell(row)
        if row.power is not None and row.power.endangered:
            yield "not durable", (), row.power.words, _cell(row)
        for doubt in row.doubts:
            yield _status(doubt), doubt.metrics, f"{doubt.what}: {doubt.words}", _cell(row)


def _named_once(text: str, name: str) -> str:
    before, named, after = text.partition(name)
    return f"{before}{named}{after.replace(name, '')}"


def _of_pairs(comparison: Comparison) -> Iterator[tuple[ReasonStatus, tuple[str, ...], str, Cell]]:
    for effect in comparison.effects:
        if effect.workers is not None:
            for doubt in effect.doubts:
                if doubt.what in _BETWEEN:
                    for layout in (effect.baseline, effect.subject):
                        cell = (layout, kind_of(effect), effect.workers)
                        yield _status(doubt), doubt.metrics, f"{doubt.what}: {doubt.words}", cell


def _status(doubt: Doubt) -> ReasonStatus:
    return "not comparable" if doubt.grade == "grave" else "provisional"


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


def _mark(number: int) -> str:
    """`a` to `z`, then `aa` to `az` and so on."""
    before, last = divmod(number, len(ascii_lowercase))
    return f"{ascii_lowercase[before - 1] if before else ''}{ascii_lowercase[last]}"


# What of a comparison is inconclusive, why, and the one command that would settle it.


MOST_REPEATS: Final = 30
"""More repeats are not advised: a difference that needs them is too small to be worth it."""
LONG_SUITE: Final = "gateways-lab"
"""A suite with windows of LONG_WINDOW_S."""
LONG_WINDOW_S: Final = 20.0
"""Long enough to be judged one by one."""
_QUIET: Final = ("hosts differ", "hosts below promise", "machine busy")
_SHORT: Final = ("steadiness not known", "repeats left out", "few repeats")
"""Doubts that longer windows remove, if there were enough repeats."""


class Remedy(Record):
    """`says` is one sentence; `command` is what to run, empty if no command would help."""

    says: str
    command: str = ""


def remedy(comparison: Comparison, plan: ResolvedPlan, command: Sequence[str]) -> Remedy | None:
    """What would settle inconclusive cells, if any. `command` is the argv of the run."""
    cells = [one for one in comparison.effects if one.workers is not None and one.metric in ALWAYS]
    open_ones = [one for one in cells if not one.claimed]
    if not open_ones:
        return None
    counts = Counter(one.verdict for one in open_ones)
    names = " and ".join(METRICS[key].name for key in ALWAYS)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    head = f"{len(open_ones)} of {len(cells)} comparisons of {names} are inconclusive ({verdicts})"
    # The same again would not make a step valid.
    sound = [one for one in open_ones if all(row.valid for row in one.sides or ())]
    whats = {doubt.what for one in sound for doubt in one.doubts}
    # Nobody knows what else the cells that a busy machine spoilt lack.
    quiet = {doubt.what for one in sound if not _noisy(one) for doubt in one.doubts}
    warmup_s = _warmup_s(sound)
    # Windows that are long already would not be steadier if they were longer.
    short = quiet & set(_SHORT) and min(one.runtime for one in plan.suite.workloads) < LONG_WINDOW_S
    longer = "a longer warm-up" if warmup_s else "longer windows"
    changes: dict[str, str] = {}
    needs = []
    rerun = True
    wanted = _wanted(sound, plan.suite.bounds)
    if whats & set(_QUIET):
        needs.append("a quiet machine")
    if "hosts not attested" in whats:
        needs.append("all hosts attested")
    if "few repeats" in whats and plan.suite.repeats < REPEATS_FOR_A_CLAIM:
        changes["--repeats"] = str(REPEATS_FOR_A_CLAIM)
        needs.append(f"{REPEATS_FOR_A_CLAIM} repeats")
    elif (warmup_s or short) and list(command[1:2]) == ["study"]:
        # No option of a study lengthens them.
        needs.append(f"{longer}, which a copy of the study's file can have")
        rerun = False
    elif warmup_s:
        changes["--warmup"] = f"{warmup_s:g}s"
        needs.append(f"a warm-up of {warmup_s:g} s")
    elif short and _by_line(command):
        changes["--duration"] = f"{LONG_WINDOW_S:g}s"
        needs.append(longer)
    elif short and plan.suite.name != LONG_SUITE:
        changes["--suite"] = LONG_SUITE
        needs.append(longer)
    elif wanted and min(wanted) <= MOST_REPEATS:
        repeats = max(one for one in wanted if one <= MOST_REPEATS)
        changes["--repeats"] = str(repeats)
        needs.append(f"about {repeats} repeats")
    rows = (row for one in open_ones for row in one.sides or ())
    if any(RAN_OUT in note for row in rows for note in row.notes):
        # No option of a run adds objects.
        needs.append("more objects to delete (`per_container` in a suite) or fewer workers")
        rerun = False
    if not needs and wanted:
        return Remedy(
            says=f"{head}; settling those that are not significant would take more than "
            f"{MOST_REPEATS} repeats."
        )
    if not needs:
        return Remedy(
            says=f"{head}; neither more repeats nor a quieter machine would change that: see the "
            "reasons above."
        )
    return Remedy(
        says=f"{head}. They need {' and '.join(needs)}{'' if rerun else '.'}",
        command=shlex.join(_changed(plan, command, changes)) if rerun else "",
    )


def _warmup_s(effects: Sequence[Effect]) -> float | None:
    points = [point for one in effects for row in one.sides or () for point in row.points]
    return max((one.warmup_s for one in points if one.warmup_s is not None), default=None)


def _by_line(command: Sequence[str]) -> bool:
    """Whether the windows are set by options, not by the choice of a suite."""
    return any(word.split("=")[0] in ("--s3", "--swift", "--duration") for word in command)


def _noisy(one: Effect) -> bool:
    return any(doubt.what in _QUIET for doubt in one.doubts)


def _wanted(effects: Sequence[Effect], bounds: Bounds) -> list[float]:
    """The repeats needed to settle each cell that is not significant; infinite if none would do.

    Errors fall with the root of the repeats. A difference beyond the threshold must be as far
    beyond it as the smallest that is detected 8 times in 10; one within it must have its complete
    interval there.
    """
    wanted: list[float] = []
    for one in effects:
        ratio = one.ratio
        if (
            one.verdict != "not significant"
            or ratio is None
            or ratio.low is None
            or ratio.high is None
            or one.smallest is None
        ):
            continue
        bound = math.log(METRICS[one.metric].bound_of(bounds))
        far = abs(math.log(ratio.value)) - bound
        now = (
            max(math.log(one.smallest) - bound, 0.0)
            if far > 0
            else math.log(ratio.high / ratio.low) / 2
        )
        repeats = math.ceil(ratio.repeats * (now / abs(far)) ** 2) if far else math.inf
        wanted.append(max(repeats, ratio.repeats + 1))
    return wanted


def _changed(plan: ResolvedPlan, command: Sequence[str], changes: dict[str, str]) -> list[str]:
    """The command with these options; `compare` for verbs other than compare and study."""
    argv = list(command)
    if len(argv) < 2 or argv[1] not in ("compare", "study"):
        layouts = ",".join(layout.name for layout in plan.layouts if layout.name not in plan.twins)
        argv = [
            "weighbridge",
            "compare",
            "--suite",
            plan.suite.name,
            "--layouts",
            layouts,
            "--hardware",
            plan.hardware.name,
        ]
    dropped = {*changes, *(["--budget"] if "--repeats" in changes else [])}
    kept: list[str] = []
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word in dropped:
            skip = True
        elif word.split("=")[0] not in dropped:
            kept.append(word)
    return [*kept, *(word for item in changes.items() for word in item)]
