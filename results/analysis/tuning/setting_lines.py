"""The table of trials as text: a line for each setting, for page, terminal and slides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.common.structure import Scope
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.tuning.setting_table import SettingEntry
from weighbridge.results.analysis.tuning.tuning_result import (
    TuningResult,
    interval_words,
    value_words,
)
from weighbridge.results.figures import UNKNOWN, show_percent
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import EntryVerdict
from weighbridge.results.statistics import Ratio

SIGNS: Final[dict[EntryVerdict, str]] = {
    "better": "▲",
    "worse": "▼",
    "trade-off": "◆",
    "too small to matter": "=",
    "not significant": "~",
    "provisional": "?",
    "not allowed": "!",
    "failed": "×",
    "not comparable": "–",
}
"""Signs shown before verdicts, so that colour is not needed to read them."""

RESTARTED: Final[dict[Scope, str]] = {
    "nothing": "nothing",
    "reload": "reload",
    "restart": "restart",
    "buckets": "new buckets",
    "cluster": "new cluster",
}
"""What must be restarted or created for a setting to take effect, in a word or two."""


_BEFORE: Final = re.compile(r"(?<![^ (])(?:[A-Za-z_][\w:-]*\.)+(?=[A-Za-z_])")
"""The part of a key before its last word."""


class ObjectiveChange(Record):
    """A setting's change of one objective; `tone` is the claim, `value` the sort key."""

    change: str
    interval: str
    figures: str
    tone: str
    value: float | None
    text: str


class SettingLine(Record):
    """One setting."""

    variant: str
    name: str
    trials: int
    changes: tuple[ObjectiveChange, ...]
    verdict: EntryVerdict
    sign: str
    gateway_cpu: str
    storage_cpu: str
    cpu_values: tuple[float | None, float | None]
    restarted: str
    gain: float | None
    notes: tuple[str, ...]

    @property
    def weak(self) -> bool:
        """Whether it claims nothing."""
        return self.verdict not in ("better", "worse", "trade-off")


def setting_lines(result: TuningResult) -> tuple[SettingLine, ...]:
    """The lines by gain, largest first; settings with unknown gain last."""
    entries = sorted(result.table.entries, key=lambda one: -(one.gain or 0.0))
    return tuple(_line(result, one) for one in entries)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Settings without the prefix of their keys, `threads 512 → 64`, unless two would be equal."""
    short = {name: _BEFORE.sub("", name) for name in names}
    called = list(short.values())
    return {name: brief if called.count(brief) == 1 else name for name, brief in short.items()}


def change_figure(effect: Effect) -> str:
    """The change: `+12 %`; `+2 % ~` if not significant, `(+12 %)` if provisional."""
    if effect.ratio is None:
        return UNKNOWN
    change = show_percent(effect.ratio.value)
    return (
        f"({change})"
        if effect.verdict == "provisional"
        else f"{change} ~"
        if effect.verdict == "not significant"
        else change
    )


def _line(result: TuningResult, entry: SettingEntry) -> SettingLine:
    scope = result.scope(entry.variant)
    return SettingLine(
        variant=entry.variant.name,
        name=entry.name,
        trials=entry.trials,
        changes=tuple(_change(one) for one in entry.effects),
        verdict=entry.verdict,
        sign=SIGNS[entry.verdict],
        gateway_cpu=_cpu(entry.gateway_cpu),
        storage_cpu=_cpu(entry.storage_cpu),
        cpu_values=(_value(entry.gateway_cpu), _value(entry.storage_cpu)),
        restarted=UNKNOWN if scope is None else RESTARTED[scope],
        gain=entry.gain,
        notes=entry.notes,
    )


def _change(effect: Effect) -> ObjectiveChange:
    ratio = effect.ratio
    good = None if ratio is None else METRICS[effect.metric].gain(ratio.value)
    return ObjectiveChange(
        change=change_figure(effect),
        interval=interval_words(effect),
        figures=value_words(effect),
        tone=effect.verdict if effect.verdict in ("better", "worse") else "",
        value=good,
        text=effect.text,
    )


def _cpu(ratio: Ratio | None) -> str:
    if ratio is None:
        return UNKNOWN
    unclear = ratio.low is not None and ratio.high is not None and not ratio.shown
    return f"{show_percent(ratio.value)}{' ~' if unclear else ''}"


def _value(ratio: Ratio | None) -> float | None:
    return None if ratio is None else ratio.value
