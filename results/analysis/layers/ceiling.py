"""Ceilings: the most that disks, OSDs and network allow a layout's clients, from attestation.

The bottom-up method (F. Wang and others, "Performance and Scalability Evaluation of the Ceph
Parallel File System", PDSW 2013): establish what each layer can do before judging the one above it.
In bytes of objects per second:

- Disks: the sum over those that hold objects. A write goes to as many as there are replicas, and
  twice to each that also has a journal; a read comes from one. For writes, and for reads in the
  order of the writes, the better of sequential and random requests counts, since the store places
  the data; for other reads random ones.
- OSDs (`ceph tell osd.N bench`): their sum, divided by the replicas. It only writes; journals are
  included.
- Network: at each end of each leg between clients, front, gateway and stores, the sum of what its
  hosts sent, or received, at best, divided by how often an object crosses there; the smallest of
  these. If a host's NIC allows more than that of any host it was measured with, its own limit
  counts. Headers and all other traffic are left out.

Figures are for requests of the size of an object, or of the nearest measured size, which is then
stated; nothing is interpolated. Over deployments it is the median.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Final, Literal

from pydantic import Field, PositiveFloat

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.results.analysis.sameness import BOUNDS, FREE_BOUND
from weighbridge.results.record import Attested

HardwareKind = Literal["disk", "osd", "network"]
Transfer = Literal["read", "write"]


class CeilingQuery(Record):
    """What a ceiling is for: requests of one kind on one layout, from these client hosts."""

    operation: Transfer
    size_bytes: float
    """Of an object, or the expected mean."""
    in_order: bool
    """Whether objects are picked in the order in which they were written."""
    clients: tuple[str, ...]
    nics_bit_s: dict[str, float] = Field(default_factory=dict)
    """NIC limits of the hosts that have one."""


class Ceiling(Record):
    """The most that one kind of hardware allows, in bytes of objects/s, after replication."""

    kind: HardwareKind
    bytes_s: PositiveFloat
    bound: float
    """How far a result may be above it, as a fraction: how far attestations of equal hosts differ.
    """
    how: str
    """How it was computed, in words."""


class CeilingGap(Record):
    """Why a figure is missing, and what to do, in words."""

    why: str


class DeploymentCeiling(Record):
    """The ceiling of one deployment."""

    bytes_s: float
    limited: bool
    how: str


def ceiling(
    kind: HardwareKind,
    attested: Iterable[Attested],
    structure: Structure | None,
    asked: CeilingQuery,
) -> Ceiling | CeilingGap:
    """The ceiling of a layout from the attestation of its deployments."""
    if structure is None:
        return CeilingGap(why="unknown: this installation does not know its structure")
    if kind == "disk" and not structure.disks:
        return CeilingGap(why="objects are kept in memory, not on disk")
    own = sorted((one for one in attested if one.kind == kind), key=lambda one: one.repeat)
    deployments = [list(mine) for _, mine in groupby(own, key=lambda one: one.repeat)]
    parts = [_MEASURES[kind](mine, structure, asked) for mine in deployments]
    known = [part for part in parts if isinstance(part, DeploymentCeiling)]
    if not known:
        return next(
            (part for part in parts if isinstance(part, CeilingGap)),
            CeilingGap(why=f"not measured: --layers {kind}"),
        )
    over = f", median of {len(known)} deployments" if len(known) > 1 else ""
    bound = BOUNDS[kind] if all(part.limited for part in known) else FREE_BOUND
    return Ceiling(
        kind=kind,
        bytes_s=median(part.bytes_s for part in known),
        bound=bound,
        how=f"{known[0].how}{over}",
    )


def _disks(
    attested: Sequence[Attested], structure: Structure, asked: CeilingQuery
) -> DeploymentCeiling | CeilingGap:
    names: dict[str, list[str]] = {}
    for one in attested:
        mine = names.setdefault(one.host, [])
        if _disk_of(one) not in mine:
            mine.append(_disk_of(one))
    picks = (
        ("random",)
        if asked.operation == "read" and not asked.in_order
        else ("sequential", "random")
    )
    fit = [
        one
        for one in attested
        if one.operation == asked.operation and one.pick in picks and one.unit == "B/s"
    ]
    nearest = _nearest(fit, asked.size_bytes)
    if nearest is None:
        return CeilingGap(why="not measured: --layers disk")
    # The better one last: it stays in the mapping.
    ranked = sorted((one for one in fit if one.request_bytes == nearest), key=lambda one: one.value)
    figures = {(one.host, _disk_of(one)): one for one in ranked}

    def total(places: Mapping[str, Sequence[int]]) -> list[Attested] | None:
        """The figures of the disks with these numbers; None if one is missing."""
        found = []
        for host, numbers in places.items():
            for number in numbers:
                known = names.get(host, [])
                one = figures.get((host, known[number])) if number < len(known) else None
                if one is None:
                    return None
                found.append(one)
        return found or None

    kept = total(structure.disks)
    journals = total(structure.journals) if structure.journals else []
    if kept is None or journals is None:
        return CeilingGap(why="not measured on every disk that holds objects")
    times = structure.times_kept * structure.writes if asked.operation == "write" else 1
    rate, of = sum(one.value for one in kept), kept
    if asked.operation == "write" and journals and sum(one.value for one in journals) < rate:
        rate, of = sum(one.value for one in journals), journals
    what = "disk" if of is kept else "disk of journals"
    words = (
        f"{len(of)} {what.replace('disk', 'disks', len(of) > 1)}, {' or '.join(picks)} "
        f"{_requests(nearest, asked)}"
    )
    if asked.operation == "write" and structure.times_kept > 1:
        words += f", divided by {structure.redundancy_words}"
    if asked.operation == "write" and structure.writes > 1:
        words += ", each written twice (journal and data)"
    return DeploymentCeiling(
        bytes_s=rate / times, limited=all(one.promised is not None for one in of), how=words
    )


def _disk_of(one: Attested) -> str:
    """`wb0` of `disk wb0 random read`."""
    return one.what.split()[1]


def _osds(
    attested: Sequence[Attested], structure: Structure, asked: CeilingQuery
) -> DeploymentCeiling | CeilingGap:
    if asked.operation != "write":
        return CeilingGap(why="the OSDs' own bench only writes")
    fit = [one for one in attested if one.operation == "write" and one.unit == "B/s"]
    nearest = _nearest(fit, asked.size_bytes)
    if nearest is None:
        return CeilingGap(why="not measured: --layers osd")
    mine = [one for one in fit if one.request_bytes == nearest]
    if {one.host for one in mine} != set(structure.stores):
        return CeilingGap(why="not measured on every host of OSDs")
    words = f"{len(mine)} OSDs, each alone, {_requests(nearest, asked)}"
    if structure.times_kept > 1:
        words += f", divided by {structure.redundancy_words}"
    return DeploymentCeiling(
        bytes_s=sum(one.value for one in mine) / structure.times_kept, limited=False, how=words
    )


def _nearest(attested: Sequence[Attested], size_bytes: float) -> int | None:
    """The measured request size nearest to this one by ratio, the smaller of a tie; None: none."""
    sizes = sorted({one.request_bytes for one in attested if one.request_bytes is not None})
    if size_bytes <= 0:
        return None
    return min(sizes, key=lambda size: abs(math.log(size / size_bytes)), default=None)


def _requests(measured_bytes: int, asked: CeilingQuery) -> str:
    """`requests of 64 kB`, and that it is only the nearest size measured, if so."""
    words = f"requests of {show_bytes(measured_bytes)}"
    if measured_bytes == asked.size_bytes:
        return words
    return f"{words}, the nearest measured to {show_bytes(asked.size_bytes)}"


class Crossing(Record):
    """One end of a leg: hosts that send or receive `times` what the clients' requests carry."""

    hosts: tuple[str, ...]
    sends: bool
    times: float = 1

    @property
    def words(self) -> str:
        """`what store-1, store-2, store-3 receive, 3 times`."""
        verb = f"{'send' if self.sends else 'receive'}{'s' * (len(self.hosts) == 1)}"
        times = f", {self.times:.3g} times" if self.times > 1 else ""
        return f"what {', '.join(self.hosts)} {verb}{times}"


def _network(
    attested: Sequence[Attested], structure: Structure, asked: CeilingQuery
) -> DeploymentCeiling | CeilingGap:
    found: list[DeploymentCeiling] = []
    for crossing in _crossings(structure, asked):
        rates = [
            _carried(attested, host, asked.nics_bit_s.get(host), sends=crossing.sends)
            for host in crossing.hosts
        ]
        if None in rates:
            missing = ", ".join(
                host for host, one in zip(crossing.hosts, rates, strict=True) if one is None
            )
            return CeilingGap(
                why=f"not measured: what {missing} {'sends' if crossing.sends else 'receives'} "
                "(--layers network)"
            )
        known = [one for one in rates if one is not None]
        rate = sum(bit_s for bit_s, _ in known) / 8 / crossing.times
        if math.isfinite(rate):
            found.append(
                DeploymentCeiling(
                    bytes_s=rate, limited=all(limited for _, limited in known), how=crossing.words
                )
            )
    return min(
        found,
        key=lambda part: part.bytes_s,
        default=CeilingGap(why="unknown: no host's own link was seen at its limit"),
    )


def _carried(
    attested: Sequence[Attested], host: str, nic_bit_s: float | None, *, sends: bool
) -> tuple[float, bool] | None:
    """The most that a host sends or receives, and whether a limit applies; None if not measured.

    It was measured with single hosts and with all of them: the best shows what its own link can do.
    """
    mine = [
        one
        for one in attested
        if (one.sender if sends else one.receiver) == host and one.sender and one.receiver
    ]
    best = max(mine, key=lambda one: one.value, default=None)
    if best is None:
        return None
    if best.promised is not None and (nic_bit_s is None or nic_bit_s > best.promised):
        # The other host's NIC was the bottleneck.
        return (math.inf, True) if nic_bit_s is None else (nic_bit_s, True)
    return best.value, best.promised is not None


def _crossings(structure: Structure, asked: CeilingQuery) -> list[Crossing]:
    """Where bodies cross links between clients and stores; a host that is both ends has no
    crossing.
    """
    reads = asked.operation == "read"
    legs = [(asked.clients, structure.entrances, 1.0, 1.0)]
    legs += [(structure.entrances, structure.gateways, 1.0, 1.0)]
    sent = structure.times_kept if structure.copied_by == "gateway" and not reads else 1
    kept = 1.0 if reads else structure.times_received
    legs += [(structure.gateways, structure.stores, sent, kept)]
    found = []
    for near, far, left, arrived in legs:
        if not set(near) & set(far):
            found.append(Crossing(hosts=near, sends=not reads, times=left))
            found.append(Crossing(hosts=far, sends=reads, times=arrived))
    return found


_MEASURES: Final[
    Mapping[
        HardwareKind,
        Callable[[Sequence[Attested], Structure, CeilingQuery], DeploymentCeiling | CeilingGap],
    ]
] = {
    "disk": _disks,
    "osd": _osds,
    "network": _network,
}
