"""The `rgw` gateway: a Ceph cluster of a mon, a mgr and OSDs, with radosgw and perhaps a front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from weighbridge.common.endpoint import ObjectApi, S3Way
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Part, Scope, StoreLayer, Structure
from weighbridge.gateways.front import FRONTS, front_parts, refuse_shared_ports, refuse_unfit
from weighbridge.gateways.gateway import (
    Gateway,
    HostNeed,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
    Unfit,
    tier_of,
    words,
)
from weighbridge.gateways.probe import FileGrammar
from weighbridge.gateways.rgw import change, config
from weighbridge.gateways.rgw.bring_up import CephBringUp
from weighbridge.gateways.rgw.ceph_roster import MON_PORTS, CephRoster
from weighbridge.gateways.rgw.ceph_state import conf_of
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import GRAMMAR
from weighbridge.gateways.rgw.releases import RELEASES, SWIFT_LACKS
from weighbridge.gateways.rgw.settings import (
    RgwPlacement,
    RgwSettings,
    by_size,
    network_faults,
    plugin_faults,
)
from weighbridge.gateways.sizing import Sized, Sizes

_VAULT: Final = "rgw_crypt_sse_s3_vault_addr"
_NO_VAULT: Final = (
    "radosgw takes SSE-S3 keys only from a HashiCorp Vault or OpenBao (else 400 "
    "InvalidRequest), and this suite sets up neither: name yours in the layout's options "
    f"({_VAULT} and others, see docs/keeping.md)"
)
_NO_FSID = "00000000-0000-0000-0000-000000000000"


class Rgw(Gateway):
    """Ceph's object gateway."""

    kind: ClassVar[str] = "rgw"
    releases: ClassVar[Mapping[str, RootImage]] = {
        name: release.image for name, release in RELEASES.items()
    }
    Placement: ClassVar[type[Record]] = RgwPlacement
    Settings: ClassVar[type[Record]] = RgwSettings
    cluster: CephCluster
    grammars: ClassVar[tuple[FileGrammar, ...]] = (GRAMMAR,)

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises ValueError when placement, settings and release do not fit together."""
        assert isinstance(place, RgwPlacement)  # noqa: S101 - the interface's contract
        assert isinstance(settings, RgwSettings)  # noqa: S101
        self.release = release
        self.place, self.settings = place, settings
        self.cluster = CephCluster(release=release, place=place, settings=settings)
        wanted = settings.radosgw.frontend
        if wanted not in RELEASES[release].frontends:
            have = [name for name, one in RELEASES.items() if wanted in one.frontends]
            raise ValueError(
                f"radosgw of {release} has no front end {wanted}; {', '.join(have)} have it"
            )
        if settings.osd.objectstore == "filestore" and not RELEASES[release].filestore:
            have = [name for name, one in RELEASES.items() if one.filestore]
            raise ValueError(f"the OSDs of {release} have no FileStore; {', '.join(have)} have it")
        pools = settings.pools
        if pools.failure_domain == "host" and len(place.osd) < pools.most_parts:
            needed = f"{pools.part_words} on separate hosts need {pools.most_parts} osd hosts"
            found = f"{needed}, not {len(place.osd)}"
            if pools.wide_ec is None:
                raise Unfit(found)
            less = "lower k or m, or set failure_domain to osd"
            raise Unfit(f"{found}: {less}", ("settings", "pools", "ec"))
        daemons = settings.radosgw.daemons
        refuse_unfit(
            place, settings, len(place.radosgw) * daemons, "radosgw", tls=settings.radosgw.tls
        )
        ports = [(name, port, "the mon") for name in place.mon for port in MON_PORTS]
        ports += [
            (name, settings.radosgw.port + index, "radosgw")
            for name in place.radosgw
            for index in range(daemons)
        ]
        refuse_shared_ports(place, self.cluster.front(), ports)

    @classmethod
    def settings_elsewhere(cls, release: str) -> str | None:
        return RELEASES[release].settings_of or None

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("swift", "s3")

    def s3_lacks(self) -> Mapping[S3Way, str]:
        lacks = RELEASES[self.release].s3_lacks
        named = any(_VAULT in section for section in self.settings.options.values())
        return lacks if named or "sse-s3" in lacks else {**lacks, "sse-s3": _NO_VAULT}

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        return SWIFT_LACKS if api == "swift" else RELEASES[self.release].s3_lacks_operations

    @property
    def advice(self) -> tuple[str, ...]:
        return self.place.advice

    @property
    def own_ca(self) -> bool:
        return self.cluster.tls_host is not None

    def cannot_restart(self) -> str:
        if self.settings.osd.objectstore == "memstore":
            return "MemStore keeps objects only in memory: none survives a power cut"
        return ""

    def spreads(self) -> bool:
        return self.settings.endpoints is not None

    @classmethod
    def scope(cls, key: str) -> Scope:
        return change.scope_of(key)

    def layers(self) -> tuple[StoreLayer, ...]:
        below: tuple[StoreLayer, ...] = ("osd", "rados", "rbd", "cephfs")
        return below if self.place.front is None else ("gateway", *below)

    def structure(self, disks: Mapping[str, int]) -> Structure:
        place, osd, kept = self.place, self.settings.osd, self.settings.pools.kept
        used = {name: osd.split(disks.get(name, 0)) for name in place.osd}
        apart, kept_in_memory = osd.own_journal, osd.objectstore == "memstore"
        return Structure(
            entrances=place.radosgw if place.front is None else (place.front,),
            gateways=place.radosgw,
            daemons=len(place.radosgw) * self.settings.radosgw.daemons,
            front=None if place.front_name is None else FRONTS[place.front_name].label,
            stores=place.osd,
            fragments=kept.fragments,
            disks={} if kept_in_memory else {name: data for name, (data, _) in used.items()},
            journals={name: mine for name, (_, mine) in used.items()} if apart else {},
            writes=2 if osd.objectstore == "filestore" and not apart else 1,
            replicas=kept.replicas,
            answers="memory" if kept_in_memory else "disk",
            copied_by="store",
            layer="rados",
        )

    def needs(self) -> Mapping[str, HostNeed]:
        place, osd = self.place, self.settings.osd
        roles: dict[str, list[str]] = {}
        for role, names in (("mon", place.mon), ("osd", place.osd), ("radosgw", place.radosgw)):
            for name in names:
                roles.setdefault(name, []).append(role)
        if place.front is not None and place.front_name is not None:
            roles.setdefault(place.front, []).append(place.front_name)
        store = {"disks": osd.least_disks, "memory_bytes": osd.least_memory_bytes}
        return {
            name: HostNeed(
                roles=tuple(of), tier=tier_of(of, ("mon", "osd")), **(store if "osd" in of else {})
            )
            for name, of in roles.items()
        }

    @property
    def compresses(self) -> str:
        algorithm = self.settings.radosgw.compression
        return "" if algorithm == "none" else algorithm

    def by_size(self, sizes: Sizes) -> tuple[Sized, ...]:
        return by_size(self.place, self.settings, sizes)

    def lacks(self, disks: Mapping[str, int]) -> tuple[Unfit, ...]:
        """More copies or fragments than OSDs, each of which has at most one of an object."""
        pools, osd = self.settings.pools, self.settings.osd
        count = sum(osd.osds(disks.get(name, 0)) for name in self.place.osd)
        by_layout = osd.objectstore == "memstore"
        source = "the layout gives" if by_layout else "the disks of the osd hosts give"
        if count >= pools.most_parts:
            return ()
        less, key = ("replicas", "replicas") if pools.wide_ec is None else ("k or m", "ec")
        message = f"{pools.part_words} need {pools.most_parts} OSDs; {source} {count}: lower {less}"
        return (Unfit(f"{message}, or give the hosts more disks", ("settings", "pools", key)),)

    def parts(self, sites: Mapping[str, Site]) -> tuple[Part, ...]:
        """More than half of the mons must be up."""
        roster, place = CephRoster(self.place, self.settings, sites), self.place
        needed = {1: "the only mon", 2: "one of two mons, of which both are needed"}
        alone = "the only radosgw" if len(roster.radosgws) == 1 else ""
        lone = needed.get(len(place.mon), "")
        found = [
            Part(name, what, lone=lone * (what == "mon"))
            for name in place.mon
            for what in ("mon", "mgr")
        ]
        found += [
            Part(one.host, f"osd.{one.number}", "storage-daemon", disks=one.disks)
            for one in roster.osds
        ]
        found += [Part(one.host, one.service, "gateway-daemon", alone) for one in roster.radosgws]
        return (*found, *front_parts(place))

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return self.cluster.files(
            CephRoster(self.place, self.settings, sites),
            fsid=_NO_FSID,
            native=False,
            certificates=self.cluster.certificates(sites),
        ).shown()

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        native = self.cluster.speaks_fastcgi(hosts)
        roster = CephRoster(self.place, self.settings, hosts)
        certificates = self.cluster.certificates(hosts)
        files = self.cluster.files(roster, fsid=_NO_FSID, native=native, certificates=certificates)
        files.write(hosts)
        first, conf = hosts[self.place.radosgw[0]], conf_of(files)
        other = RELEASES[self.release].settings_of
        faults = config.option_faults(
            first,
            self.release,
            conf,
            list(self.settings.options.values()),
            of_another=bool(other),
        )
        if other:
            ignored = config.unknown_options(first, self.release, conf)
            say(f"{self.release}: settings are {words(self.release, other, [*ignored.values()])}")
        faults += network_faults(self.place, self.settings, hosts)
        faults += plugin_faults(first, self.release, self.settings)
        front = self.cluster.front(native=native)
        if front is not None and roster.front is not None:
            try:
                front.check(hosts[roster.front.name])
            except UsageError as error:
                faults.append(str(error))
        if faults:
            raise UsageError("\n".join(faults))

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        return CephBringUp(self.cluster, hosts, client, say).run()
