"""The `garage` gateway: a node that clients use, and nodes that keep objects."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from weighbridge.common.endpoint import Endpoint, ObjectApi, S3Way, base_url, host_port
from weighbridge.common.host import Host
from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.gateways import file_store, program
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_store import (
    HIDDEN,
    READY_S,
    FileGateway,
    FileStore,
    Readiness,
    service,
)
from weighbridge.gateways.gateway import (
    CargoProgram,
    HostNeed,
    Rendered,
    RootImage,
    Site,
    Unfit,
    tier_of,
)

MIB = 2**20


class GaragePlacement(Record):
    """Which node runs on which host."""

    gateway: str
    """The host of the node that clients use. It keeps no objects, unless `storage` names it too."""
    storage: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of nodes that keep objects, each a zone of its own."""

    @model_validator(mode="after")
    def _once(self) -> GaragePlacement:
        if len(set(self.storage)) != len(self.storage):
            raise ValueError("storage names the same host twice")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once, that of clients first."""
        return tuple(dict.fromkeys((self.gateway, *self.storage)))


class GarageSettings(Record):
    """All settings that decide results, with explicit defaults."""

    replication_factor: Annotated[int, Field(ge=1, le=7)] = 3
    """Copies of each object, each on another host."""
    consistency_mode: Literal["consistent", "degraded", "dangerous"] = "consistent"
    """`consistent`: a write waits for most of the copies, and a read asks as many as it takes to
    see it; `degraded`: reads ask one; `dangerous`: writes wait for one, too.
    """
    data_fsync: bool = True
    """Sync each block of an object, and its folder, before the answer. Garage's own default syncs
    nothing.
    """
    metadata_fsync: bool = True
    """Have LMDB, which keeps names, and objects of less than 3 KiB, sync its transactions. Garage's
    own default syncs nothing.
    """
    block_size: Annotated[Bytes, Field(ge=MIB // 16, le=64 * MIB)] = MIB
    """Larger objects are cut into blocks of this size, a file each."""
    compression_level: Literal["none"] | Annotated[int, Field(ge=1, le=19)] = "none"
    """The level of zstd by which blocks are compressed (Garage: 1)."""


_PROGRAM: Final = "garage"
_CONFIG: Final = "/etc/garage.toml"
_S3, _RPC, _ADMIN = 3900, 3901, 3903
_OWN_FOLDER: Final = "/var/lib/garage"
"""Of a node that keeps no objects: what it knows of the cluster."""
_TB: Final = 10**12
_OVERWRITES: Final = "Garage ignores If-None-Match of PUT, and overwrites the object"
_LACKS: Final[Mapping[str, str]] = {
    "tag": "Garage does not support tags of objects (501 NotImplemented)",
    "versions": "Garage keeps no versions (501 NotImplemented)",
    "write-if-none-match": _OVERWRITES,
    "rewrite-if-none-match": _OVERWRITES,
}
_S3_LACKS: Final[Mapping[S3Way, str]] = {
    "sse-s3": "Garage does not support SSE-S3: it answers 200, but HEAD shows no encryption",
    "anonymous requests": "Garage refuses requests without a signature (403)",
}


class Garage(FileGateway[GaragePlacement, GarageSettings]):
    """Garage."""

    kind: ClassVar[str] = "garage"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "garage-2.5.0": RootImage(
            name="garage-2.5.0",
            suite="bookworm",
            packages=("python3",),
            programs=(
                CargoProgram(
                    name=_PROGRAM,
                    crate="garage",
                    version="2.5.0",
                    sha256="e1752af176a3cd84e9afd6edf30df594db92b7730cc67bddcd74769841b3f3f5",
                    rust="1.89",
                ),
            ),
        )
    }
    Placement: ClassVar[type[Record]] = GaragePlacement
    Settings: ClassVar[type[Record]] = GarageSettings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises Unfit when there are fewer nodes than copies."""
        super().__init__(release, place, settings)
        nodes, copies = len(self.place.storage), self.settings.replication_factor
        if nodes < copies:
            raise Unfit(
                f"{copies} copies on separate hosts need as many nodes, not {nodes}: add hosts, or "
                f"set replication_factor to {nodes}",
                ("settings", "replication_factor"),
            )

    @property
    def port(self) -> int:
        return _S3

    @property
    def compresses(self) -> str:
        return "" if self.settings.compression_level == "none" else "zstd"

    def s3_lacks(self) -> Mapping[S3Way, str]:
        return _S3_LACKS

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        return _LACKS

    def new_keys(self) -> tuple[str, str]:
        """In the form of those that it makes itself."""
        return f"GK{secrets.token_hex(12)}", secrets.token_hex(32)

    def needs(self) -> Mapping[str, HostNeed]:
        roles: dict[str, list[str]] = {name: ["storage"] for name in self.place.storage}
        roles.setdefault(self.place.gateway, []).append("gateway")
        return {
            name: HostNeed(
                roles=tuple(of), disks=int("storage" in of), tier=tier_of(of, ("storage",))
            )
            for name, of in roles.items()
        }

    def structure(self, disks: Mapping[str, int]) -> Structure:
        """The node that clients use sends each copy. Garage opens LMDB so that it syncs what a
        transaction wrote, and not that it is done (`MDB_NOMETASYNC`): the name is not on disk.
        """
        place, settings = self.place, self.settings
        return Structure(
            entrances=(place.gateway,),
            gateways=(place.gateway,),
            stores=place.storage,
            disks={name: tuple(range(disks.get(name, 0))) for name in place.storage},
            replicas=settings.replication_factor,
            answers="data on disk"
            if settings.data_fsync and settings.metadata_fsync
            else "page cache",
            copied_by="gateway",
        )

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return tuple(
            Rendered(host=name, path=_CONFIG, text=self._config(sites[name], HIDDEN, HIDDEN))
            for name in self.place.hosts
        )

    def put_files(self, hosts: Mapping[str, Host], endpoint: Endpoint) -> None:
        secret, token = secrets.token_hex(32), secrets.token_hex(32)
        for name in self.place.hosts:
            hosts[name].put(_CONFIG, self._config(hosts[name], secret, token), mode=0o600)

    def _folders(self, site: Site) -> tuple[str, tuple[str, ...]]:
        if site.name not in self.place.storage:
            return f"{_OWN_FOLDER}/meta", (f"{_OWN_FOLDER}/data",)
        disks = file_store.disk_folders(site)
        return f"{disks[0]}/meta", tuple(f"{one}/data" for one in disks)

    def _config(self, site: Site, secret: str, token: str) -> str:
        settings, (known, blocks) = self.settings, self._folders(site)
        data = ", ".join(f'{{ path = "{one}", capacity = "1T" }}' for one in blocks)
        api = (
            f'api_bind_addr = "{host_port(site.address, _S3)}"\n'
            if site.name == self.place.gateway
            else ""
        )
        return f"""\
metadata_dir = "{known}"
data_dir = [{data}]
db_engine = "lmdb"
metadata_fsync = {json.dumps(settings.metadata_fsync)}
data_fsync = {json.dumps(settings.data_fsync)}
replication_factor = {settings.replication_factor}
consistency_mode = "{settings.consistency_mode}"
block_size = {settings.block_size}
compression_level = {json.dumps(settings.compression_level)}
rpc_bind_addr = "{host_port(site.address, _RPC)}"
rpc_public_addr = "{host_port(site.address, _RPC)}"
rpc_secret = "{secret}"

[s3_api]
s3_region = "us-east-1"
{api}
[admin]
api_bind_addr = "{host_port(site.address, _ADMIN)}"
admin_token = "{token}"
"""

    def stages(
        self, hosts: Mapping[str, Host], endpoint: Endpoint
    ) -> tuple[tuple[Daemon, ...], ...]:
        """See FileGateway: nodes start in any order."""
        return (tuple(self._daemon(hosts[name]) for name in self.place.hosts),)

    def _daemon(self, host: Host) -> Daemon:
        known, blocks = self._folders(host)
        made = service(_PROGRAM, (_PROGRAM, "-c", _CONFIG, "server"), folders=(known, *blocks))
        return Daemon(host, made, _S3 if host.name == self.place.gateway else _RPC)

    def ready(self, hosts: Mapping[str, Host]) -> tuple[Readiness, ...]:
        """See FileGateway: all nodes are there."""
        host = hosts[self.place.gateway]
        url = f"{base_url(host.address, _ADMIN)}/health"
        return (Readiness(host, url, text="fully operational"),)

    def meet(self, hosts: Mapping[str, Host]) -> None:
        self._join(hosts)

    def set_up(self, store: FileStore, hosts: Mapping[str, Host]) -> None:
        """See FileGateway: give the nodes their roles, and make a user."""
        endpoint = store.endpoint
        self._join(hosts, user=endpoint.user, key=endpoint.key.get_secret_value())
        store.await_ready()

    def _join(self, hosts: Mapping[str, Host], **user: str) -> None:
        nodes = [self._node(hosts[name]) for name in self.place.hosts]
        order = {"config": _CONFIG, "nodes": nodes, "deadline_s": READY_S, **user}
        host = hosts[self.place.gateway]
        host.run(
            program.ship(host, "weighbridge.gateways.garage.join_nodes"),
            stdin=json.dumps(order),
            timeout_s=READY_S + 30,
        )

    def _node(self, host: Host) -> dict[str, object]:
        stores = host.name in self.place.storage
        return {
            "admin": base_url(host.address, _ADMIN),
            "rpc": host_port(host.address, _RPC),
            "zone": host.name,
            "capacity": len(host.disks) * _TB if stores else None,
        }

    def facts(self, structure: Structure) -> dict[str, str]:
        place, settings = self.place, self.settings
        copies = settings.replication_factor
        needed = 1 if settings.consistency_mode == "dangerous" else copies // 2 + 1
        synced = {True: "synced", False: "in the page cache"}
        return {
            "gateway": f"Garage, release {self.release}",
            "daemons": f"clients use the node on {place.gateway}; nodes that keep objects on "
            f"{', '.join(place.storage)}, their names in LMDB",
            "replicas": f"{copies}, each on another host, {settings.consistency_mode}",
            "acknowledgement": f"a write is acknowledged when {needed} of {copies} nodes have it: "
            f"its data {synced[settings.data_fsync]}, its name and objects of less than 3 KiB "
            f"{synced[settings.metadata_fsync]}; the end of the last transaction of names is "
            "not synced",
            "blocks": f"{settings.block_size} bytes each, compression {settings.compression_level}",
        }
