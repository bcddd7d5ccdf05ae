"""The `minio` gateway: MinIO servers that share the disks of their hosts. It is archived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field, model_validator

from weighbridge.common.endpoint import Endpoint, base_url, host_port
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Fragments, Structure
from weighbridge.gateways import file_store
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_store import FileGateway, Readiness, service
from weighbridge.gateways.gateway import GoProgram, HostNeed, RootImage, Unfit

_PROGRAM: Final = "minio"
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


class Minio(FileGateway[MinioPlacement, MinioSettings]):
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

    @property
    def port(self) -> int:
        return 9000

    @property
    def wanted_version(self) -> str:
        """It says its commit, not the version that Go has for it."""
        return _COMMIT

    def needs(self) -> Mapping[str, HostNeed]:
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

    def stages(
        self, hosts: Mapping[str, Host], endpoint: Endpoint
    ) -> tuple[tuple[Daemon, ...], ...]:
        """See FileGateway: all servers know all disks."""
        servers = [hosts[name] for name in self.place.server]
        return (tuple(self._daemon(one, servers, endpoint) for one in servers),)

    def _daemon(self, host: Host, servers: list[Host], endpoint: Endpoint) -> Daemon:
        alone = len(servers) == 1
        places = [
            f"{'' if alone else base_url(one.address, self.port)}{folder}/minio"
            for one in servers
            for folder in file_store.disk_folders(one)
        ]
        environment = {
            "MINIO_ROOT_USER": endpoint.user,
            "MINIO_ROOT_PASSWORD": endpoint.key.get_secret_value(),
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "MINIO_STORAGE_CLASS_STANDARD": f"EC:{self.settings.parity}",
        }
        argv = (_PROGRAM, "server", "--address", host_port(host.address, self.port), *places)
        folders = [f"{folder}/minio" for folder in file_store.disk_folders(host)]
        made = service(_PROGRAM, argv, folders=folders, env=environment)
        return Daemon(host, made, self.port)

    def ready(self, hosts: Mapping[str, Host]) -> tuple[Readiness, ...]:
        first = hosts[self.place.server[0]]
        url = f"{base_url(first.address, self.port)}/minio/health/cluster"
        return (Readiness(first, url),)

    def facts(self, structure: Structure) -> dict[str, str]:
        servers = self.place.server
        return {
            "gateway": f"MinIO, release {self.release}, archived by its maker",
            "daemons": f"servers on {', '.join(servers)}; clients use {servers[0]}",
            "replicas": structure.redundancy_words,
            "acknowledgement": "a write is acknowledged when its data and metadata are synced to "
            "disk; the rename that gives them their name is not",
        }
