"""A verdict in one sentence of plain words, with how sure it is: ratio, interval, latencies, repeats, the rig's noise floor.

The layout that does more is named first, and of a latency the one that has more of it. Where nothing is claimed the sentence says
why; where something is not valid or missing it says so instead of a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.results.analysis.comparison import Verdict
from weighbridge.results.analysis.contrast import Contrast, workers_words
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import show_figure, show_ratio
from weighbridge.results.interval import Interval
from weighbridge.results.statistics import LEVEL, Ratio


@dataclass(frozen=True)
class Judged:
    """A contrast with its verdict and what it was judged by: thresholds are ratios, `tests` were corrected together."""

    contrast: Contrast
    q: float | None
    bound: float
    noise: float | None
    tests: int
    verdict: Verdict
    smallest: float | None = None
    """The smallest true ratio above 1 that would be shown 8 times in 10, as the other cells have come out."""


def sentence(about: str, judged: Judged) -> str:
    """One sentence about requests that are called `about`: `1 MB reads`."""
    one = judged.contrast
    if one.ratio is None:
        return _incomparable(about, one)
    if one.bins is not None:
        return _in_bins(about, judged, one.bins)
    up = one.ratio.value > 1
    measure = one.ratio if up else one.ratio.inverted
    high, low = (one.subject, one.baseline) if up else (one.baseline, one.subject)
    relation = _throughput if one.metric.key == "throughput" else _latency
    text = f"{relation(about, judged, measure, high, low)}; {strength(judged)}."
    if one.lacking:
        counts = [str(count) for count in one.lacking]
        text += f" Not comparable at {listed(counts)} {'worker' if counts == ['1'] else 'workers'}."
    return text


def strength(judged: Judged) -> str:
    """Of how many repeats it is, and why nothing is claimed where nothing is; then the noise floor."""
    one = judged.contrast
    repeats = one.ratio.repeats if one.ratio is not None else 0
    text, floor = f"n = {repeats}", judged.noise
    if judged.verdict == "provisional":
        text += f": provisional, {'; '.join(dict.fromkeys(doubt.words for doubt in one.doubts))}"
    elif judged.verdict == "too small to matter":
        text += f": equivalent, less than the {_matter(judged)} apart that matter"
    elif judged.verdict == "not shown":
        text += f": no difference shown{_why(judged)}"
    if one.drift > 1 and one.metric.key == "throughput" and judged.verdict in ("better", "worse"):
        text += "; no drift within the windows that they leave open would undo it"
    return f"{text}; the rig’s noise floor is {show_ratio(floor)}" if floor is not None else text


def told_apart(one: Interval, other: Interval) -> str:
    """Two latencies of which only intervals are known, ranked where those do not touch."""
    if one == other:
        return f"not told apart: both in {one} ms"
    if one.touches(other):
        return f"not told apart: in {one} and {other} ms"
    return f"in {one} against {other} ms"


def listed(words: Sequence[str]) -> str:
    """`1`, `1 and 4`, `1, 4 and 8`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def percent(measure: Ratio) -> str:
    """How far two are apart, in whole per cent and at least 1."""
    return f"{max(1, round((measure.either_way - 1) * 100))} %"


def _why(judged: Judged) -> str:
    one = judged.contrast
    if judged.q is not None and judged.q <= LEVEL:
        return " beyond the rig’s noise floor" if judged.noise is not None and one.least <= judged.noise else ""
    if one.welch is not None and one.welch.p_beyond(judged.bound * one.drift) <= LEVEL:
        return f" after correction for {judged.tests} comparisons"
    if one.welch is not None and one.welch.p_beyond(judged.bound) <= LEVEL:
        return f" (drifts within the windows that are not ruled out could make {show_ratio(one.drift)} of it)"
    beyond = f" beyond the {_matter(judged)} that matter" if one.p is not None and one.p <= LEVEL else ""
    return f"{beyond} (one of {show_ratio(judged.smallest)} would be, 8 times in 10)" if judged.smallest is not None else beyond


def _matter(judged: Judged) -> str:
    """The practical threshold: `5 %`."""
    return f"{(judged.bound - 1) * 100:.3g} %"


def _incomparable(about: str, one: Contrast) -> str:
    why = f" ({one.reasons})" if one.reasons else ""
    subject = _upper(about) if one.metric.key == "throughput" else f"{one.metric.name} of {about}"
    where = "at any worker count" if one.workers is None else f"at {workers_words(one.workers)}"
    return f"{subject}: {one.baseline.layout} and {one.subject.layout} cannot be compared {where}{why}."


def _throughput(about: str, judged: Judged, measure: Ratio, fast: Row, slow: Row) -> str:
    one = judged.contrast
    if measure.value < judged.bound:
        text = f"{fast.layout} and {slow.layout} serve {about} within {percent(measure)} of each other{_bounds(measure)}"
    else:
        text = f"{fast.layout} serves {show_ratio(measure.value)}{_bounds(measure)} {slow.layout}’s {about}"
    at = f" at {workers_words(fast.workers)}" if len(one.by_count) > 1 else ""
    return f"{text} {_where(judged, slow)}{_latencies(fast, slow, at)}"


def _latency(about: str, judged: Judged, measure: Ratio, high: Row, low: Row) -> str:
    one = judged.contrast
    name = one.metric.name
    # The subject is the higher one where the ratio of it to the baseline is above 1.
    values = one.values if high is one.baseline else one.values[::-1]
    figures = "" if one.workers is None else f": {_against(*values, _least(one.metric.key, high, low))} {one.metric.unit}"
    where = _where(judged, low)
    if measure.value < judged.bound:
        near = f"within {percent(measure)} of each other{_bounds(measure)}"
        return f"{name} of {about} {where}: {high.layout} and {low.layout} {near}{figures.replace(':', ',')}"
    return f"{high.layout}’s {name} of {about} {where} is {show_ratio(measure.value)}{_bounds(measure)} {low.layout}’s{figures}"


def _in_bins(about: str, judged: Judged, bins: tuple[Interval, Interval]) -> str:
    one = judged.contrast
    first, second = (one.baseline, one.subject) if bins[0].low_ms <= bins[1].low_ms else (one.subject, one.baseline)
    within = sorted(bins, key=lambda interval: (interval.low_ms, interval.top_ms))
    at = f"at {workers_words(one.subject.workers)}"
    return f"{one.metric.name} of {about} {at}, {first.layout} and {second.layout}: {told_apart(*within)}; {strength(judged)}."


def _where(judged: Judged, slow: Row) -> str:
    """At which worker counts; over several also how the ratio differs between them, and where the other one leads."""
    one = judged.contrast
    if one.workers is not None:
        return f"at {workers_words(one.workers)}"
    counts = [count for count, _ in one.by_count]
    if len(counts) == 1:
        return f"at {workers_words(counts[0])}"
    up = one.ratio is None or one.ratio.value > 1
    ratios = [value if up else 1 / value for _, value in one.by_count]
    low, high = show_ratio(min(ratios)), show_ratio(max(ratios))
    spread = f"{low} at each" if low == high else f"{low} to {high} by worker count"
    text = f"at {counts[0]} to {counts[-1]} workers ({spread})"
    behind = [str(count) for count, value in zip(counts, ratios, strict=True) if value * judged.bound < 1]
    leads = "does more" if one.metric.key == "throughput" else "has more"
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
    """Two latencies in ms, with the signs of lower bounds: two digits, or three where they would read the same."""
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


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
