"""Tables for papers, talks and notes: few columns, rounded figures, and notes below.

The content is decided here; `markdown_format` sets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.analysis.power_mark import marks_of, power_words
from weighbridge.results.analysis.reasons import reasons
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.validity import least_samples
from weighbridge.results.figures import UNKNOWN, show_figure, upper
from weighbridge.results.metrics import METRICS, Metric
from weighbridge.results.record.manifest import Manifest
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

NOT_VALID: Final = "†"
NOT_STEADY: Final = "‡"
IN_DOUBT: Final = "§"
PROVISIONAL: Final = "°"
NOT_DURABLE: Final = "¶"
_LOST: Final = "lost acknowledged writes in power cuts"
_UNSYNCED: Final = "acknowledges writes that are not on disk"
WORKERS_ALL: Final = "all"


class PaperColumn(Record):
    """A column; its head has the unit."""

    title: str
    unit: str = ""
    numeric: bool = False


class PaperTable(Record):
    """Lines in groups with rules between them; texts are plain, formats escape them."""

    name: str
    caption: str
    columns: tuple[PaperColumn, ...]
    groups: tuple[tuple[tuple[str, ...], ...], ...]
    notes: tuple[str, ...]


_METRICS: Final = tuple(one for one in METRICS.values() if one.paper)


def summary_paper(data: RunData) -> PaperTable:
    """The table of the study, without A/A controls."""
    rows = [row for row in data.rows if row.layout not in data.plan.twins]
    names = subjects(rows)
    groups: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        name = names[kind_of(row)]
        groups.setdefault(name, []).append(
            (
                name,
                str(row.workers),
                f"{row.layout} {_mark(row)}".rstrip(),
                *(_cell(row, one) for one in _METRICS),
                str(row.repeats),
            )
        )
    return PaperTable(
        name="summary",
        caption=_caption("Throughput, latency and errors", data.manifest),
        columns=(
            PaperColumn(title="Requests"),
            PaperColumn(title="Workers", numeric=True),
            PaperColumn(title="Layout"),
            *(PaperColumn(title=one.title, unit=one.unit, numeric=True) for one in _METRICS),
            PaperColumn(title="Repeats", numeric=True),
        ),
        groups=tuple(tuple(lines) for lines in groups.values()),
        notes=tuple(_summary_notes(rows, data.plan.twins, data.comparison)),
    )


def effects_paper(data: RunData, comparison: Comparison) -> PaperTable:
    """Every layout compared with the first, metric by metric."""
    caption = _caption(f"What differs from {comparison.baseline}", data.manifest)
    return effects_paper_of(data.rows, comparison, caption)


def effects_paper_of(rows: Sequence[Row], comparison: Comparison, caption: str) -> PaperTable:
    """Every effect of a comparison, metric by metric. `rows` are those whose doubts are noted."""
    groups: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for effect in comparison.effects:
        groups.setdefault((effect.about, effect.metric), []).append(_effect(effect))
    ratio = (
        f"Ratio: the layout's figure divided by that of {comparison.baseline}, of geometric means; "
        "above 1 is better for throughput, worse for latencies."
    )
    tests = (
        f"q: p-value of Welch's test on logarithms, corrected over {comparison.tests} cells "
        "(Benjamini and Hochberg). "
        "n: repeats of the side that has fewer."
    )
    noise = (one.words for one in comparison.noise)
    doubts = (f"{upper(one.text)}." for one in reasons(rows, comparison))
    return PaperTable(
        name="effects",
        caption=caption,
        columns=(
            PaperColumn(title="Requests"),
            PaperColumn(title="Metric"),
            PaperColumn(title="Workers", numeric=True),
            PaperColumn(title="Layout"),
            PaperColumn(title="Ratio", numeric=True),
            PaperColumn(title="95 % interval", numeric=True),
            PaperColumn(title="q", numeric=True),
            PaperColumn(title="n", numeric=True),
            PaperColumn(title="Verdict"),
        ),
        groups=tuple(tuple(lines) for lines in groups.values()),
        notes=(ratio, tests, *noise, *_power_notes(rows), *doubts),
    )


def _caption(words: str, manifest: Manifest) -> str:
    state = "" if manifest.state == "done" else f" ({manifest.state})"
    return f"{words}; suite {manifest.suite}, run {manifest.run_id}{state}"


def _cell(row: Row, metric: Metric) -> str:
    """The figure; of a percentile with too few samples in a repeat, how many it needs."""
    found = row.figure(metric.key)
    if (
        metric.percent is not None
        and metric.percent < 100
        and found.value is None
        and found.within is None
    ):
        least = least_samples(metric.percent)
        if any((point.count("samples") or 0) < least for point in row.used):
            return f"n<{least}"
    return shown(row, metric.key)


def _mark(row: Row) -> str:
    """Why a row is not ranked, or provisional, and that its layout lost acknowledged writes."""
    lost = NOT_DURABLE if row.power is not None and row.power.endangered else ""
    return f"{_rank_mark(row)}{lost}"


def _rank_mark(row: Row) -> str:
    if row.ranked:
        return PROVISIONAL if row.doubts else ""
    return NOT_VALID if not row.valid else NOT_STEADY if row.steady is False else IN_DOUBT


def _summary_notes(
    rows: Sequence[Row], controls: Mapping[str, str], comparison: Comparison
) -> Iterator[str]:
    yield (
        "Geometric means of the repeats, ± half of their 95 % interval; max is the highest of all."
    )
    yield "Errors are those of all repeats, including those left out."
    if any(row.repeats < REPEATS_FOR_A_CLAIM for row in rows):
        yield f"Fewer than {REPEATS_FOR_A_CLAIM} repeats are provisional."
    marks = {_cell(row, one) for row in rows for one in _METRICS}
    few = sorted(mark for mark in marks if mark.startswith("n<"))
    if few:
        yield f"{', '.join(few)}: a repeat had fewer operations than the percentile needs."
    if any(row.within("max") is not None for row in rows):
        yield "(10, 20]: the bin that holds the latency, where the driver counts in bins."
    found = [mark for row in rows if (mark := _mark(row))]
    powers = [row.power for row in rows if row.power is not None]
    why = {_LOST: any(one.lost for one in powers), _UNSYNCED: any(one.unsynced for one in powers)}
    for mark, words in (
        (NOT_VALID, "invalid, not ranked"),
        (NOT_STEADY, "not steady, not ranked"),
        (IN_DOUBT, "not comparable, not ranked"),
        (PROVISIONAL, "provisional: allows no claim"),
        (NOT_DURABLE, ", or ".join(words for words, there in why.items() if there)),
    ):
        if any(mark in one for one in found):
            yield f"{mark}: {words}."
    yield from _power_notes(rows)
    for one in reasons(rows, comparison):
        yield f"{upper(one.text)}."
    for control, layout in controls.items():
        yield f"{control} is left out: an A/A control of {layout}, for the noise of this machine."


def _power_notes(rows: Sequence[Row]) -> Iterator[str]:
    if marks := power_words(marks_of([row.power for row in rows])):
        yield f"Writes, {marks}."


def _effect(effect: Effect) -> tuple[str, ...]:
    ratio = effect.ratio
    known = ratio is not None and ratio.low is not None and ratio.high is not None
    return (
        effect.about,
        effect.metric,
        WORKERS_ALL if effect.workers is None else str(effect.workers),
        effect.subject,
        UNKNOWN if ratio is None else show_figure(ratio.value),
        f"{show_figure(ratio.low)} to {show_figure(ratio.high)}"
        if ratio is not None and known
        else UNKNOWN,
        UNKNOWN if effect.q is None else f"{effect.q:.3f}" if effect.q >= 0.001 else "<0.001",
        UNKNOWN if ratio is None else str(ratio.repeats),
        effect.verdict,
    )
