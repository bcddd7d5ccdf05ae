"""What a feature gives to every output: tables, charts, sections of page and terminal, slides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

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


FEATURES: Final[Registry[Feature]] = Registry(
    "weighbridge.features",
    "feature",
    own={
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
    },
    kind=Feature,
)
"""Every feature by name; others come by entry points of the group `weighbridge.features`."""
