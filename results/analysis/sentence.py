"""A verdict in one sentence of plain words, with how sure it is: ratio, interval, latencies,
repeats, the rig's noise floor.

The layout that does more is named first, and of a latency the one that has more of it. Where
nothing is claimed the sentence says why; where something is not valid or missing it says so instead
of a number.
"""

from __future__ import annotations

from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import counted, listed, show_figure, show_ratio, upper
from weighbridge.results.interval import Interval
from weighbridge.results.metrics import METRICS
from weighbridge.results.statistics import LEVEL, Ratio


def sentence(one: Effect) -> str:
    """One sentence about an effect of two rows that has its verdict.

    Raises ValueError of one that has no rows.
    """
    baseline, subject = one.rows
    if one.ratio is None:
        return _incomparable(one)
    if one.bins is not None:
        return _in_bins(one, baseline, subject, one.bins)
    up = one.ratio.value > 1
    measure = one.ratio if up else one.ratio.inverted
    high, low = (subject, baseline) if up else (baseline, subject)
    relation = _throughput if one.metric == "throughput" else _latency
    text = f"{relation(one, measure, high, low)}; {strength(one)}."
    if one.lacking:
        counts = [str(count) for count in one.lacking]
        text += f" Not comparable at {listed(counts)} {'worker' if counts == ['1'] else 'workers'}."
    return text


def strength(one: Effect) -> str:
    """Of how many repeats it is, and why nothing is claimed where nothing is; then the noise floor."""
    text = f"n = {one.ratio.repeats if one.ratio is not None else 0}"
    if one.verdict == "provisional":
        text += f": provisional, {'; '.join(dict.fromkeys(doubt.words for doubt in one.doubts))}"
    elif one.verdict == "too small to matter":
        text += f": equivalent, less than the {_matter(one)} apart that matter"
    elif one.verdict == "not shown":
        text += f": no difference shown{_why(one)}"
    if one.drift > 1 and one.metric == "throughput" and one.verdict in ("better", "worse"):
        text += "; no drift within the windows that they leave open would undo it"
    return (
        f"{text}; the rig’s noise floor is {show_ratio(one.noise)}"
        if one.noise is not None
        else text
    )


def told_apart(one: Interval, other: Interval) -> str:
    """Two latencies of which only intervals are known, ranked where those do not touch."""
    if one == other:
        return f"not told apart: both in {one} ms"
    if one.touches(other):
        return f"not told apart: in {one} and {other} ms"
    return f"in {one} against {other} ms"


def percent(measure: Ratio) -> str:
    """How far two are apart, in whole per cent and at least 1."""
    return f"{max(1, round((measure.either_way - 1) * 100))} %"


def _why(one: Effect) -> str:
    if one.q is not None and one.q <= LEVEL:
        return (
            " beyond the rig’s noise floor"
            if one.noise is not None and one.least <= one.noise
            else ""
        )
    if one.tested is not None and one.tested.p_beyond(one.bound * one.drift) <= LEVEL:
        return f" after correction for {one.tests} comparisons"
    if one.tested is not None and one.tested.p_beyond(one.bound) <= LEVEL:
        return (
            " (drifts within the windows that are not ruled out could make "
            f"{show_ratio(one.drift)} of it)"
        )
    beyond = (
        f" beyond the {_matter(one)} that matter" if one.p is not None and one.p <= LEVEL else ""
    )
    return (
        f"{beyond} (one of {show_ratio(one.smallest)} would be, 8 times in 10)"
        if one.smallest is not None
        else beyond
    )


def _matter(one: Effect) -> str:
    """The practical threshold: `5 %`."""
    return f"{(one.bound - 1) * 100:.3g} %"


def _incomparable(one: Effect) -> str:
    why = f" ({one.reasons})" if one.reasons else ""
    subject = (
        upper(one.about)
        if one.metric == "throughput"
        else f"{METRICS[one.metric].name} of {one.about}"
    )
    where = "at any worker count" if one.workers is None else f"at {counted(one.workers, 'worker')}"
    return f"{subject}: {one.baseline} and {one.subject} cannot be compared {where}{why}."


def _throughput(one: Effect, measure: Ratio, fast: Row, slow: Row) -> str:
    if measure.value < one.bound:
        text = (
            f"{fast.layout} and {slow.layout} serve {one.about} within {percent(measure)} of "
            f"each other{_bounds(measure)}"
        )
    else:
        text = (
            f"{fast.layout} serves {show_ratio(measure.value)}{_bounds(measure)} "
            f"{slow.layout}’s {one.about}"
        )
    at = f" at {counted(fast.workers, 'worker')}" if len(one.by_count) > 1 else ""
    return f"{text} {_where(one, slow)}{_latencies(fast, slow, at)}"


def _latency(one: Effect, measure: Ratio, high: Row, low: Row) -> str:
    name = METRICS[one.metric].name
    # The subject is the higher one where the ratio of it to the baseline is above 1.
    values = (one.baseline_value, one.subject_value)
    values = values[::-1] if high.layout == one.subject else values
    figures = (
        ""
        if one.workers is None
        else f": {_against(*values, _least(one.metric, high, low))} {METRICS[one.metric].unit}"
    )
    where = _where(one, low)
    if measure.value < one.bound:
        near = f"within {percent(measure)} of each other{_bounds(measure)}"
        return (
            f"{name} of {one.about} {where}: {high.layout} and {low.layout} "
            f"{near}{figures.replace(':', ',')}"
        )
    return (
        f"{high.layout}’s {name} of {one.about} {where} is "
        f"{show_ratio(measure.value)}{_bounds(measure)} {low.layout}’s{figures}"
    )


def _in_bins(one: Effect, baseline: Row, subject: Row, bins: tuple[Interval, Interval]) -> str:
    first, second = (baseline, subject) if bins[0].low_ms <= bins[1].low_ms else (subject, baseline)
    within = sorted(bins, key=lambda interval: (interval.low_ms, interval.top_ms))
    at = f"at {counted(subject.workers, 'worker')}"
    about = f"{METRICS[one.metric].name} of {one.about} {at}"
    return f"{about}, {first.layout} and {second.layout}: {told_apart(*within)}; {strength(one)}."


def _where(one: Effect, slow: Row) -> str:
    """At which worker counts; over several also how the ratio differs between them, and where the
    other one leads.
    """
    if one.workers is not None:
        return f"at {counted(one.workers, 'worker')}"
    counts = [count for count, _ in one.by_count]
    if len(counts) == 1:
        return f"at {counted(counts[0], 'worker')}"
    up = one.ratio is None or one.ratio.value > 1
    ratios = [value if up else 1 / value for _, value in one.by_count]
    low, high = show_ratio(min(ratios)), show_ratio(max(ratios))
    spread = f"{low} at each" if low == high else f"{low} to {high} by worker count"
    text = f"at {counts[0]} to {counts[-1]} workers ({spread})"
    behind = [
        str(count) for count, value in zip(counts, ratios, strict=True) if value * one.bound < 1
    ]
    leads = "does more" if one.metric == "throughput" else "has more"
    return f"{text}, but {slow.layout} {leads} at {listed(behind)}" if behind else text


def _latencies(fast: Row, slow: Row, at: str) -> str:
    """Both p90s; nothing where one of them may not be set against another's."""
    if not may_rank(fast, "p90") or not may_rank(slow, "p90"):
        return ""
    of_fast, of_slow = fast.figure("p90"), slow.figure("p90")
    if of_fast.within is not None and of_slow.within is not None:
        return f", p90{at} {told_apart(of_fast.within, of_slow.within)}"
    if of_fast.value is None or of_slow.value is None:
        return ""
    return f", p90{at} {_against(of_fast.value, of_slow.value, _least('p90', fast, slow))} ms"


def _against(one: float | None, other: float | None, least: tuple[str, str]) -> str:
    """Two latencies in ms, with the signs of lower bounds: two digits, or three where they would
    read the same.
    """
    digits = 2 if show_figure(one, 2) != show_figure(other, 2) else 3
    return f"{least[0]}{show_figure(one, digits)} against {least[1]}{show_figure(other, digits)}"


def _least(metric: str, one: Row, other: Row) -> tuple[str, str]:
    """The sign before the figure of each, of those that are lower bounds."""
    return "≥ " * one.figure(metric).at_least, "≥ " * other.figure(metric).at_least


def _bounds(measure: Ratio) -> str:
    """The 95 % interval in brackets."""
    if measure.low is None or measure.high is None:
        return ""
    low, high = (show_ratio(end).removesuffix("×") for end in (measure.low, measure.high))
    return f" ({low}–{high})"
