"""What of a comparison is inconclusive, why, and the one command that would settle it."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import ResolvedPlan
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.suites import Bounds

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
    """What would settle inconclusive cells; None if everything is claimed, or nothing was compared.

    `command` is the argv of the run.
    """
    cells = [one for one in comparison.effects if one.workers is not None and one.metric in ALWAYS]
    open_ones = [one for one in cells if not one.claimed]
    if not open_ones:
        return None
    counts = Counter(one.verdict for one in open_ones)
    names = " and ".join(METRICS[key].name for key in ALWAYS)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    head = f"{len(open_ones)} of {len(cells)} comparisons of {names} are inconclusive ({verdicts})"
    whats = {doubt.what for one in open_ones for doubt in one.doubts}
    # Nobody knows what else the cells that a busy machine spoilt lack.
    quiet = {doubt.what for one in open_ones if not _noisy(one) for doubt in one.doubts}
    warmup_s = _warmup_s(open_ones)
    # Windows that are long already would not be steadier if they were longer.
    short = quiet & set(_SHORT) and min(one.runtime for one in plan.suite.workloads) < LONG_WINDOW_S
    longer = "a longer warm-up" if warmup_s else "longer windows"
    changes: dict[str, str] = {}
    needs = []
    rerun = True
    wanted = _wanted(open_ones, plan.suite.bounds)
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
    """The warm-up that would have sufficed for every step that was still warming up."""
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
    """The command with these options replaced.

    It is a comparison for verbs other than compare and study.
    """
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
