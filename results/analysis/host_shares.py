from __future__ import annotations

from collections.abc import Sequence

from weighbridge.common.quantities import cpu_numbers
from weighbridge.common.record import Record
from weighbridge.results.figures import counted, listed
from weighbridge.results.record import PlannedHost, ResolvedPlan


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
