"""The `swift` gateway: proxies with memcached and storage hosts, perhaps behind a front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from weighbridge.common.endpoint import ObjectApi, S3Way
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Part, Scope, StoreLayer, Structure
from weighbridge.gateways.front import (
    FRONTS,
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
from weighbridge.gateways.options import by_option, scope_of
from weighbridge.gateways.probe import FileGrammar
from weighbridge.gateways.running import put_files
from weighbridge.gateways.sizing import Sized, Sizes
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.plan import Secrets, SwiftPlan
from weighbridge.gateways.swift.releases import RELEASES, Known, code_faults
from weighbridge.gateways.swift.running_swift import RunningSwift
from weighbridge.gateways.swift.settings import (
    SERVERS,
    SwiftPlacement,
    SwiftSettings,
    by_size,
    front_before,
    host_of_tls,
)

OWN_PATIENCE: Final = {
    "proxy.conn_timeout": "500ms",
    "proxy.node_timeout": "10s",
    "proxy.recoverable_node_timeout": "10s",
    "proxy.error_suppression.limit": 10,
    "proxy.error_suppression.interval": "60s",
}
"""Swift's own: how long proxies wait for a storage server, and when they leave it out. Layouts that
ship wait longer, since hosts at their limit are slow and not dead.
"""
_KEPT: Final = frozenset(
    {
        *("bind_ip", "bind_port", "swift_dir", "devices", "user"),
        *("memcache_servers", "use", "token_life", "reseller_prefix", "auth_prefix"),
    }
)
"""Options that define where servers are, where data is stored, and which tokens are valid."""
_NO_VERSIONS: Final = (
    "its proxies ignore X-Versions-Enabled, and s3api answers 501; set `settings: "
    "{versions: true}` in the layout"
)


class Swift(Gateway):
    """OpenStack Swift."""

    kind: ClassVar[str] = "swift"
    releases: ClassVar[Mapping[str, RootImage]] = {
        name: release.image for name, release in RELEASES.items()
    }
    Placement: ClassVar[type[Record]] = SwiftPlacement
    Settings: ClassVar[type[Record]] = SwiftSettings
    fault_settings: ClassVar[Mapping[str, object]] = OWN_PATIENCE
    place: SwiftPlacement
    settings: SwiftSettings
    grammars: ClassVar[tuple[FileGrammar, ...]] = (config.GRAMMAR,)

    def __init__(self, release: str, place: SwiftPlacement, settings: SwiftSettings) -> None:
        """Raises ValueError when release, placement and settings do not fit together."""
        self.release = release
        self.place, self.settings = place, settings
        ec = settings.ec
        if ec is not None and ec.failure_domain == "host":
            count = ec.fragments.count
            if len(place.storage) < count:
                raise Unfit(
                    f"{count} fragments (k {ec.k}, m {ec.m}) on separate hosts need {count} "
                    f"storage hosts, not {len(place.storage)}: lower k or m, or set "
                    "failure_domain to disk",
                    ("settings", "ec"),
                )
        if settings.formpost and settings.pipeline != "standard":
            raise ValueError("formpost needs the standard pipeline, whose tempurl has its key")
        if settings.versions and settings.pipeline != "standard":
            raise Unfit(
                f"versions need versioned_writes and symlink, which {settings.pipeline} does "
                "not have",
                ("settings", "versions"),
            )
        if len(place.storage) < settings.replicas:
            raise ValueError(
                f"{settings.replicas} replicas, each in its own zone, need {settings.replicas} "
                "storage hosts"
            )
        if (
            settings.object.etag_validate_pct != 100
            and "etag_validate_pct" in RELEASES[release].lacks
        ):
            have = [name for name, one in RELEASES.items() if "etag_validate_pct" not in one.lacks]
            raise ValueError(
                f"the object server of {release} checks the MD5 of every read; {', '.join(have)} "
                "have etag_validate_pct"
            )
        daemons = len(place.proxy) * settings.proxy.daemons
        refuse_unfit(place, settings, daemons, "proxies", tls=settings.proxy.tls)
        wanted = [(name, config.MEMCACHED_PORT, "memcached") for name in place.proxy]
        wanted += [
            (name, port, f"the {server} server")
            for name in place.storage
            for server, port in config.PORTS.items()
        ]
        wanted += [
            (name, settings.proxy.port + index, "the proxy")
            for name in place.proxy
            for index in range(settings.proxy.daemons)
        ]
        refuse_shared_ports(place, front_before(place, settings), wanted)

    @classmethod
    def settings_elsewhere(cls, release: str) -> str | None:
        return RELEASES[release].settings_of or None

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("swift", "s3") if self.settings.s3api else ("swift",)

    def s3_lacks(self) -> Mapping[S3Way, str]:
        return RELEASES[self.release].s3_lacks

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        release = RELEASES[self.release]
        lacks = release.s3_lacks_operations
        if api == "swift":
            lacks = {**release.lacks_operations, **config.operations_lacked(self.settings)}
        return lacks if self.settings.versions else {**lacks, "versions": _NO_VERSIONS}

    @property
    def own_ca(self) -> bool:
        return host_of_tls(self.place, self.settings) is not None

    def cannot_restart(self) -> str:
        return ""

    def spreads(self) -> bool:
        return self.settings.endpoints is not None

    @classmethod
    def scope(cls, key: str) -> Scope:
        head, _, rest = key.partition(".")
        if head in SwiftSettings.fronts:
            return FRONTS[head].scope(rest)
        if head != "options":
            return scope_of(SwiftSettings, key)
        name = key.rpartition(".")[2].removeprefix("set ").strip()
        if name in _KEPT or name.startswith("user_"):
            return "cluster"
        row = by_option(SwiftSettings).get(name)
        return "restart" if row is None else row.option.scope

    def layers(self) -> tuple[StoreLayer, ...]:
        # Clients send whole objects to object servers, which keep fragments with erasure coding.
        servers: tuple[StoreLayer, ...] = ("object-server",) if self.settings.ec is None else ()
        return servers if self.place.front is None else ("gateway", *servers)

    def structure(self, disks: Mapping[str, int]) -> Structure:
        place, settings = self.place, self.settings
        used = {name: tuple(range(disks.get(name, 0)))[: settings.disks] for name in place.storage}
        return Structure(
            entrances=place.proxy if place.front is None else (place.front,),
            gateways=place.proxy,
            daemons=len(place.proxy) * settings.proxy.daemons,
            front=None if place.front_name is None else FRONTS[place.front_name].label,
            stores=place.storage,
            disks={name: mine if len(mine) == 1 else mine[1:] for name, mine in used.items()},
            replicas=settings.kept.replicas,
            fragments=settings.kept.fragments,
            answers="disk",
            copied_by="gateway",
            layer="object-server" if settings.ec is None else None,
        )

    def needs(self) -> Mapping[str, HostNeed]:
        place = self.place
        roles: dict[str, list[str]] = {name: ["proxy", "memcached"] for name in place.proxy}
        roles |= {name: ["storage"] for name in place.storage}
        if place.front is not None and place.front_name is not None:
            roles.setdefault(place.front, []).append(place.front_name)
        disks = self.settings.disks or 1
        return {
            name: HostNeed(
                roles=tuple(of),
                disks=disks if "storage" in of else 0,
                tier=tier_of(of, ("storage",)),
            )
            for name, of in roles.items()
        }

    def by_size(self, sizes: Sizes) -> tuple[Sized, ...]:
        return by_size(self.place, self.settings, sizes)

    def lacks(self, disks: Mapping[str, int]) -> tuple[Unfit, ...]:
        """More fragments than object disks, each of which has at most one of an object."""
        ec, structure = self.settings.ec, self.structure(disks)
        count = sum(len(own) for own in structure.disks.values())
        if ec is None or ec.fragments.count <= count:
            return ()
        message = (
            f"{ec.fragments.count} fragments (k {ec.k}, m {ec.m}) need as many object disks; the "
            f"storage hosts have {count}: lower k or m, or give the hosts more disks"
        )
        return (Unfit(message, ("settings", "ec")),)

    def parts(self, sites: Mapping[str, Site]) -> tuple[Part, ...]:
        plan, place = SwiftPlan(self, sites, Secrets()), self.place
        alone = "the only proxy" if len(plan.proxies) == 1 else ""
        found = [Part(one.site.name, one.service, "gateway-daemon", alone) for one in plan.proxies]
        found += [Part(name, "memcached") for name in place.proxy]
        for store in plan.stores:
            for server in SERVERS:
                role: Literal["storage-daemon"] | None = None
                if server == "object":
                    role = "storage-daemon"
                disks = plan.disks(store, server)
                found.append(Part(store.name, f"{server}-server", role, disks=disks))
        return (*found, *front_parts(place))

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return tuple(file.rendered for file in SwiftPlan(self, sites).files())

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        proxy, files = hosts[self.place.proxy[0]], SwiftPlan(self, hosts).files()
        known = Known.by(proxy)
        other = RELEASES[self.release].settings_of
        given = {str(server): own for server, own in self.settings.options.items()}
        found = known.faults(files, given if other else None)
        if other:
            say(f"{self.release}: settings are {words(self.release, other, known.ignored(files))}")
        found += code_faults(proxy, self.settings)
        front, place = front_before(self.place, self.settings), self.place.front
        if front is not None and place is not None:
            put_files([file for file in files if file.host == place], hosts)
            try:
                front.check(hosts[place])
            except UsageError as error:
                found.append(str(error))
        if found:
            raise UsageError(f"{self.release}:\n" + "\n".join(dict.fromkeys(found)))

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        running = RunningSwift(self, hosts, client)
        running.bring_up(say)
        return running
