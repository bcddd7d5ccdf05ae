"""The `versitygw` gateway: Versity S3 Gateway over the XFS file system of one disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field

from weighbridge.common.endpoint import Endpoint, base_url, host_port
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.gateways import file_store
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_store import FileGateway, Readiness, service
from weighbridge.gateways.gateway import GoProgram, HostNeed, RootImage

_PROGRAM: Final = "versitygw"
_HEALTH: Final = "/health"


class VersitygwPlacement(Record):
    """The host of the gateway, which keeps objects on its first disk."""

    server: str
    """The host of the gateway, with its disk."""


class VersitygwSettings(Record):
    """Settings of the gateway; it has none that decides what is synced."""

    port: Annotated[int, Field(ge=1, le=65535)] = 7070
    """Where it listens."""


class Versitygw(FileGateway[VersitygwPlacement, VersitygwSettings]):
    """Versity S3 Gateway with its posix backend."""

    kind: ClassVar[str] = "versitygw"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "versitygw-1.8.0": RootImage(
            name="versitygw-1.8.0",
            suite="bookworm",
            packages=("python3",),
            programs=(
                GoProgram(
                    name=_PROGRAM,
                    module="github.com/versity/versitygw",
                    version="v1.8.0",
                    sum="h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
                    package="./cmd/versitygw",
                    variables=("main.Version=v1.8.0",),
                ),
            ),
        )
    }
    Placement: ClassVar[type[Record]] = VersitygwPlacement
    Settings: ClassVar[type[Record]] = VersitygwSettings

    @property
    def port(self) -> int:
        return self.settings.port

    def needs(self) -> Mapping[str, HostNeed]:
        return {self.place.server: HostNeed(roles=("versitygw",), disks=1, tier="shared")}

    def structure(self, disks: Mapping[str, int]) -> Structure:
        server = (self.place.server,)
        return Structure(
            entrances=server,
            gateways=server,
            stores=server,
            disks={self.place.server: (0,)},
            replicas=1,
            answers="page cache",
            copied_by="gateway",
        )

    def stages(
        self, hosts: Mapping[str, Host], endpoint: Endpoint
    ) -> tuple[tuple[Daemon, ...], ...]:
        host = hosts[self.place.server]
        disk = file_store.disk_folders(host)[0]
        folders = (f"{disk}/iam", f"{disk}/data")
        at = host_port(host.address, self.port)
        options = ("--port", at, "--iam-dir", folders[0], "--health", _HEALTH, "--quiet")
        keys = {
            "ROOT_ACCESS_KEY": endpoint.user,
            "ROOT_SECRET_KEY": endpoint.key.get_secret_value(),
        }
        argv = (_PROGRAM, *options, "posix", folders[1])
        return ((Daemon(host, service(_PROGRAM, argv, folders=folders, env=keys), self.port),),)

    def ready(self, hosts: Mapping[str, Host]) -> tuple[Readiness, ...]:
        host = hosts[self.place.server]
        return (Readiness(host, f"{base_url(host.address, self.port)}{_HEALTH}"),)

    def facts(self, structure: Structure) -> dict[str, str]:
        return {
            "gateway": f"Versity S3 Gateway, release {self.release}, posix backend on XFS",
            "daemons": f"one on {self.place.server}, on its first disk",
            "replicas": "1: it copies nothing",
            "acknowledgement": "a write is acknowledged when it is in the page cache of its host; "
            "nothing is ever synced, at any size, and there is no option for it",
        }
