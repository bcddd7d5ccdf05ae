"""Words about tried settings: what a variant sets, and one of its effects in a sentence."""

from __future__ import annotations

from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.kinds import requests_of
from weighbridge.results.figures import counted, show_ratio
from weighbridge.results.metrics import METRICS, Metric
from weighbridge.results.percent import TIMES
from weighbridge.results.record import LayoutVariant, TuningRun
from weighbridge.results.statistics import LEVEL, REPEATS_FOR_A_CLAIM, Ratio
from weighbridge.suites.tuning import Objective, Setting, show_setting

_MORE: Final = ("more", "fewer", "as many")
_LESS: Final = ("longer", "shorter", "as long")
"""Words for changes of metrics of which more is better, and less."""
_MANY: Final = 1000.0


def variant_words(run: TuningRun, variant: LayoutVariant) -> str:
    """`radosgw.threads 512 → 64`; several joined by commas, with dependent ones in brackets."""
    if not variant.settings:
        return "baseline"
    own = {
        key: value
        for key, value in variant.settings.items()
        if run.tuning.parameter(key) is not None
    }
    beside = {key: value for key, value in variant.settings.items() if key not in own}
    if not own:
        own, beside = beside, {}
    text = ", ".join(_set(run, key, value) for key, value in own.items())
    return (
        f"{text} (with {', '.join(_set(run, key, value) for key, value in beside.items())})"
        if beside
        else text
    )


def about(run: TuningRun, objective: Objective) -> str:
    """Name of an objective's requests: `64 kB reads`; with the workload if two would be equal."""
    called = {(one.workload, one.operation): _requests(run, one) for one in run.objectives}
    name = called[objective.workload, objective.operation]
    return f"{name} of {objective.workload}" if list(called.values()).count(name) > 1 else name


def objective_words(run: TuningRun, objective: Objective) -> str:
    """`throughput of 64 kB reads at 16 workers`."""
    return f"{METRICS[objective.of].name} of {about(run, objective)} {_where(objective)}"


def effect_words(name: str, objective: Objective, one: Effect) -> str:
    """`radosgw.threads 512 → 64: 12 % more 64 kB reads at 16 workers (8 % to 16 % more), n = 6`."""
    where, metric = _where(objective), METRICS[objective.of]
    of = "" if metric.better == "more" else f"{metric.name} of "
    if one.ratio is None:
        return (
            f"{name}: {of}{one.about} {where} cannot be "
            f"compared{f' ({one.reasons})' if one.reasons else ''}"
        )
    ends = _ends(metric, one.ratio)
    repeats = f"n = {one.ratio.repeats}"
    if one.verdict == "not significant":
        kind = f"the {of}{one.about}" if of else one.about
        found = f"{_why(one)}{f': {ends}' if ends else ''}"
        return f"{name}: no effect on {kind} {where} found{found}, {repeats}"
    change = _change(metric, one.ratio.value)
    text = f"{of}{one.about} {where} {change}" if of else f"{change} {one.about} {where}"
    text = f"{name}: {text}{f' ({ends})' if ends else ''}"
    if one.verdict == "too small to matter":
        text += f", within the {(one.bound - 1) * 100:.3g} % that matter"
    if one.verdict == "provisional":
        repeats += f": provisional with fewer than {REPEATS_FOR_A_CLAIM} trials"
    return f"{text}, {repeats}"


def _set(run: TuningRun, key: str, value: Setting) -> str:
    before = f" {_shown(run, key, run.layout_settings[key])}" if key in run.layout_settings else ""
    return f"{key}{before} → {_shown(run, key, value)}"


def _shown(run: TuningRun, key: str, value: Setting | None) -> str:
    """As in a configuration file; with a unit of size only if its range has units: 4096 may be a
    count.
    """
    if value is None or isinstance(value, (bool, str)):
        return show_setting(value)
    parameter = run.tuning.parameter(key)
    of_sizes = (
        parameter is not None
        and parameter.range is not None
        and isinstance(parameter.range.low, str)
    )
    if of_sizes:
        return show_bytes(value).replace(" ", "")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _requests(run: TuningRun, objective: Objective) -> str:
    workload = next(one for one in run.suite.workloads if one.name == objective.workload)
    if objective.operation is None:
        return f"operations of {workload.name}"
    words = requests_of(objective.operation, workload.request_bytes(objective.operation))
    return f"{words} at {workload.rate_per_s:g} op/s" if workload.rate_per_s is not None else words


def _where(objective: Objective) -> str:
    if objective.p90_within is not None:
        return f"with p90 within {objective.p90_within * 1000:g} ms"
    return (
        f"at {counted(objective.workers, 'worker')}"
        if objective.workers is not None
        else "at its worker counts"
    )


def _why(one: Effect) -> str:
    if one.p is not None and one.p <= LEVEL and one.q is not None and one.q > LEVEL:
        return f" after correction for {one.tests} tests"
    if one.smallest is None:
        return ""
    could = (
        f"{_digits((one.smallest - 1) * 100)} %"
        if one.smallest < TIMES
        else show_ratio(min(one.smallest, _MANY))
    )
    return f" (could have found {could})"


def _change(metric: Metric, ratio: float) -> str:
    more, fewer, alike = _MORE if metric.better == "more" else _LESS
    if ratio >= TIMES:
        times = f"over {_MANY:,.0f}" if ratio > _MANY else show_ratio(ratio).removesuffix("×")
        return f"{times} times {alike}"
    return f"{_digits(abs(ratio - 1) * 100)} % {more if ratio >= 1 else fewer}"


def _ends(metric: Metric, ratio: Ratio) -> str:
    """`8 % to 16 % more`, `3 % fewer to 8 % more`; empty without an interval."""
    if ratio.low is None or ratio.high is None:
        return ""
    ends = [
        _change(metric, end)
        for end in sorted(
            (ratio.low, ratio.high), key=lambda end: abs(end - 1) if ratio.shown else end
        )
    ]
    first, second = (
        end.partition(" times ") if " times " in end else end.partition(" % ") for end in ends
    )
    if first[1:] != second[1:]:
        return " to ".join(ends)
    return (
        f"{first[0]} to {second[0]} times {first[2]}"
        if first[1] == " times "
        else f"{first[0]} % to {second[0]} % {first[2]}"
    )


def _digits(percent: float) -> str:
    return f"{percent:.0f}" if percent >= 0.95 else f"{percent:.1f}".replace("0.0", "0")
