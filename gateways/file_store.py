"""What stores have in common that keep objects in files of XFS disks, and run no cluster beside."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final, Generic, TypeVar, cast

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi, base_url
from weighbridge.common.errors import CommandFailed, TargetError, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import ANSWERS, Redundancy, Structure
from weighbridge.gateways import daemon, program
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import (
    DiskSpace,
    Gateway,
    KeptBytes,
    Program,
    Rendered,
    RunningGateway,
    Say,
    Site,
)
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import verify

_BELOW: Final = "/srv/disk"
_OPTIONS: Final = "noatime,nodiratime,logbufs=8"
_DF_LINE: Final = re.compile(r"\s*(\d{1,19})\s+(\d{1,19})\s+(\d{1,19})\s*")


def disk_folders(site: Site) -> tuple[str, ...]:
    """Where the disks of a host are mounted, in their order."""
    return tuple(f"{_BELOW}{number}" for number in range(len(site.disks)))


def make_disks(hosts: Sequence[Host]) -> None:
    """Make a file system on every disk of these hosts and mount it. Raises CommandFailed."""
    together([partial(_run, host, ("mkfs.xfs -q -f -K",)) for host in hosts])


def mount_again(hosts: Sequence[Host]) -> None:
    """Mount what `make` made on hosts that were without power. Raises CommandFailed."""
    together([partial(_run, host, ()) for host in hosts])


def _run(host: Host, before: Sequence[str]) -> None:
    lines = [
        line
        for disk, folder in zip(host.disks, disk_folders(host), strict=True)
        for line in (
            *(f"{one} {disk}" for one in before),
            f"mkdir -p {folder}",
            f"mount -t xfs -o {_OPTIONS} {disk} {folder}",
        )
    ]
    host.run(["sh", "-ec", "\n".join(lines)], timeout_s=120)


def disk_space_of(hosts: Sequence[Host], kept: Redundancy) -> DiskSpace:
    """Size and free space of all disks of these hosts. Raises TargetError."""
    rows = file_systems([(one, disk_folders(one)) for one in hosts])
    return DiskSpace(
        bytes=sum(size for size, _, _ in rows),
        free_bytes=sum(free for _, _, free in rows),
        kept=kept,
    )


def kept_on_disks(hosts: Sequence[Host]) -> KeptBytes:
    """What is used of them, inodes and folders included. Raises TargetError."""
    rows = file_systems([(one, disk_folders(one)) for one in hosts])
    used = sum(used for _, used, _ in rows)
    return KeptBytes(used, None, "XFS: used bytes of all disks, metadata included")


def file_systems(
    mounted: Sequence[tuple[Host, Sequence[str]]],
) -> list[tuple[int, int, int]]:
    """Size, used and free bytes of the file systems in these folders. Raises TargetError."""

    def asked(host: Host, mine: Sequence[str]) -> list[tuple[int, int, int]]:
        lines = host.run(["df", "--block-size=1", "--output=size,used,avail", *mine]).stdout
        rows = [_DF_LINE.fullmatch(line) for line in lines.splitlines()[1:]]
        known = [(int(row[1]), int(row[2]), int(row[3])) for row in rows if row]
        if len(known) != len(mine):
            raise TargetError(f"{host.name}: df does not say what its disks have")
        return known

    return [row for rows in together([partial(asked, *one) for one in mounted]) for row in rows]


Place = TypeVar("Place", bound=Record)
Settings = TypeVar("Settings", bound=Record)

HIDDEN: Final = "***"
"""For secrets, where files are shown."""
READY_S: Final = 120.0
"""How long a store may take until it says that it is ready: three-host stores took 8 s here."""


@dataclass(frozen=True)
class Readiness:
    """The URL that says that a store is ready: `text` is in its answer, at least `times`."""

    host: Host
    url: str
    text: str = ""
    times: int = 1

    def wait(self) -> None:
        """Return when it is. Raises CommandFailed with the last answer."""
        order = {
            "url": self.url,
            "text": self.text,
            "times": self.times,
            "deadline_s": READY_S,
        }
        self.host.run(
            program.ship(self.host, "weighbridge.gateways.ready"),
            stdin=json.dumps(order),
            timeout_s=READY_S + 30,
        )


@dataclass(frozen=True)
class FileStore:
    """A store whose daemons were put on hosts, in the order of their starts."""

    stages: tuple[tuple[Daemon, ...], ...]
    """Daemons of a stage start together, once those of the stage before answer."""
    ready: tuple[Readiness, ...]
    stores: tuple[Host, ...]
    """The hosts whose disks it has."""
    structure: Structure
    endpoint: Endpoint
    rendered: tuple[Rendered, ...]
    meet: Callable[[], None]
    """Has daemons that have started find each other."""

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        return tuple(one for stage in self.stages for one in stage)

    def start(self, client: Host, say: Say, names: Collection[str] | None = None) -> None:
        """Start its daemons, of hosts of these names only if they are given, until they listen and
        have met.

        Raises ServiceFailed or CommandFailed.
        """
        for stage in self.stages:
            mine = [one for one in stage if names is None or one.host.name in names]
            daemon.start(mine)
            await_ports(client, mine, say)
        self.meet()

    def await_ready(self) -> None:
        """Return when it says that it is ready. Raises ServiceFailed or CommandFailed."""
        try:
            for one in self.ready:
                one.wait()
        except CommandFailed:
            daemon.check(self.daemons)
            raise


class RunningFileStore(RunningGateway):
    """The verified store."""

    def __init__(self, store: FileStore, client: Host, say: Say, facts: Mapping[str, str]) -> None:
        """Verifies it. Raises ServiceFailed or VerificationFailed."""
        self._store = store
        self._client = client
        self.endpoints = (store.endpoint,)
        self.rendered = store.rendered
        with daemon.blaming(store.daemons):
            checks = verify(client, self.endpoints)
        verified = f"{len(checks)} operations over S3"
        say(f"verified: {verified}")
        answers = store.structure.answers
        self.facts = MappingProxyType(
            {
                **facts,
                **({} if answers is None else {"on disk": ANSWERS[answers]}),
                "verified": f"{verified}, reads byte for byte",
            }
        )

    def settle(self) -> tuple[str, ...]:
        return ("nothing to wait for",)

    def drop_caches(self) -> tuple[str, ...]:
        return ("no cache of the store itself: objects are in the page cache",)

    def check(self) -> None:
        daemon.check(self._store.daemons)

    def daemons(self) -> tuple[Daemon, ...]:
        return self._store.daemons

    def disk_space(self) -> DiskSpace:
        return disk_space_of(self._store.stores, self._store.structure)

    def kept_bytes(self) -> KeptBytes:
        return kept_on_disks(self._store.stores)

    def start_again(self, names: Collection[str], say: Say) -> None:
        mount_again([one for one in self._store.stores if one.name in names])
        self._store.start(self._client, say, names)
        self._store.await_ready()


class FileGateway(Gateway, Generic[Place, Settings]):
    """A kind of gateway of one program, on hosts whose disks it fills with files, over S3.

    A subclass says what is its own: `needs`, `structure`, `stages`, `ready`, `facts`, and of the
    rest below what is different.
    """

    place: Place
    settings: Settings
    says_version: ClassVar[tuple[str, ...]] = ("--version",)
    """What its program is asked for its version."""

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(place, self.Placement)  # noqa: S101 - the interface's contract
        assert isinstance(settings, self.Settings)  # noqa: S101
        self.release = release
        self.place, self.settings = cast("Place", place), cast("Settings", settings)

    @property
    @abstractmethod
    def port(self) -> int:
        """Of S3, on the host that clients use."""

    @abstractmethod
    def structure(self, disks: Mapping[str, int]) -> Structure:
        """See Gateway."""

    @abstractmethod
    def stages(
        self, hosts: Mapping[str, Host], endpoint: Endpoint
    ) -> tuple[tuple[Daemon, ...], ...]:
        """Its daemons, as of `FileStore`; `endpoint` has the user and key that they are to know."""

    @abstractmethod
    def ready(self, hosts: Mapping[str, Host]) -> tuple[Readiness, ...]:
        """What says that it is ready."""

    @abstractmethod
    def facts(self, structure: Structure) -> dict[str, str]:
        """Sentences of the report's table, without program and verification."""

    @property
    def program(self) -> Program:
        """The program of its image, which is all that it consists of."""
        (found,) = self.image.programs
        return found

    @property
    def wanted_version(self) -> str:
        return self.program.version.removeprefix("v")

    def new_keys(self) -> tuple[str, str]:
        """A user's name and secret key, in the form that it takes."""
        return "weighbridge", secrets.token_hex(20)

    def put_files(self, hosts: Mapping[str, Host], endpoint: Endpoint) -> None:
        """Write its configuration files, with secrets, before anything starts."""

    def meet(self, hosts: Mapping[str, Host]) -> None:
        """Have daemons find each other after each start, if they do not by themselves."""

    def set_up(self, store: FileStore, hosts: Mapping[str, Host]) -> None:
        """Have a store that has started for the first time ready. Raises as `await_ready`."""
        store.await_ready()

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("s3",)

    def cannot_restart(self) -> str:
        return ""

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """It has no files, unless a subclass has: options are on its command line."""
        return ()

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Raise UsageError unless the program is there: there are no files that it could check."""
        for name in self.needs():
            self._version(hosts[name])

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        structure = self.structure({name: len(host.disks) for name, host in hosts.items()})
        stores = tuple(hosts[name] for name in structure.stores)
        entrance = hosts[structure.entrances[0]]
        user, key = self.new_keys()
        url = base_url(entrance.address, self.port)
        endpoint = Endpoint(api="s3", url=url, user=user, key=SecretStr(key))
        say("creating file systems")
        make_disks(stores)
        self.put_files(hosts, endpoint)
        store = FileStore(
            stages=self.stages(hosts, endpoint),
            ready=self.ready(hosts),
            stores=stores,
            structure=structure,
            endpoint=endpoint,
            rendered=self.render(hosts),
            meet=partial(self.meet, hosts),
        )
        store.start(client, say)
        self.set_up(store, hosts)
        program = {"program": f"{self._version(entrance)}; {self.program.source}"}
        return RunningFileStore(store, client, say, {**self.facts(structure), **program})

    def _version(self, host: Host) -> str:
        """Its program's version; raises UsageError for another, as real hosts have their own."""
        name = self.program.name
        try:
            said = host.run([name, *self.says_version]).stdout.strip()
        except CommandFailed as error:
            said = error.output.strip() or "it cannot be run"
        if self.wanted_version not in said:
            raise UsageError(
                f"{host.name}: {name} is not {self.program.version}: {said[:200]}",
                advice="lab hosts have it; on others put it into /usr/local/bin: "
                f"{self.program.source}",
            )
        return said.splitlines()[0]


def service(
    name: str,
    argv: Sequence[str],
    *,
    folders: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Service:
    """A service that makes its folders first."""
    made = f"mkdir -p {shlex.join(folders)}; " if folders else ""
    return Service(name, ("sh", "-ec", f"{made}exec {shlex.join(argv)}"), env or {})
