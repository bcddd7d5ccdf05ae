"""The `versitygw` gateway: Versity S3 Gateway over the XFS file system of one disk."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import Field, SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi, base_url
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
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
)

_PROGRAM: Final = "versitygw"
_USER: Final = "weighbridge"
_HEALTH: Final = "/health"


class VersitygwPlacement(Record):
    """The host of the gateway, which keeps objects on its first disk."""

    server: str
    """The host of the gateway, with its disk."""


class VersitygwSettings(Record):
    """Settings of the gateway; it has none that decides what is synced."""

    port: Annotated[int, Field(ge=1, le=65535)] = 7070
    """Where it listens."""


class Versitygw(Gateway):
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

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(place, VersitygwPlacement)  # noqa: S101 - the interface's contract
        assert isinstance(settings, VersitygwSettings)  # noqa: S101
        self.release, self.place, self.settings = release, place, settings

    def apis(self) -> tuple[ObjectApi, ...]:
        """S3."""
        return ("s3",)

    def cannot_restart(self) -> str:
        """See Gateway: all it has is on its disk."""
        return ""

    def needs(self) -> Mapping[str, HostNeed]:
        """One host with a disk."""
        return {self.place.server: HostNeed(roles=("versitygw",), disks=1, tier="shared")}

    def structure(self, disks: Mapping[str, int]) -> Structure:
        """One copy on one disk. No version of it has a call that syncs."""
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

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """It has no files: options are on its command line, keys in its environment."""
        return ()

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Raise UsageError unless the program is there."""
        self._version(hosts[self.place.server])

    def _version(self, host: Host) -> str:
        return version_of(host, [_PROGRAM, "--version"], "1.8.0", self.releases[self.release])

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        """See Gateway."""
        host, key, port = hosts[self.place.server], secrets.token_hex(20), self.settings.port
        say("creating the file system")
        xfs_disks.make([host])
        disk = xfs_disks.folders(host)[0]
        at = f"{host.address}:{port}"
        words = f"--port {at} --iam-dir {disk}/iam --health {_HEALTH} --quiet posix {disk}/data"
        line = f"mkdir -p {disk}/iam {disk}/data; exec {_PROGRAM} {words}"
        keys = {"ROOT_ACCESS_KEY": _USER, "ROOT_SECRET_KEY": key}
        url = base_url(host.address, port)
        store = FileStore(
            stages=((Daemon(host, Service(_PROGRAM, ("sh", "-ec", line), keys), port),),),
            ready=(Readiness(host, f"{url}{_HEALTH}"),),
            stores=(host,),
            structure=self.structure({}),
            endpoint=Endpoint(api="s3", url=url, user=_USER, key=SecretStr(key)),
            rendered=(),
        )
        store.start(client, say)
        return RunningFileStore(store, client, say, self._facts(host))

    def _facts(self, host: Host) -> dict[str, str]:
        return {
            "gateway": f"Versity S3 Gateway, release {self.release}, posix backend on XFS",
            "program": f"{self._version(host)}; {self.releases[self.release].programs[0].source}",
            "daemons": f"one on {host.name}, on its first disk",
            "replicas": "1: it copies nothing",
            "acknowledgement": "a write is acknowledged when it is in the page cache of its host; "
            "nothing is synced, at no size, and there is no option for it",
        }
