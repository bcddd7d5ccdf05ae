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
from weighbridge.results.figures.doubt import Doubt, PairDoubt
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
        return min(self.found, key=lambda one: one.value)

    @property
    def highest(self) -> Attested:
        return max(self.found, key=lambda one: one.value)

    @property
    def apart(self) -> float | None:
        """The largest difference relative to the highest figure; None with one deployment."""
        return 1 - self.lowest.value / self.highest.value if len(self.found) > 1 else None

    @property
    def shortest(self) -> Attested | None:
        """The deployment furthest below its promise; None without one, or if none is below."""
        lacking = [one for one in self.found if _lack(one) > 0]
        return max(lacking, key=_lack, default=None)

    @property
    def short(self) -> float | None:
        """How far that one is below its promise, as a fraction."""
        return None if self.shortest is None else _lack(self.shortest)

    @property
    def bound(self) -> float:
        """The difference up to which figures are equal. A limit that no deployment came near did
        not limit: the machine decided, and what is lacking is warned of.
        """
        near = BOUNDS[self.kind]
        limited = any(one.promised is not None and _lack(one) <= near for one in self.found)
        return near if limited else FREE_BOUND

    @property
    def differs(self) -> bool:
        return self.apart is not None and self.apart > self.bound

    @property
    def lacks(self) -> bool:
        """Whether it is below its promise by more than the bound."""
        return self.short is not None and self.short > BOUNDS[self.kind]


class AttestedLine(Record):
    """One figure of one host in the report's table: a cell for each layout, as text."""

    host: str
    what: str
    promised: str
    cells: tuple[str, ...]
    apart: str
    beyond: bool


class Sameness(Record):
    """Whether all layouts had equal hosts, for the report."""

    verdict: str
    warnings: tuple[str, ...]
    lines: tuple[AttestedLine, ...]
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
        lines=lines(attested, layouts),
        bounds=bounds,
    )


def compare(attested: Sequence[Attested]) -> tuple[ComparedFigure, ...]:
    """A run's figures by host and subject, in the order of their first measurement."""
    found: dict[tuple[str, str], list[Attested]] = {}
    for one in attested:
        found.setdefault((one.host, one.what), []).append(one)
    return tuple(
        ComparedFigure(host=host, kind=of[0].kind, what=what, unit=of[0].unit, found=tuple(of))
        for (host, what), of in found.items()
    )


def beyond_bound(attested: Sequence[Attested]) -> tuple[int, int]:
    """How many figures differ beyond their bound, and of how many that were measured twice."""
    found = [one for one in compare(attested) if one.apart is not None]
    return sum(one.differs for one in found), len(found)


def host_doubts(attested: Sequence[Attested], layouts: Sequence[str] = ()) -> tuple[PairDoubt, ...]:
    """Doubts about pairs of layouts: a grave one if their hosts' figures differ beyond the bound,
    by the worst figure; else a mild one if those of only one of them miss a promise beyond the
    bound, and if only one of two `layouts` was attested.

    The median over a layout's deployments counts if there are MEDIAN_FROM, so that one odd
    deployment does not make hosts differ; of fewer, each does.
    """
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    compared = compare(attested)
    for one in compared:
        values = _by_layout(one, lambda found: found.value)
        middles = sorted((value, layout) for layout, some in values.items() for value in some)
        for (low, slow), (high, fast) in combinations(middles, 2):
            if slow == fast:
                continue
            apart = 1 - low / high
            if apart > max(
                one.bound, worst.get((slow, fast), worst.get((fast, slow), (0.0, "")))[0]
            ):
                gave = f"{show(low, one.unit)} under {slow} and {show(high, one.unit)} under {fast}"
                worst.pop((fast, slow), None)
                worst[slow, fast] = (
                    apart,
                    (
                        f"{_about(one)} gave {gave} ({show_share(apart)} apart, bound "
                        f"{show_share(one.bound)})"
                    ),
                )
    apart_ones = (
        PairDoubt(layouts=pair, doubt=Doubt(what="hosts differ", grade="grave", words=words))
        for pair, (_, words) in worst.items()
    )
    apart_pairs = {frozenset(pair) for pair in worst}
    short_ones = (
        PairDoubt(layouts=pair, doubt=doubt)
        for pair, doubt in _one_short(compared).items()
        if frozenset(pair) not in apart_pairs
    )
    known = {one.layout for one in attested}
    halves = (pair for pair in combinations(layouts, 2) if len(known.intersection(pair)) == 1)
    return (
        *apart_ones,
        *short_ones,
        *(PairDoubt(layouts=pair, doubt=_unknown(_lacking(known, pair))) for pair in halves),
    )


def odd_layouts(attested: Sequence[Attested]) -> frozenset[str]:
    """Layouts whose hosts differ from those of at least half of the other layouts."""
    names = {one.layout for one in attested}
    found = Counter(name for one in host_doubts(attested) for name in one.layouts)
    return frozenset(name for name, others in found.items() if 2 * others >= len(names) - 1)


def _by_layout(
    one: ComparedFigure, of: Callable[[Attested], float]
) -> dict[str, tuple[float, ...]]:
    """For each layout the median over its deployments; of fewer than MEDIAN_FROM, each of them: no
    median leaves one out.
    """
    found: dict[str, list[float]] = {}
    for each in one.found:
        found.setdefault(each.layout, []).append(of(each))
    return {
        layout: (median(values),) if len(values) >= MEDIAN_FROM else tuple(values)
        for layout, values in found.items()
    }


def _one_short(compared: Iterable[ComparedFigure]) -> dict[tuple[str, str], Doubt]:
    """The doubt, by the worst figure, about pairs of which only the first misses a promise: two
    that miss it are as equal as their figures are.
    """
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    for one in compared:
        bound = BOUNDS[one.kind]
        lacks = _by_layout(one, _lack)
        for pair in permutations(lacks, 2):
            short, full = (max(lacks[layout]) for layout in pair)
            if short > bound >= full and short > worst.get(pair, (0.0, ""))[0]:
                words = (
                    f"{_about(one)} gave {show_share(short)} less than promised under {pair[0]} "
                    f"(bound {show_share(bound)}), and not under {pair[1]}"
                )
                worst[pair] = (short, words)
    return {
        pair: Doubt(what="hosts below promise", grade="mild", words=words)
        for pair, (_, words) in worst.items()
    }


def _unknown(lacking: Sequence[str]) -> Doubt:
    return Doubt(what="hosts not attested", grade="mild", words=_not_attested(lacking))


def _lacking(known: Collection[str], layouts: Sequence[str]) -> list[str]:
    return [layout for layout in layouts if layout not in known]


def _not_attested(lacking: Sequence[str]) -> str:
    were, their = ("was", "its") if len(lacking) == 1 else ("were", "their")
    return f"{listed(lacking)} {were} not attested: whether {their} hosts were equal is unknown"


def warnings(attested: Sequence[Attested]) -> tuple[str, ...]:
    """A sentence for each figure beyond its bound; worst first."""
    found: list[tuple[float, str]] = []
    for one in compare(attested):
        if one.differs and one.apart is not None:
            found.append((one.apart, _difference(one, one.apart)))
        if one.lacks and one.shortest is not None and one.shortest.promised is not None:
            short = _shortfall(one, one.shortest, one.shortest.promised)
            found.append((_lack(one.shortest), short))
    return tuple(text for _, text in sorted(found, key=lambda one: -one[0]))


def _difference(one: ComparedFigure, apart: float) -> str:
    gave = " and ".join(
        f"{show(found.value, one.unit)} {_under(found, one)}" for found in (one.lowest, one.highest)
    )
    return (
        f"{_about(one)} gave {gave} ({show_share(apart)} apart, bound {show_share(one.bound)}): "
        "results may differ because of it"
    )


def _shortfall(one: ComparedFigure, found: Attested, promised: float) -> str:
    gave = (
        f"promises {show(promised, one.unit)} and gave {show(found.value, one.unit)} "
        f"{_under(found, one)}"
    )
    bound = show_share(BOUNDS[one.kind])
    return f"{_about(one)} {gave} ({show_share(_lack(found))} less, bound {bound})"


def _lack(one: Attested) -> float:
    """How far a figure is below its promise, as a fraction; 0 without a promise, negative above."""
    return 0.0 if one.promised is None else 1 - one.value / one.promised


def _about(one: ComparedFigure) -> str:
    """Its name in a sentence: `disk wb0 write of store-2`, `network from store-2 to client-1`."""
    if one.kind != "network":
        return f"{one.what} of {one.host}"
    if one.what.startswith("network from"):
        return f"{one.what} to {one.host}"
    return one.what.replace("to", f"from {one.host} to", 1)


def verdict(attested: Sequence[Attested], layouts: Sequence[str] = ()) -> str:
    """Whether the hosts were equal for all of `layouts`, and for which that is unknown."""
    if not attested:
        return "The hosts were not attested"
    lacking = _lacking({one.layout for one in attested}, layouts)
    unknown = f"; {_not_attested(lacking)}" if lacking else ""
    return f"{_verdict(attested, complete=not lacking)}{unknown}"


def _verdict(attested: Sequence[Attested], *, complete: bool) -> str:
    """The verdict on the attested deployments; `complete`: every layout had one."""
    compared = compare(attested)
    figures = counted(len(compared), "figure")
    deployments = len({(one.layout, one.repeat) for one in attested})
    if deployments == 1:
        return f"Only one deployment was attested ({figures}): there is nothing to compare it with"
    beyond = [one for one in compared if one.differs]
    if beyond:
        return (
            f"{len(beyond)} of {len(compared)} figures of the hosts differ beyond their bound over "
            f"{deployments} deployments"
        )
    named = all_of(deployments, "deployments")
    where = named if complete else f"the {deployments} attested deployments"
    return f"The hosts were equal within the bounds in {where} ({figures})"


def summary(
    attested: Sequence[Attested], layouts: Sequence[str] = (), *, most: int = 5
) -> tuple[str, ...]:
    """For the terminal: the verdict on these layouts and the worst `most` warnings."""
    found = warnings(attested)
    rest = (f"and {len(found) - most} more: see the report",) if len(found) > most else ()
    return (verdict(attested, layouts), *found[:most], *rest)


def lines(attested: Sequence[Attested], layouts: Sequence[str]) -> tuple[AttestedLine, ...]:
    """The table: a line for each figure of each host, a cell for each layout with its range."""
    return tuple(
        AttestedLine(
            host=one.host,
            what=one.what,
            promised=_range(
                [found.promised for found in one.found if found.promised is not None], one.unit
            ),
            cells=tuple(
                _range([found.value for found in one.found if found.layout == layout], one.unit)
                for layout in layouts
            ),
            apart=UNKNOWN if one.apart is None else show_share(one.apart),
            beyond=one.differs or one.lacks,
        )
        for one in compare(attested)
    )


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


def _under(one: Attested, among: ComparedFigure) -> str:
    """The deployment's layout; with the repeat, from 1, if the layout had several."""
    again = [found for found in among.found if found.layout == one.layout]
    return (
        f"under {one.layout} (repeat {one.repeat + 1})" if len(again) > 1 else f"under {one.layout}"
    )


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
