"""Whether all layouts had equal hosts: each host's attested figures over a run's deployments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations, permutations
from statistics import median
from typing import Annotated, Final

from pydantic import Field

from weighbridge.common.quantities import cpu_numbers
from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import Doubt, Grade, PairDoubt, What
from weighbridge.results.numbers import UNKNOWN, all_of, counted, listed, show_figure, show_share
from weighbridge.results.run import Attested, Kind, PlannedHost, ResolvedPlan, Unit

BOUNDS: Final[Mapping[Kind, float]] = {"cpu": 0.30, "disk": 0.10, "network": 0.10, "osd": 0.10}
"""Relative differences up to which limited figures count as equal, or as having reached the limit.

Above what `benchmarks/attestation.py` found between five deployments of the same hosts on an
otherwise idle machine with two virtual CPUs: 9 to 27 % for CPUs under quotas that together use the
complete machine, 1 to 5 % for throttled bandwidths, less than 1 % for NICs of 10 Gbit/s.
"""
FREE_BOUND: Final = 0.35
"""The same for figures without a limit: 9 to 28 % for CPUs, 15 to 31 % for random requests."""
MEDIAN_FROM: Final = 3
"""The fewest deployments of a layout whose median leaves an odd one out."""

MAX_WARNINGS: Final = 5
"""Printed on a terminal."""
_SCALES: Final[Mapping[Unit, tuple[tuple[float, str], ...]]] = {
    "events/s": ((1, "events/s"),),
    "1/s": ((1, "requests/s"),),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
}


class ComparedFigure(Record):
    """One figure of one host over all deployments of a run; `found` is in order of time."""

    host: str
    kind: Kind
    what: str
    unit: Unit
    found: Annotated[tuple[Attested, ...], Field(min_length=1)]

    @property
    def lowest(self) -> Attested:
        return min(self.found, key=lambda each: each.value)

    @property
    def highest(self) -> Attested:
        return max(self.found, key=lambda each: each.value)

    @property
    def shortest(self) -> Attested:
        """The deployment furthest below its promise, if one is below."""
        return max(self.found, key=_lack)

    @property
    def apart(self) -> float | None:
        """The largest difference relative to the highest figure; None with one deployment."""
        return 1 - self.lowest.value / self.highest.value if len(self.found) > 1 else None

    @property
    def bound(self) -> float:
        """The difference up to which figures are equal. A limit that no deployment came near did
        not limit: the machine decided, and what is lacking is warned of.
        """
        near = BOUNDS[self.kind]
        limited = any(each.promised is not None and _lack(each) <= near for each in self.found)
        return near if limited else FREE_BOUND

    @property
    def decides(self) -> bool:
        """Whether it tells if hosts are equal. A ceiling at objects' size, of one job, does not."""
        return self.found[0].request_bytes is None

    @property
    def differs(self) -> bool:
        return self.decides and self.apart is not None and self.apart > self.bound

    @property
    def lacks(self) -> bool:
        """Whether it is below its promise by more than the bound."""
        return self.decides and _lack(self.shortest) > BOUNDS[self.kind]

    @property
    def name(self) -> str:
        """`disk wb0 write of store-2`, `network from store-2 to client-1`."""
        if self.kind != "network":
            return f"{self.what} of {self.host}"
        if self.what.startswith("network from"):
            return f"{self.what} to {self.host}"
        return self.what.replace("to", f"from {self.host} to", 1)

    def cell(self, layout: str) -> str:
        """What hosts did under a layout, with its range over the repeats."""
        return _range([each.value for each in self.found if each.layout == layout], self.unit)

    @property
    def promises(self) -> str:
        """What was promised, as text."""
        known = [each.promised for each in self.found if each.promised is not None]
        return _range(known, self.unit)

    def by_layout(self, value: Callable[[Attested], float]) -> dict[str, list[float]]:
        """For each layout the median over its deployments; of fewer than MEDIAN_FROM, each of them:
        no median leaves one out.
        """
        values: dict[str, list[float]] = {}
        for each in self.found:
            values.setdefault(each.layout, []).append(value(each))
        return {
            layout: [median(some)] if len(some) >= MEDIAN_FROM else some
            for layout, some in values.items()
        }


def _lack(figure: Attested) -> float:
    """How far a figure is below its promise, as a fraction; 0 without a promise, negative above."""
    return 0.0 if figure.promised is None else 1 - figure.value / figure.promised


def compare(attested: Sequence[Attested]) -> tuple[ComparedFigure, ...]:
    """A run's figures by host and subject, in the order of their first measurement."""
    groups: dict[tuple[str, str], list[Attested]] = {}
    for figure in attested:
        groups.setdefault((figure.host, figure.what), []).append(figure)
    return tuple(
        ComparedFigure(host=host, kind=of[0].kind, what=what, unit=of[0].unit, found=tuple(of))
        for (host, what), of in groups.items()
    )


# Doubts about pairs of layouts.

_Worst = dict[tuple[str, str], tuple[float, str]]
"""By pair of layouts, the largest difference and its words."""


def host_doubts(attested: Sequence[Attested], layouts: Sequence[str] = ()) -> tuple[PairDoubt, ...]:
    """Doubts about pairs of layouts: a grave one if their hosts' figures differ beyond the bound,
    by the worst figure; else a mild one if those of only one of them miss a promise beyond the
    bound, and if only one of two `layouts` was attested. The median over a layout's deployments
    counts if there are MEDIAN_FROM: one odd one does not make hosts differ; of fewer, each does.
    """
    figures = [one for one in compare(attested) if one.decides]
    apart = _apart(figures)
    doubts = [_doubt(pair, "hosts differ", words) for pair, (_, words) in apart.items()]
    for (short, full), (_, words) in _one_short(figures).items():
        if (short, full) not in apart and (full, short) not in apart:
            doubts.append(_doubt((short, full), "hosts below promise", words))
    known = {figure.layout for figure in attested}
    doubts += [
        _doubt(pair, "hosts not attested", _not_attested(known, pair))
        for pair in combinations(layouts, 2)
        if len(known.intersection(pair)) == 1
    ]
    return tuple(doubts)


def _doubt(layouts: tuple[str, str], what: What, words: str) -> PairDoubt:
    grade: Grade = "grave" if what == "hosts differ" else "mild"
    return PairDoubt(layouts=layouts, doubt=Doubt(what=what, grade=grade, words=words))


def _apart(figures: Iterable[ComparedFigure]) -> _Worst:
    """The worst figure of each pair, the slower first, whose hosts differ beyond the bound."""
    worst: _Worst = {}
    for figure in figures:
        by_layout = figure.by_layout(lambda each: each.value)
        values = sorted((value, name) for name, some in by_layout.items() for value in some)
        for (low, slow), (high, fast) in combinations(values, 2):
            apart = 1 - low / high
            before = max(worst.get(pair, (0.0, ""))[0] for pair in ((slow, fast), (fast, slow)))
            if slow != fast and apart > max(figure.bound, before):
                worst.pop((fast, slow), None)
                words = (
                    f"{figure.name} gave {show(low, figure.unit)} under {slow} and "
                    f"{show(high, figure.unit)} under {fast} ({show_share(apart)} apart, bound "
                    f"{show_share(figure.bound)})"
                )
                worst[slow, fast] = (apart, words)
    return worst


def _one_short(figures: Iterable[ComparedFigure]) -> _Worst:
    """The worst figure of each pair of which only the first misses a promise: two that miss it are
    as equal as their figures are.
    """
    worst: _Worst = {}
    for figure in figures:
        bound, lacks = BOUNDS[figure.kind], figure.by_layout(_lack)
        for pair in permutations(lacks, 2):
            short, full = (max(lacks[layout]) for layout in pair)
            if short > bound >= full and short > worst.get(pair, (0.0, ""))[0]:
                words = (
                    f"{figure.name} gave {show_share(short)} less than promised under {pair[0]} "
                    f"(bound {show_share(bound)}), and not under {pair[1]}"
                )
                worst[pair] = (short, words)
    return worst


def _not_attested(known: Collection[str], layouts: Sequence[str]) -> str:
    """Which layouts are not known, in words; empty if all are."""
    lacking = [layout for layout in layouts if layout not in known]
    if not lacking:
        return ""
    were, their = ("was", "its") if len(lacking) == 1 else ("were", "their")
    return f"{listed(lacking)} {were} not attested: whether {their} hosts were equal is unknown"


def odd_layouts(attested: Sequence[Attested]) -> frozenset[str]:
    """Layouts whose hosts differ from those of at least half of the other layouts."""
    names = {figure.layout for figure in attested}
    counts = Counter(name for doubt in host_doubts(attested) for name in doubt.layouts)
    return frozenset(name for name, others in counts.items() if 2 * others >= len(names) - 1)


# In words.


class Sameness(Record):
    """Whether all layouts had equal hosts, for the report."""

    verdict: str
    warnings: tuple[str, ...]
    figures: tuple[ComparedFigure, ...]
    bounds: dict[str, str]
    """Differences up to which figures count as equal, by kind, as text."""


def sameness(
    attested: Sequence[Attested], layouts: Sequence[str], controls: Collection[str] = ()
) -> Sameness:
    """What the report shows. `controls`: A/A controls among `layouts`, which use their layout's
    hosts and are not attested.
    """
    own = [layout for layout in layouts if layout not in controls]
    bounds = {"CPU" if kind == "cpu" else kind: show_share(bound) for kind, bound in BOUNDS.items()}
    bounds["figures without a limit"] = show_share(FREE_BOUND)
    return Sameness(
        verdict=verdict(attested, own),
        warnings=warnings(attested),
        figures=compare(attested),
        bounds=bounds,
    )


def verdict(attested: Sequence[Attested], layouts: Sequence[str] = ()) -> str:
    """Whether the hosts were equal for all of `layouts`, and for which that is unknown."""
    if not attested:
        return "The hosts were not attested"
    unknown = _not_attested({figure.layout for figure in attested}, layouts)
    figures = [one for one in compare(attested) if one.decides]
    number = counted(len(figures), "figure")
    deployments = len({(figure.layout, figure.repeat) for figure in attested})
    beyond = sum(figure.differs for figure in figures)
    named = all_of(deployments, "deployments")
    where = f"the {deployments} attested deployments" if unknown else named
    text = f"The hosts were equal within the bounds in {where} ({number})"
    if beyond:
        text = f"{beyond} of {len(figures)} figures of the hosts differ beyond their bound over "
        text += f"{deployments} deployments"
    if deployments == 1:
        text = f"Only one deployment was attested ({number}): there is nothing to compare it with"
    return f"{text}; {unknown}" if unknown else text


def warnings(attested: Sequence[Attested]) -> tuple[str, ...]:
    """A sentence for each figure beyond its bound; worst first."""
    found: list[tuple[float, str]] = []
    for figure in compare(attested):
        unit, short = figure.unit, figure.shortest
        if figure.differs and figure.apart is not None:
            gave = " and ".join(
                f"{show(each.value, unit)} {_under(each, figure)}"
                for each in (figure.lowest, figure.highest)
            )
            bound = f"{show_share(figure.apart)} apart, bound {show_share(figure.bound)}"
            text = f"{figure.name} gave {gave} ({bound}): results may differ because of it"
            found.append((figure.apart, text))
        if figure.lacks and short.promised is not None:
            bound = f"{show_share(_lack(short))} less, bound {show_share(BOUNDS[figure.kind])}"
            text = (
                f"{figure.name} promises {show(short.promised, unit)} and gave "
                f"{show(short.value, unit)} {_under(short, figure)} ({bound})"
            )
            found.append((_lack(short), text))
    return tuple(text for _, text in sorted(found, key=lambda each: -each[0]))


def _under(figure: Attested, among: ComparedFigure) -> str:
    """The deployment's layout; with the repeat, from 1, if the layout had several."""
    several = sum(each.layout == figure.layout for each in among.found) > 1
    return f"under {figure.layout}{f' (repeat {figure.repeat + 1})' * several}"


def summary(attested: Sequence[Attested], layouts: Sequence[str] = ()) -> tuple[str, ...]:
    """For the terminal: the verdict on these layouts and the worst warnings."""
    found = warnings(attested)
    left = len(found) - MAX_WARNINGS
    rest = (f"and {left} more: see the report",) if left > 0 else ()
    return (verdict(attested, layouts), *found[:MAX_WARNINGS], *rest)


def show(value: float, unit: Unit) -> str:
    """`197 MB/s`, `9.43 Gbit/s`, `24,700 requests/s`: three significant digits."""
    scale, name = next(
        ((scale, name) for scale, name in _SCALES[unit] if value >= scale), _SCALES[unit][-1]
    )
    return f"{show_figure(value / scale)} {name}"


def _range(values: Sequence[float], unit: Unit) -> str:
    """`low to high`; one figure if both look alike; UNKNOWN if there is none."""
    if not values:
        return UNKNOWN
    low, high = show(min(values), unit), show(max(values), unit)
    if low == high:
        return low
    (low_figure, low_name), (_, high_name) = low.split(), high.split()
    return f"{low_figure if low_name == high_name else low} to {high}"


class HostShare(Record):
    """What a layout has of the hardware, clients left out."""

    layout: str
    hosts: tuple[str, ...]
    cpus: float | None
    """The sum of its hosts' limits; None: a host has none."""

    @property
    def words(self) -> str:
        """`1.5 CPUs of 4 hosts`."""
        hosts = counted(len(self.hosts), "host")
        if self.cpus is None:
            return hosts
        return f"{self.cpus:.3g} CPU{'' if self.cpus == 1 else 's'} of {hosts}"


def host_shares(plan: ResolvedPlan) -> tuple[HostShare, ...]:
    """Of the layouts whose structure is known, in their order, controls included."""
    limits, known = plan.hardware.hosts, plan.structures
    found = []
    for name in (one.name for one in plan.layouts if one.name in known):
        hosts = known[name].hosts
        if all(host in limits for host in hosts):
            cpus = _cpus([limits[host] for host in hosts])
            found.append(HostShare(layout=name, hosts=hosts, cpus=cpus))
    return tuple(found)


def _cpus(hosts: Sequence[PlannedHost]) -> float | None:
    known = [
        one.cpus if one.cpus is not None or one.cpuset is None else len(cpu_numbers(one.cpuset))
        for one in hosts
    ]
    limits = [one for one in known if one is not None]
    return sum(limits) if len(limits) == len(known) else None


def unequal_shares(plan: ResolvedPlan) -> tuple[str, ...]:
    """A sentence where layouts do not use as many hosts or as much CPU."""
    layouts: dict[str, list[str]] = {}
    for one in host_shares(plan):
        if one.layout in plan.measured:
            layouts.setdefault(one.words, []).append(one.layout)
    if len(layouts) < 2:
        return ()
    each = [
        f"{listed(names)} {'has' if len(names) == 1 else 'have'} {words}"
        for words, names in layouts.items()
    ]
    words = (
        f"Layouts do not have the same CPU or number of hosts: {'; '.join(each)}. "
        "Their results differ for that reason, too."
    )
    return (words,)
