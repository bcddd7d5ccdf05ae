"""The `rgw` gateway: a Ceph cluster of a mon, a mgr and OSDs, with radosgw and perhaps a front."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import ClassVar, Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.endpoint import ObjectApi, S3Way
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Part, Scope, StoreLayer, Structure
from weighbridge.gateways import options
from weighbridge.gateways.certificates import issued
from weighbridge.gateways.front import (
    FRONTS,
    Behind,
    front_of,
    front_parts,
    refuse_shared_ports,
    refuse_unfit,
)
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
from weighbridge.gateways.rgw.monitor import option_faults, unknown_options
from weighbridge.gateways.rgw.plan import (
    CONF,
    GRAMMAR,
    MON_PORTS,
    CephKeys,
    CephPlan,
    tls_host_of,
)
from weighbridge.gateways.rgw.releases import RELEASES, SWIFT_LACKS
from weighbridge.gateways.rgw.running_rgw import RunningRgw
from weighbridge.gateways.rgw.settings import RadosgwSettings, RgwPlacement, RgwSettings, by_size
from weighbridge.gateways.running import HostFile, put_files
from weighbridge.gateways.sizing import Sized, Sizes

_VAULT: Final = "rgw_crypt_sse_s3_vault_addr"
_NO_VAULT: Final = (
    "radosgw takes SSE-S3 keys only from a HashiCorp Vault or OpenBao (else 400 "
    "InvalidRequest), and this suite sets up neither: name yours in the layout's options "
    f"({_VAULT} and others, see docs/keeping.md)"
)
_IDENTITY: Final = frozenset(
    {
        *("rgw_zone", "rgw_zonegroup", "rgw_realm", "rgw_default_realm_root_pool", "public_addr"),
        *("fsid", "mon_host", "keyring", "key", "keyfile", "admin_socket", "run_dir"),
    }
)
"""Options that define a radosgw's cluster and identity, which cannot change."""
_NO_FSID = "00000000-0000-0000-0000-000000000000"


class Rgw(Gateway):
    """Ceph's object gateway."""

    kind: ClassVar[str] = "rgw"
    releases: ClassVar[Mapping[str, RootImage]] = {
        name: release.image for name, release in RELEASES.items()
    }
    Placement: ClassVar[type[Record]] = RgwPlacement
    Settings: ClassVar[type[Record]] = RgwSettings
    place: RgwPlacement
    settings: RgwSettings
    grammars: ClassVar[tuple[FileGrammar, ...]] = (GRAMMAR,)

    def __init__(self, release: str, place: RgwPlacement, settings: RgwSettings) -> None:
        """Raises ValueError when placement, settings and release do not fit together."""
        self.release = release
        self.place, self.settings = place, settings
        self.front = front_of(place, settings, Behind())
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
        refuse_shared_ports(place, self.front, ports)

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
        return tls_host_of(self.place, self.settings) is not None

    def cannot_restart(self) -> str:
        if self.settings.osd.objectstore == "memstore":
            return "MemStore keeps objects only in memory: none survives a power cut"
        return ""

    def spreads(self) -> bool:
        return self.settings.endpoints is not None

    @classmethod
    def scope(cls, key: str) -> Scope:
        first, _, rest = key.partition(".")
        if first in FRONTS:
            return FRONTS[first].scope(rest)
        if first != "options":
            return options.scope_of(RgwSettings, key)
        if not rest.startswith("client."):
            return "cluster"
        name = rest.removeprefix("client.")
        row = options.by_option(RadosgwSettings).get(name)
        # Those of buckets apply only to buckets created later, and objects keep the layout that
        # they were written with.
        return "cluster" if name in _IDENTITY else "restart" if row is None else row.option.scope

    @classmethod
    def asks_daemons(cls, key: str) -> bool:
        return key.startswith(("radosgw.", "options.client.")) and cls.scope(key) != "buckets"

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
        ceph = self.planned(sites)
        needed = {1: "the only mon", 2: "one of two mons, of which both are needed"}
        lone = needed.get(len(ceph.mons), "")
        alone = "the only radosgw" if len(ceph.radosgws) == 1 else ""
        parts = []
        for name in self.place.mon:
            parts += [Part(name, "mon", lone=lone), Part(name, "mgr")]
        for osd in ceph.osds:
            parts.append(Part(osd.host, f"osd.{osd.number}", "storage-daemon", disks=osd.disks))
        for one in ceph.radosgws:
            parts.append(Part(one.host, one.service, "gateway-daemon", alone))
        return (*parts, *front_parts(self.place))

    def planned(self, sites: Mapping[str, Site]) -> CephPlan:
        """The cluster on these hosts."""
        return CephPlan(self, sites)

    def _files(self, sites: Mapping[str, Site], *, native: bool) -> tuple[HostFile, ...]:
        """Its files before it is brought up, with keys that are thrown away."""
        ceph, host = self.planned(sites), tls_host_of(self.place, self.settings)
        certificates = None if host is None else issued(sites[host])
        return ceph.files(CephKeys(_NO_FSID, ceph.keyring(), certificates), native=native)

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return tuple(file.rendered for file in self._files(sites, native=False))

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        native = self.planned(hosts).speaks_fastcgi(hosts)
        files = self._files(hosts, native=native)
        put_files(files, hosts)
        conf = next(file.text for file in files if file.path == CONF)
        first, other = hosts[self.place.radosgw[0]], RELEASES[self.release].settings_of
        given = list(self.settings.options.values())
        faults = option_faults(first, self.release, conf, given, of_another=bool(other))
        if other:
            ignored = unknown_options(first, self.release, conf)
            say(f"{self.release}: settings are {words(self.release, other, [*ignored.values()])}")
        faults += self._network_faults(hosts)
        faults += plugin_faults(first, self.release, self.settings)
        front = self.planned(hosts).front(native=native)
        if front is not None and self.place.front is not None:
            try:
                front.check(hosts[self.place.front])
            except UsageError as error:
                faults.append(str(error))
        if faults:
            raise UsageError("\n".join(faults))

    def _network_faults(self, hosts: Mapping[str, Host]) -> list[str]:
        """OSD hosts without an address in the network of OSDs, a sentence each."""
        if self.settings.osd.cluster_network is None:
            return []
        network = ip_network(self.settings.osd.cluster_network)
        faults = []
        for name in self.place.osd:
            words = hosts[name].run(["hostname", "-I"]).stdout.split()
            # One of a link alone has the link's name behind a percent sign.
            addresses = [ip_address(word) for word in words if "%" not in word]
            if not any(one in network for one in addresses):
                listed = ", ".join(map(str, addresses)) or "none"
                faults.append(
                    f"osd.cluster_network: {name} has no address in {network}, but {listed}"
                )
        return faults

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        running = RunningRgw(self, hosts, client)
        running.bring_up(say)
        return running


_LIST: Final = (
    "ls /usr/lib/*/ceph/compressor /usr/lib*/ceph/compressor "
    "/usr/lib/*/ceph/erasure-code /usr/lib*/ceph/erasure-code 2>/dev/null || true"
)
_LIBRARY: Final = re.compile(r"^lib(ceph|ec)_([a-z0-9]+)\.so$", re.MULTILINE)


def plugin_faults(host: Host, release: str, settings: RgwSettings) -> list[str]:
    """What of the settings the release on this host cannot do, a line each. Raises CommandFailed.

    The packages of all Ceph daemons of a release have the same plug-ins.
    """
    wanted: list[tuple[str, str, str]] = []
    if settings.radosgw.compression != "none":
        wanted.append(("radosgw.compression", "ceph", settings.radosgw.compression))
    if settings.pools.ec is not None:
        wanted.append(("pools.ec.plugin", "ec", settings.pools.ec.plugin))
    if not wanted:
        return []
    found = set(_LIBRARY.findall(host.run(["sh", "-c", _LIST]).stdout))
    lines = []
    for key, kind, name in wanted:
        if (kind, name) not in found:
            known = sorted(other for one, other in found if one == kind)
            hint = did_you_mean(name, known) if known else ", nor any other"
            lines.append(f"settings.{key}: {release} has no {name}{hint}")
    return lines
