"""Maps of change: kinds of requests and layouts down, worker counts across; for a study, sizes and
workers across.

Better is blue and worse is orange, for throughput as for p90. Only significant changes have their
full colour; `~` is not significant, brackets are provisional, and an empty frame is not comparable.
The colours of a study follow the logarithm of the ratio: half and double are equally far from
neutral.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.analysis.leads import NEAR
from weighbridge.results.analysis.study.recap import Recap, RecapCell, recap_csv
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot
from weighbridge.results.figures import UNKNOWN, percent, show_figure, show_percent, upper
from weighbridge.results.metrics import METRICS, MetricKey, compared
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio

CLIP: Final = 0.5
"""The change that has the full colour: 50 %."""
WIDTH: Final = 780
"""Wide enough for the title above it."""
CELL_WIDTH: Final = 104
CELL_WIDEST: Final = 160
CELL_HEIGHT: Final = 46
ALL: Final = "all"
STUDY_CELL_WIDTH: Final = 88
STUDY_CELL_HEIGHT: Final = 34
_FULL: Final = 1.5
"""Log2 of the ratio with the full colour in a study's map; -1 is half as fast, 1 twice as fast."""
_FADED: Final = 0.45
"""The strength of colour of a study's cell that is not significant."""


def change_charts(source: ChartSource) -> tuple[Figure, ...]:
    """A map for each metric of a comparison; none for a metric without comparable cells."""
    return () if source.comparison is None else change_maps(source.comparison)


def change_maps(comparison: Comparison) -> tuple[Figure, ...]:
    """The maps of a comparison, also one of two runs."""
    made = (_figure(comparison, metric.key) for metric in compared())
    return tuple(figure for figure in made if figure is not None)


def _figure(comparison: Comparison, metric: MetricKey) -> Figure | None:
    effects = [effect for effect in comparison.effects if effect.metric == metric]
    if not any(effect.ratio is not None for effect in effects):
        return None
    versus = f"vs {_reference(effects, comparison)}"
    about = f"{comparison.subjects[0]} {versus}" if len(comparison.subjects) == 1 else versus
    better, worse = ("more", "less") if METRICS[metric].better == "more" else ("shorter", "longer")
    unit = METRICS[metric].unit
    columns, rows = _columns(effects), _rows(effects)
    several = len({subject for _, subject in rows}) > 1
    cells = [effect for effect in effects if _column(effect) in columns]
    panel = Panel(
        key=metric,
        title=f"Change of {METRICS[metric].name} by workers, {about}",
        x=AxisScale.of_names(columns, "workers"),
        y=AxisScale.of_names(
            [_key(*row) for row in rows],
            expression="" if several else "split(datum.value, '\\n')[0]",
            groups=tuple(about for about, _ in rows) if several else (),
        ),
        marks=(
            Mark(kind="cell", spots=tuple(_cell(one) for one in cells if one.ratio is not None)),
            Mark(kind="frame", spots=tuple(_cell(one) for one in cells if one.ratio is None)),
        ),
        head=(
            *("About", "Subject", "Workers", f"{comparison.baseline} {unit}", f"Subject {unit}"),
            *("Change", "95 % interval", "Repeats", "Verdict"),
        ),
        lines=tuple(_line(effect) for effect in effects),
        width=len(columns) * min(CELL_WIDEST, max(CELL_WIDTH, WIDTH // len(columns))),
        height=len(rows) * CELL_HEIGHT,
    )
    return Figure(
        name="recap-map" if metric == "throughput" else f"recap-map-{metric}",
        section="certainty",
        title=f"Recap: {METRICS[metric].name}",
        finding=finding(effects, comparison),
        caption=f"Blue: better, {better} {METRICS[metric].name}. Orange: worse, {worse}. Full "
        f"colour from {CLIP * 100:.0f} %. Grey: ~ not significant, a number alone too small to "
        "matter, in brackets provisional. × not comparable."
        f"{_noise_words(comparison, metric)}{_guard_words(comparison)}",
        data=change_csv(effects),
        panels=(panel,),
        columns=1,
    )


def finding(effects: Sequence[Effect], comparison: Comparison) -> str:
    """In how many cells a subject, or several together, is better or worse than the baseline."""
    metric = effects[0].metric
    cells = [effect for effect in effects if effect.workers is not None]
    known = [effect for effect in cells if effect.ratio is not None]
    noun = "cell" if len(known) == 1 else "cells"
    if not known:
        return f"Nothing could be compared with {_reference(effects, comparison)}"
    if all(effect.verdict == "provisional" for effect in known):
        where = "the only comparable cell"
        if len(known) > 1:
            where = f"{'each' if len(known) > 2 else 'both'} of {len(known)} comparable cells"
        why = ", ".join(dict.fromkeys(doubt.what for effect in known for doubt in effect.doubts))
        return f"{_upper(METRICS[metric].name)} is provisional in {where}: {why}"
    better, worse = (
        sum(effect.verdict == verdict for effect in known) for verdict in ("better", "worse")
    )
    one = len(comparison.subjects) == 1
    reference = _reference(effects, comparison)
    others = "the other layouts" if reference == comparison.baseline else "layouts of the other run"
    who = comparison.subjects[0] if one else others
    words = ("faster", "slower") if metric == "throughput" else ("a shorter", "a longer")
    tail = "" if metric == "throughput" else f" {METRICS[metric].name}"
    verb = ("is" if one else "are") if metric == "throughput" else ("has" if one else "have")
    parts = [
        f"{word}{tail} in {count} of {len(known)} {noun}"
        for word, count in zip(words, (better, worse), strict=True)
        if count
    ]
    if not parts:
        where = f"any of {len(known)} cells" if len(known) > 1 else "the only comparable cell"
        return f"No significant difference of {METRICS[metric].name} from {reference} in {where}"
    return f"Compared with {reference}, {who} {verb} {' and '.join(parts)}"


def _upper(name: str) -> str:
    """A metric's name at the beginning of a sentence; `p90` stays as it is."""
    return name if name[1:2].isdigit() else upper(name)


def change_csv(effects: Sequence[Effect]) -> str:
    """All cells of a map, a line each; changes in per cent; for p90 more is worse."""
    head = (
        *("about", "workload", "operation", "api", "driver", "workers", "metric"),
        *("baseline", "subject", "baseline_value", "subject_value", "change_percent"),
        *("low_percent", "high_percent", "repeats", "p", "q", "verdict"),
    )
    lines = []
    for one in effects:
        change: tuple[float | None, ...] = (None, None, None)
        if one.ratio is not None:
            ends = (None if in_bins(one) else one.ratio.value, one.ratio.low, one.ratio.high)
            change = tuple(None if end is None else percent(end) for end in ends)
        repeats = None if one.ratio is None else one.ratio.repeats
        lines.append(
            (
                *(one.about, one.workload, one.operation, one.api, one.driver),
                *(one.workers or ALL, one.metric, one.baseline, one.subject),
                *(one.baseline_value, one.subject_value, *change),
                *(repeats, one.p, one.q, one.verdict),
            )
        )
    return csv_lines(head, lines)


def _noise_words(comparison: Comparison, metric: MetricKey) -> str:
    noise = max((one.ratio for one in comparison.noise if one.metric == metric), default=None)
    if noise is None:
        return ""
    return f" The noise floor of this test bed is {show_percent(noise, signed=False)}."


def _guard_words(comparison: Comparison) -> str:
    count = len(comparison.unlike)
    if not count:
        return ""
    return f" The runs differ in {count} guard fact{'s' * (count > 1)}."


def _reference(effects: Sequence[Effect], comparison: Comparison) -> str:
    """The baseline; where each layout has its own baseline in another run, that run."""
    within = comparison.baseline in {effect.baseline for effect in effects}
    return comparison.baseline if within else f"run {comparison.baseline}"


def _columns(effects: Sequence[Effect]) -> list[str]:
    """Worker counts in ascending order, and `all` where there are several."""
    counts = sorted({effect.workers for effect in effects if effect.workers is not None})
    return [*(str(count) for count in counts), *[ALL] * (len(counts) > 1)]


def _rows(effects: Sequence[Effect]) -> list[tuple[str, str]]:
    kinds = list(dict.fromkeys(kind_of(effect) for effect in effects))
    pairs = dict.fromkeys((kind_of(effect), effect.about, effect.subject) for effect in effects)
    return [(about, subject) for kind in kinds for one, about, subject in pairs if one == kind]


def _key(about: str, subject: str) -> str:
    return f"{upper(about)}\n{subject}"


def _column(effect: Effect) -> str:
    return ALL if effect.workers is None else str(effect.workers)


def _cell(effect: Effect) -> Spot:
    tone = None
    if effect.ratio is not None and effect.verdict in {"better", "worse"}:
        change = _least(effect.ratio) - 1 if in_bins(effect) else effect.ratio.value - 1
        tone = max(
            -1.0, min(1.0, (change if METRICS[effect.metric].better == "more" else -change) / CLIP)
        )
    return Spot(
        x=_column(effect),
        y=_key(effect.about, effect.subject),
        tone=tone,
        text=cell_text(effect),
        tip=effect.text,
    )


def cell_text(effect: Effect) -> str:
    """`+34 %`, `~` if not significant, `(+34 %)` if provisional, a cross if not comparable. In bins
    the least change that they allow: `≥ +20 %`, or `~`.
    """
    if effect.ratio is None:
        return "×"
    if effect.verdict == "not significant":
        return "~"
    words = show_percent(effect.ratio.value)
    if in_bins(effect):
        least = _least(effect.ratio)
        words = "~" if least == 1 else f"{'≥' if least > 1 else '≤'} {show_percent(least)}"
    return f"({words})" if effect.verdict == "provisional" else words


def in_bins(effect: Effect) -> bool:
    """Whether latencies are known only as bins: then there is a ratio at one count, by the bins,
    and no values; over all counts neither.
    """
    unvalued = effect.baseline_value is None and effect.subject_value is None
    return (
        effect.metric == "p90"
        and effect.workers is not None
        and effect.ratio is not None
        and unvalued
    )


def _least(ratio: Ratio) -> float:
    """The end of an interval that is nearer to no change; 1 where the interval holds it."""
    low, high = ratio.low or 1.0, ratio.high or 1.0
    return 1.0 if low <= 1 <= high else low if low > 1 else high


def _line(effect: Effect) -> tuple[str, ...]:
    interval = change = repeats = UNKNOWN
    if effect.ratio is not None:
        change = UNKNOWN if in_bins(effect) else show_percent(effect.ratio.value)
        repeats = str(effect.ratio.repeats)
        if effect.ratio.low is not None and effect.ratio.high is not None:
            interval = f"{show_percent(effect.ratio.low)} to {show_percent(effect.ratio.high)}"
    return (
        *(effect.about, effect.subject, _column(effect)),
        *(show_figure(effect.baseline_value), show_figure(effect.subject_value)),
        *(change, interval, repeats, effect.verdict),
    )


# ---- a study


def study_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The maps of a study that a run replays; none where it replays none."""
    return () if not source.recaps else (study_maps(source.recaps),)


def study_maps(maps: Sequence[Recap]) -> Figure:
    """The chart of a study's maps, one below the other."""
    return Figure(
        name="recap",
        section="study",
        title="What changed",
        finding=_study_finding(maps),
        caption="Change of throughput in %, other factors equal; columns are object size × "
        f"workers. Blue: faster. Orange: slower. ~: less than {NEAR * 100:.0f} %, or not "
        f"significant with {REPEATS_FOR_A_CLAIM} or more repeats. In brackets and pale: fewer than "
        f"{REPEATS_FOR_A_CLAIM} repeats, provisional. ×: not measured or invalid.",
        data=recap_csv(maps),
        panels=tuple(_study_panel(one, str(number)) for number, one in enumerate(maps)),
        columns=1,
    )


def _study_panel(one: Recap, key: str) -> Panel:
    return Panel(
        key=key,
        title=one.title,
        alt_text="Change of throughput. The table below has every cell.",
        # Size and number are on two lines.
        x=AxisScale.of_names(one.across, expression="split(datum.label, ' × ')"),
        y=AxisScale.of_names(one.down),
        marks=(Mark(kind="cell", spots=tuple(_study_cell(cell) for cell in one.cells), size=14),),
        head=("Kind", "Size × workers", "Change", "Interval and repeats"),
        lines=tuple((cell.down, cell.across, cell.text, cell_words(cell)) for cell in one.cells),
        width=len(one.across) * STUDY_CELL_WIDTH,
        height=max(1, len(one.down)) * STUDY_CELL_HEIGHT,
    )


def _study_cell(cell: RecapCell) -> Spot:
    doubled = 0.0 if cell.ratio is None or cell.verdict == "same" else math.log2(cell.ratio.value)
    place = max(-1.0, min(1.0, doubled / _FULL))
    return Spot(
        x=cell.across,
        y=cell.down,
        tone=place if cell.verdict == "changed" else _FADED * place,
        text=cell.text,
        tip=f"{cell.down}, {cell.across}: {cell_words(cell)}",
    )


def _study_finding(maps: Sequence[Recap]) -> str:
    """How many cells changed significantly, or that none makes a claim."""
    cells = [cell for one in maps for cell in one.cells]
    measured = [cell for cell in cells if cell.ratio is not None]
    if not measured:
        return "Nothing could be compared"
    claims = [cell for cell in measured if cell.verdict == "changed"]
    if all(cell.verdict == "provisional" for cell in measured):
        few = max(cell.ratio.repeats for cell in measured if cell.ratio is not None)
        pairs = f"{len(measured)} comparison{'s' * (len(measured) > 1)}"
        return f"What was measured in {pairs} by {few} repeat{'s' * (few > 1)}: too few for a claim"
    faster = sum(cell.percent is not None and cell.percent > 0 for cell in claims)
    changed = f"{faster} became faster and {len(claims) - faster} slower"
    return f"Of {len(measured)} comparisons {changed}; of the others nothing can be claimed"


def cell_words(cell: RecapCell) -> str:
    """The cell in words: change, interval, repeats."""
    if cell.ratio is None:
        return cell.why
    ends = (cell.ratio.low, cell.ratio.high)
    interval = (
        ""
        if None in ends
        else f", 95 % interval {' to '.join(f'{((end or 1) - 1) * 100:+.0f} %' for end in ends)}"
    )
    return (
        f"{(cell.ratio.value - 1) * 100:+.1f} %{interval}, n = {cell.ratio.repeats}, {cell.verdict}"
    )
