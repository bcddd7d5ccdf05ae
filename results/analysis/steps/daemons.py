"""What daemons told of themselves inside a window, in a few figures of each kind: the rest is in the telemetry file.

Names are those that the probes give: counters of Ceph's `perf dump`, of memcached's `stats`, of HAProxy's `show stat`, of
Apache's `server-status`, and of what Swift's recon reads. Counters are told as they have grown since the daemon began, so that
figures are of the difference between the first line inside the window and the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.figures import show_figure
from weighbridge.results.record.telemetry import ProbeSecond, Telemetry


class DaemonFigure(Record):
    """One figure of all daemons of a kind: `radosgw`, `osd` ..., with what it is in words."""

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
        """By how much a counter grew; None where it is not told, or began anew with its daemon."""
        known = [line.values[name] for line in self.lines if name in line.values]
        return known[-1] - known[0] if len(known) > 1 and known[-1] >= known[0] else None

    @property
    def span_s(self) -> float:
        return self.lines[-1].at_s - self.lines[0].at_s


_Reckon = Callable[[Sequence[_Spell]], float | None]


def _sum(name: str) -> _Reckon:
    """The sum of a gauge over all daemons of the kind."""
    return lambda spells: _total([spell.mean(name) for spell in spells])


def _rate(name: str) -> _Reckon:
    """By how much a counter of all daemons grows in a second."""

    def reckon(spells: Sequence[_Spell]) -> float | None:
        grown = [(spell.grown(name), spell.span_s) for spell in spells]
        return _total([None if more is None else more / span_s for more, span_s in grown])

    return reckon


def _part(numerator: str, others: Sequence[str], scale: float) -> _Reckon:
    """What a counter grew by, by the growth of others, over all daemons; None where those did not grow."""

    def reckon(spells: Sequence[_Spell]) -> float | None:
        above = _total([spell.grown(numerator) for spell in spells])
        below = _total([spell.grown(name) for spell in spells for name in others])
        return None if above is None or not below else above / below * scale

    return reckon


def _latency(name: str) -> _Reckon:
    """Milliseconds, mean of all that ended in the window."""
    return _part(f"{name}_sum_s", (f"{name}_count",), 1e3)


def _hits(hits: str, misses: str) -> _Reckon:
    return _part(hits, (hits, misses), 100)


FIGURES: Final[tuple[tuple[str, str, _Reckon], ...]] = (
    ("haproxy", "{} sessions", _sum("frontend.scur")),
    ("haproxy", "{} requests queued", _sum("backend.qcur")),
    ("haproxy", "{} retries/s", _rate("backend.wretr")),
    ("apache", "{} workers busy", _sum("workers_busy")),
    ("apache", "{} idle", _sum("workers_idle")),
    ("radosgw", "{} requests in work", _sum("qactive")),
    ("radosgw", "first byte of a read after {} ms", _latency("get_initial_lat")),
    ("radosgw", "a write takes {} ms", _latency("put_initial_lat")),
    ("radosgw", "{} % of metadata from its cache", _hits("cache_hit", "cache_miss")),
    ("osd", "{} op/s", _rate("op")),
    ("osd", "an operation takes {} ms", _latency("op_latency")),
    ("osd", "a commit {} ms", _latency("bluestore_commit_lat")),
    ("osd", "{} % of onodes cached", _hits("bluestore_onode_hits", "bluestore_onode_misses")),
    ("memcached", "{} % hits", _hits("get_hits", "get_misses")),
    ("swift", "{} folders of container updates put off", _sum("async_folders")),
    ("swift", "{} TCP sockets in use", _sum("tcp_inuse")),
)


def figures(telemetry: Telemetry, window_s: float) -> tuple[DaemonFigure, ...]:
    """The figures of daemons that told at least twice inside the window; those that none of them can give are left out."""
    by_probe: dict[str, list[ProbeSecond]] = {}
    for line in telemetry.told_within(window_s):
        by_probe.setdefault(line.probe, []).append(line)
    spells: dict[str, list[_Spell]] = {}
    for probe, lines in by_probe.items():
        if len(lines) > 1 and lines[-1].at_s > lines[0].at_s:
            spells.setdefault(probe.partition(".")[0], []).append(_Spell(lines))
    found = []
    for daemon, label, reckon in FIGURES:
        value = reckon(spells[daemon]) if daemon in spells else None
        if value is not None:
            found.append(DaemonFigure(daemon=daemon, label=label, value=value))
    return tuple(found)


def figure_words(repeats: Sequence[Sequence[DaemonFigure]]) -> str:
    """Medians over the repeats, in words: `radosgw: 15.8 requests in work, ...; osd: 812 op/s, ...`."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in (figure for repeat in repeats for figure in repeat):
        values.setdefault((one.daemon, one.label), []).append(one.value)
    by_daemon: dict[str, list[str]] = {}
    for (daemon, label), known in values.items():
        by_daemon.setdefault(daemon, []).append(label.format(show_figure(round(median(known), 2))))
    return "; ".join(f"{daemon}: {', '.join(words)}" for daemon, words in by_daemon.items())


def _total(values: Sequence[float | None]) -> float | None:
    """The sum; None where one is unknown, since that of the others would be of another set of daemons."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
