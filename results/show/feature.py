"""What a feature gives to every output: tables, charts, sections of page and terminal, slides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.judge.trust import TrustSign
from weighbridge.results.judge.words import Card
from weighbridge.results.show.chart_source import CeilingLine, ChartKind
from weighbridge.results.show.section import Section
from weighbridge.results.show.slide import Topic
from weighbridge.results.show.table import Table


def _nothing(_: RunData) -> tuple[()]:
    return ()


def _no_answer(_: RunData) -> str:
    return ""


def _no_topic(_: RunData) -> None:
    return None


@dataclass(frozen=True)
class Feature:
    """What answers one question about runs. A run that did not ask gets nothing of it."""

    answer: Callable[[RunData], str] = _no_answer
    """The answer of a run that was made for this question, without a full stop."""
    tables: Sequence[Table] = ()
    charts: Mapping[str, ChartKind] = field(default_factory=dict)
    ceilings: Callable[[RunData], Mapping[str, tuple[CeilingLine, ...]]] | None = None
    """Lines across the chart of throughput, by key of its panel."""
    sections: Callable[[RunData], Iterable[Section]] = _nothing
    cards: Callable[[RunData], Iterable[Card]] = _nothing
    """Below its answer."""
    topic: Callable[[RunData], Topic | None] = _no_topic
    """Of the talk: the first topic of all is that of the talk."""
    signs: Callable[[RunData], Iterable[TrustSign]] = _nothing
    """What the figures rest on, in a run in which nothing else was measured."""
    write: Callable[[RunData], None] | None = None
    """Writes its own files into `derived/`. Raises StoreError."""

    @property
    def comes_first(self) -> bool:
        """Whether runs are made for it, so that its topic comes before the comparison."""
        return self.answer is not _no_answer


_OWN: Final = {
    name: f"weighbridge.results.features.{place}:FEATURE"
    for name, place in {
        "tuning": "tuning.feature",
        "durability": "durability",
        "study": "study",
        "find": "find",
        "outages": "outages",
        "overload": "overload",
        "comparison": "comparison",
        "layers": "layers",
        "agreement": "agreement",
        "keeping": "keeping",
        "variants": "variants",
        "step-details": "step_details",
    }.items()
}
FEATURES: Final[Registry[Feature]] = Registry(
    "weighbridge.features", "feature", own=_OWN, kind=Feature
)
"""Every feature by name; others come by entry points of the group `weighbridge.features`."""


def write_sections(data: RunData) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    """Have features write their files, and return what they say; and which features of other
    packages failed and are left out, a sentence each.
    """
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
