"""What a study's hosts had, and hardware lacks: refused before anything starts, unless accepted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.suites.studies import HostNeed, HostRole, ScaleName, Study
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.loader import Planned


def refuse_unmet(
    study: Study,
    scale: ScaleName,
    hardware: Hardware,
    planned: Sequence[Planned],
    despite: Sequence[str],
) -> tuple[str, ...]:
    """What hosts lack of a scale's needs, in sentences, all of it accepted by name in `despite`.

    Raises UsageError with everything that is not accepted, and for unknown names.
    """
    needs = study.scales[scale].needs
    known = [one.id for one in needs]
    strange = [name for name in despite if name not in known]
    if strange:
        hints = ", ".join(f"nothing named {name!r}{did_you_mean(name, known)}" for name in strange)
        which = f"It needs {', '.join(known)}." if known else "It needs nothing of its hosts."
        raise UsageError(f"study {study.name} at scale {scale} needs {hints}", advice=which)
    unmet = {
        one.id: f"{one.says} ({one.where}): {why}"
        for one in needs
        if (why := "; ".join(_lacking(one, hardware, planned)))
    }
    refused = [name for name in unmet if name not in despite]
    if refused:
        lines = [f"  {name}: {unmet[name]}" for name in refused]
        raise UsageError(
            f"study {study.name} at scale {scale}: hardware {hardware.name!r} lacks what its hosts "
            "had\n" + "\n".join(lines),
            advice="Use hosts that have it, or accept the difference by name, which the report "
            f"then says: --despite {','.join([*despite, *refused])}",
        )
    return tuple(unmet.values())


def _lacking(need: HostNeed, hardware: Hardware, planned: Sequence[Planned]) -> Iterator[str]:
    """Why hosts do not have what a study's had; nothing if they do. Unknown is not enough."""
    names = _named(need.of, hardware, planned)
    if need.hosts is not None and len(names) < need.hosts:
        yield f"{len(names)} of {need.hosts} hosts"
    for name in names:
        spec = hardware.hosts[name]
        if need.disks is not None and len(spec.disks) < need.disks:
            yield f"{name} has {len(spec.disks)}"
        if need.nic is not None and (spec.nic is None or spec.nic.rate is None):
            yield f"the rate of {name}’s NIC is not in the hardware file"
        elif need.nic is not None and spec.nic is not None and (spec.nic.rate or 0) < need.nic:
            yield f"{name}’s NIC has {(spec.nic.rate or 0) / 1e9:g} Gbit/s"
        if need.journal and (len(spec.disks) < 2 or _kind(spec.disks[-1]) == _kind(spec.disks[0])):
            yield f"{name}’s last disk is like its first"
    if need.mtu is not None and hardware.network.mtu < need.mtu:
        yield f"the MTU is {hardware.network.mtu}"
    if need.profile is not None and hardware.profile != need.profile:
        only = "" if hardware.of.by_ssh else ", which only real hosts can have"
        yield f"the hardware file has no `profile: {need.profile}`{only}"


def _kind(disk: Disk) -> tuple[object, ...]:
    """What tells one kind of disk from another in a hardware file; of real ones that is their
    names, since who wrote the file chose which comes last.
    """
    return (disk.id, disk.bandwidth, disk.iops, None if disk.model is None else disk.model.base)


def _named(role: HostRole, hardware: Hardware, planned: Sequence[Planned]) -> list[str]:
    """The hosts of a role in any of the layouts."""
    if role == "clients":
        return list(hardware.clients)
    if role == "all":
        roles: tuple[HostRole, ...] = ("clients", "gateways", "stores")
        return list(dict.fromkeys(host for one in roles for host in _named(one, hardware, planned)))
    disks = {name: len(spec.disks) for name, spec in hardware.hosts.items()}
    found: list[str] = []
    for one in planned:
        structure = one.gateway.structure(disks)
        if structure is not None:
            found += structure.stores if role == "stores" else structure.gateways
    return list(dict.fromkeys(found))
