"""The `minio` gateway: MinIO servers that share the disks of their hosts. It is archived."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field, SecretStr, model_validator

from weighbridge.common.endpoint import Endpoint, ObjectApi, base_url
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Fragments, Structure
from weighbridge.gateways import xfs_disks
from weighbridge.gateways.artefact import GoProgram
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
)

_PROGRAM: Final = "minio"
_USER: Final = "weighbridge"
_PORT: Final = 9000
_COMMIT: Final = "7aac2a2c5b7c882e68c1ce017d8256be2feea27f"
_MODULE: Final = "github.com/minio/minio"


class MinioPlacement(Record):
    """Hosts of servers. Clients use the first one, which sends each fragment to its disk."""

    server: Annotated[tuple[str, ...], Field(min_length=1)]
    """The hosts of its servers, with their disks."""

    @model_validator(mode="after")
    def _once(self) -> MinioPlacement:
        if len(set(self.server)) != len(self.server):
            raise ValueError("server names the same host twice")
        return self


class MinioSettings(Record):
    """Settings that decide results."""

    parity: Annotated[int, Field(ge=0, le=8)] = 1
    """Fragments of each object that replace lost ones (`MINIO_STORAGE_CLASS_STANDARD`)."""


class Minio(Gateway):
    """MinIO, the last commit before its repository was archived."""

    kind: ClassVar[str] = "minio"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "minio-2026-02": RootImage(
            name="minio-2026-02",
            suite="bookworm",
            packages=("python3",),
            programs=(
                GoProgram(
                    name=_PROGRAM,
                    module=_MODULE,
                    version="v0.0.0-20260212201848-7aac2a2c5b7c",
                    sum="h1:/qdoYujxF5MBLDMVLeiYJ/7fBa1HikX39Dvzb9Ji8pA=",
                    tags="kqueue",
                    variables=(
                        f"{_MODULE}/cmd.Version=2026-02-12T20:18:48Z",
                        f"{_MODULE}/cmd.ReleaseTag=DEVELOPMENT.2026-02-12T20-18-48Z",
                        f"{_MODULE}/cmd.CommitID={_COMMIT}",
                    ),
                ),
            ),
        )
    }
    Placement: ClassVar[type[Record]] = MinioPlacement
    Settings: ClassVar[type[Record]] = MinioSettings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(place, MinioPlacement)  # noqa: S101 - the interface's contract
        assert isinstance(settings, MinioSettings)  # noqa: S101
        self.release, self.place, self.settings = release, place, settings

    def apis(self) -> tuple[ObjectApi, ...]:
        """S3."""
        return ("s3",)

    def cannot_restart(self) -> str:
        """See Gateway: all it has is on its disks."""
        return ""

    def needs(self) -> Mapping[str, HostNeed]:
        """A disk for each server."""
        need = HostNeed(roles=("minio",), disks=1, tier="shared")
        return dict.fromkeys(self.place.server, need)

    def lacks(self, disks: Mapping[str, int]) -> tuple[Unfit, ...]:
        """More parity than half of the disks."""
        count = self._disks(disks)
        if 2 * self.settings.parity <= count:
            return ()
        message = (
            f"parity {self.settings.parity} needs {2 * self.settings.parity} disks, and the "
            f"servers have {count}: lower it, or give them more disks"
        )
        return (Unfit(message, ("settings", "parity")),)

    def _disks(self, disks: Mapping[str, int]) -> int:
        return sum(disks.get(name, 0) for name in self.place.server)

    def structure(self, disks: Mapping[str, int]) -> Structure:
        """Each object is cut over all disks; the server that clients use does it."""
        count, parity = self._disks(disks), self.settings.parity
        return Structure(
            entrances=self.place.server[:1],
            gateways=self.place.server[:1],
            stores=self.place.server,
            disks={name: tuple(range(disks.get(name, 0))) for name in self.place.server},
            replicas=1,
            fragments=Fragments(data=count - parity, parity=parity) if 0 < parity < count else None,
            answers="data on disk",
            copied_by="gateway",
        )

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """It has no files: options are on its command line and in its environment."""
        return ()

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Raise UsageError unless the program is there."""
        for name in self.place.server:
            self._version(hosts[name])

    def _version(self, host: Host) -> str:
        return version_of(host, [_PROGRAM, "--version"], _COMMIT, self.releases[self.release])

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        """See Gateway."""
        servers, key = [hosts[name] for name in self.place.server], secrets.token_hex(20)
        say("creating file systems")
        xfs_disks.make(servers)
        first = servers[0]
        url = base_url(first.address, _PORT)
        store = FileStore(
            stages=(tuple(self._daemon(one, servers, key) for one in servers),),
            ready=(Readiness(first, f"{url}/minio/health/cluster"),),
            stores=tuple(servers),
            structure=self.structure({one.name: len(one.disks) for one in servers}),
            endpoint=Endpoint(api="s3", url=url, user=_USER, key=SecretStr(key)),
            rendered=(),
        )
        store.start(client, say)
        return RunningFileStore(store, client, say, self._facts(store, first))

    def _daemon(self, host: Host, servers: list[Host], key: str) -> Daemon:
        alone = len(servers) == 1
        places = [
            f"{'' if alone else base_url(one.address, _PORT)}{folder}/minio"
            for one in servers
            for folder in xfs_disks.folders(one)
        ]
        made = " ".join(f"{folder}/minio" for folder in xfs_disks.folders(host))
        words = f"server --address {host.address}:{_PORT} {' '.join(places)}"
        environment = {
            "MINIO_ROOT_USER": _USER,
            "MINIO_ROOT_PASSWORD": key,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "MINIO_STORAGE_CLASS_STANDARD": f"EC:{self.settings.parity}",
        }
        line = f"mkdir -p {made}; exec {_PROGRAM} {words}"
        return Daemon(host, Service(_PROGRAM, ("sh", "-ec", line), environment), _PORT)

    def _facts(self, store: FileStore, first: Host) -> dict[str, str]:
        structure = store.structure
        return {
            "gateway": f"MinIO, release {self.release}, archived by its maker",
            "program": f"{self._version(first)}; {self.releases[self.release].programs[0].source}",
            "daemons": f"servers on {', '.join(self.place.server)}; clients use {first.name}",
            "replicas": structure.redundancy_words,
            "acknowledgement": "a write is acknowledged when its data and metadata are synced to "
            "disk; the rename that gives them their name is not",
        }
