"""What daemons reported about themselves in a window, as a few figures each; telemetry has the
rest.

The figures are declared with each probe (`common.counters`) and kept with the telemetry. Counters
count from the daemon's start, so figures use the difference between the first and last line in the
window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from weighbridge.common.counters import CounterFigure
from weighbridge.common.record import Record
from weighbridge.results.figures import show_figure
from weighbridge.results.record import ProbeSecond, Telemetry


class DaemonFigure(Record):
    """One figure of all daemons of a kind (`radosgw`, `osd`), with a label."""

    daemon: str
    label: str
    value: float


@dataclass(frozen=True)
class _Spell:
    """One daemon's lines inside a window, at least two."""

    lines: Sequence[ProbeSecond]

    def mean(self, name: str) -> float | None:
        known = [line.values[name] for line in self.lines if name in line.values]
        return sum(known) / len(known) if known else None

    def grown(self, name: str) -> float | None:
        """The increase of a counter; None if it is not reported, or was reset by a restart."""
        known = [line.values[name] for line in self.lines if name in line.values]
        return known[-1] - known[0] if len(known) > 1 and known[-1] >= known[0] else None

    @property
    def span_s(self) -> float:
        return self.lines[-1].at_s - self.lines[0].at_s


def _reckoned(figure: CounterFigure, spells: Sequence[_Spell]) -> float | None:
    first, *others = figure.counters
    if figure.reckon == "sum":
        return _total([spell.mean(first) for spell in spells])
    if figure.reckon == "rate":
        grown = [(spell.grown(first), spell.span_s) for spell in spells]
        return _total([None if more is None else more / span_s for more, span_s in grown])
    if figure.reckon == "latency":
        return _part(spells, f"{first}_sum_s", (f"{first}_count",), 1e3)
    return _part(spells, first, (first, *others), 100)


def _part(
    spells: Sequence[_Spell], numerator: str, others: Sequence[str], scale: float
) -> float | None:
    """The increase of a counter divided by that of others, over all daemons; None without."""
    above = _total([spell.grown(numerator) for spell in spells])
    below = _total([spell.grown(name) for spell in spells for name in others])
    return None if above is None or not below else above / below * scale


def figures(telemetry: Telemetry, window_s: float) -> tuple[DaemonFigure, ...]:
    """The figures of daemons with two or more lines in the window; unknown ones are left out."""
    by_probe: dict[str, list[ProbeSecond]] = {}
    for line in telemetry.probes_within(window_s):
        by_probe.setdefault(line.probe, []).append(line)
    spells: dict[str, list[_Spell]] = {}
    for probe, lines in by_probe.items():
        if len(lines) > 1 and lines[-1].at_s > lines[0].at_s:
            spells.setdefault(probe.partition(".")[0], []).append(_Spell(lines))
    found = []
    for shown in telemetry.head.daemons:
        for figure in shown.figures if shown.daemon in spells else ():
            value = _reckoned(figure, spells[shown.daemon])
            if value is not None:
                found.append(DaemonFigure(daemon=shown.daemon, label=figure.words, value=value))
    return tuple(found)


def figure_words(repeats: Sequence[Sequence[DaemonFigure]]) -> str:
    """Medians over the repeats: `radosgw: 15.8 requests in work, ...; osd: 812 op/s, ...`."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in (figure for repeat in repeats for figure in repeat):
        values.setdefault((one.daemon, one.label), []).append(one.value)
    by_daemon: dict[str, list[str]] = {}
    for (daemon, label), known in values.items():
        by_daemon.setdefault(daemon, []).append(label.format(show_figure(round(median(known), 2))))
    return "; ".join(f"{daemon}: {', '.join(words)}" for daemon, words in by_daemon.items())


def _total(values: Sequence[float | None]) -> float | None:
    """The sum; None if one is unknown: the others would be a different set of daemons."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
