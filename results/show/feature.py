"""What a feature gives to every output, and what outputs get of all: answer, sections, charts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.results.figures.doubt import marks_of, power_words
from weighbridge.results.judge.host_equality import unequal_shares
from weighbridge.results.judge.leads import Lead, leads
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.judge.trust import TrustSign, trust
from weighbridge.results.judge.words import Card, card, caveats, context, headline, store_names
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.chart_source import CeilingLine, ChartKind, ChartSource, source_of
from weighbridge.results.show.section import Section
from weighbridge.results.show.slide import Topic
from weighbridge.results.show.table import Table


def _no_answer(_: RunData) -> str:
    return ""


@dataclass(frozen=True)
class Feature:
    """What answers one question about runs. A run that did not ask gets nothing of it."""

    answer: Callable[[RunData], str] = _no_answer
    """The answer of a run that was made for this question, without a full stop."""
    tables: Sequence[Table] = ()
    charts: Mapping[str, ChartKind] = field(default_factory=dict)
    ceilings: Callable[[RunData], Mapping[str, tuple[CeilingLine, ...]]] | None = None
    """Lines across the chart of throughput, by key of its panel."""
    sections: Callable[[RunData], Iterable[Section]] = lambda _: ()
    cards: Callable[[RunData], Iterable[Card]] = lambda _: ()
    """Below its answer."""
    topic: Callable[[RunData], Topic | None] = lambda _: None
    """Of the talk: the first topic of all is that of the talk."""
    signs: Callable[[RunData], Iterable[TrustSign]] = lambda _: ()
    """What the figures rest on, in a run in which nothing else was measured."""
    write: Callable[[RunData], None] | None = None
    """Writes its own files into `derived/`. Raises StoreError."""

    @property
    def comes_first(self) -> bool:
        """Whether runs are made for it, so that its topic comes before the comparison."""
        return self.answer is not _no_answer


_PLACES: Final = (
    *("tuning.feature", "durability", "study", "find", "outages", "overload", "comparison"),
    *("layers", "agreement", "keeping", "variants", "step_details"),
)
_OWN: Final = {
    place.partition(".")[0]: f"weighbridge.results.features.{place}:FEATURE" for place in _PLACES
}
FEATURES: Final[Registry[Feature]] = Registry(
    "weighbridge.features", "feature", own=_OWN, kind=Feature
)
"""Every feature by name; others come by entry points of the group `weighbridge.features`."""


def write_sections(data: RunData) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    """Have features write their files; what they say, and a sentence for each that failed."""
    sections: list[Section] = []
    left_out = []
    for name, feature in FEATURES.items():
        try:
            sections += _sections(feature, data, {section.key for section in sections})
        except Exception as error:
            if name in _OWN:
                raise
            left_out.append(f"the feature {name} is left out: {failure(error)}")
    return tuple(sections), tuple(left_out)


def _sections(feature: Feature, data: RunData, taken: Collection[str]) -> list[Section]:
    """What one feature says. Raises ValueError for a key that is taken, and whatever it raises."""
    if feature.write is not None:
        feature.write(data)
    # The rows of a tuning are of settings: only what it was made for says something of them.
    if data.tuning is not None and not feature.answer(data):
        return []
    sections = [*feature.sections(data)]
    twice = {section.key for section in sections if section.key in taken}
    if twice:
        raise ValueError(f"another section has the key {', '.join(sorted(twice))}")
    return sections


def failure(error: Exception) -> str:
    """Why something of another package is left out, in a line."""
    text = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


# The answer of a run.


@dataclass(frozen=True)
class Answer:
    """The answer of a run in a sentence, with what was compared, caveats, and a card a workload.

    What a run was made for decides which answer it is: a feature's, else that of its comparison.
    """

    data: RunData

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Who leads in each workload; empty if fewer than two layouts were compared."""
        return () if self.data.tuning is not None else leads(self.data.comparison)

    @cached_property
    def stores(self) -> dict[str, str]:
        """What the layouts of one store may be called by."""
        return store_names(self.data.plan)

    @property
    def headline(self) -> str:
        """Without its end. Empty: nothing was measured that could be an answer."""
        return self._other or (headline(self.leads, self.stores) if self.leads else "")

    @cached_property
    def _other(self) -> str:
        """The answer of another question than a comparison; empty if none was asked."""
        answers = (feature.answer(self.data) for feature in FEATURES.values())
        return next(filter(None, answers), "")

    @property
    def caveat(self) -> str:
        """What keeps the answer of a comparison from being a claim; empty for claims."""
        return "" if self._other else caveats(self.leads)

    @property
    def context(self) -> str:
        """What was compared: releases, API, hosts, repeats."""
        data = self.data
        settings = None if data.tuning is None else len(data.comparison.subjects)
        return context(data.manifest, data.plan, settings)

    @property
    def cards(self) -> tuple[Card, ...]:
        own = (one for feature in FEATURES.values() for one in feature.cards(self.data))
        return (*own, *(card(lead, self.stores) for lead in self.leads))


def signs(data: RunData) -> tuple[TrustSign, ...]:
    """What the figures of a run rest on."""
    plan, attested = data.plan, data.attested
    rows = [row for row in data.rows if row.layout not in plan.twins]
    if rows:
        comparison = data.comparison if data.tuning is None else None
        unequal = bool(unequal_shares(plan))
        return trust(plan.hardware.kind, plan.measured, rows, attested, comparison, unequal=unequal)
    each = (tuple(feature.signs(data)) for feature in FEATURES.values())
    return next(filter(None, each), ())


# All charts of a run.


CHARTS: Final = Registry("weighbridge.charts", "chart", kind=ChartKind)
"""Charts of other packages, by entry points of the group `weighbridge.charts`."""
_WITHOUT_WRITES: Final = ("resources", "durability")
"""Sections whose charts compare no figures of writes."""


@dataclass(frozen=True)
class Gallery:
    """All charts of a run."""

    charts: tuple[Chart, ...]
    left_out: tuple[str, ...] = ()
    """Charts of other packages that failed, a sentence each with the reason."""

    def named(self, key: str) -> Chart | None:
        """The chart with a key; None where the run has nothing to show in it."""
        return next((chart for chart in self.charts if chart.key == key), None)

    def choose(self, keys: Sequence[str]) -> tuple[Chart, ...]:
        """The charts with these keys, in that order. Raises UsageError."""
        known = {chart.key: chart for chart in self.charts}
        for key in keys:
            if key not in known:
                raise UsageError(
                    f"no chart {key!r} in this run{did_you_mean(key, list(known))}",
                    advice="--list names the charts and their findings.",
                )
        return tuple(known[key] for key in dict.fromkeys(keys))

    def of(self, section: str) -> tuple[Chart, ...]:
        return tuple(chart for chart in self.charts if chart.section == section)


def gallery(data: RunData, *, slo_ms: float | None = None) -> Gallery:
    """The charts of a run; `slo_ms` is the bound on p90 of those that have one.

    Raises UsageError and InvalidMeasurement as reading the run does.
    """
    source = source_of(data, slo_ms=slo_ms)
    own: dict[str, ChartKind] = {}
    for feature in FEATURES.values():
        own |= feature.charts
        if feature.ceilings is not None:
            source = replace(source, ceilings=feature.ceilings(data))
    charts = [chart for kind in own.values() for chart in kind.of(source)]
    left_out: list[str] = []
    try:
        names = list(CHARTS)
    except UsageError as error:
        left_out.append(f"charts of other packages are left out: {error}")
        names = []
    for name in names:
        if name in own:
            left_out.append(f"the chart {name} is left out: two packages have a chart {name!r}")
            continue
        try:
            charts += _checked(CHARTS[name].of(source), charts, source)
        except Exception as error:  # noqa: BLE001 - another package's chart may fail in any way
            left_out.append(f"the chart {name} is left out: {failure(error)}")
    return Gallery(tuple(_with_power(chart, source) for chart in charts), tuple(left_out))


def _with_power(chart: Chart, source: ChartSource) -> Chart:
    """The chart; what power cuts did is in the caption of those that may compare writes."""
    rows = [row for row in source.rows if chart.workload in ("", row.workload)]
    marks = power_words(marks_of([row.power for row in rows]))
    if not marks or chart.section in _WITHOUT_WRITES:
        return chart
    return replace(chart, caption=f"{chart.caption} Writes, {marks}.")


def _checked(drawn: object, others: Sequence[Chart], source: ChartSource) -> list[Chart]:
    """The charts of another package. Raises ValueError where they are none."""
    if not isinstance(drawn, tuple) or not all(isinstance(chart, Chart) for chart in drawn):
        raise ValueError(f"it returned {type(drawn).__name__}, not a tuple of charts")
    taken = {chart.key for chart in others} & {chart.key for chart in drawn}
    if taken:
        raise ValueError(f"another chart has the key {', '.join(sorted(taken))}")
    charts = [chart if chart.layouts else replace(chart, layouts=source.layouts) for chart in drawn]
    for chart in charts:
        # What cannot be composed, or has no rows as data, fails here and not in the report.
        _ = chart.csv, list(chart.pictures())
    return charts
