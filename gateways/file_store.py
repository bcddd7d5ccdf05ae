"""What stores have in common that keep objects in files of XFS disks, and run no cluster beside.

A store is a class below `FileStore`, which says what is its own: `roles`, `stages`, `facts`, what
is on disk when it answers, and of the rest what is different.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

from pydantic import SecretStr

from weighbridge.common.credential import HIDDEN
from weighbridge.common.endpoint import Endpoint, ObjectApi, base_url
from weighbridge.common.errors import CommandFailed, TargetError, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import ANSWERS, Answers, Fragments, Structure
from weighbridge.gateways import program
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import (
    DiskSpace,
    Gateway,
    HostNeed,
    KeptBytes,
    Program,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
    Tier,
    Unfit,
)
from weighbridge.gateways.running import RunningStore, StorePlan, run_scripts
from weighbridge.gateways.together import together
from weighbridge.gateways.verify import OperationCheck

_BELOW: Final = "/srv/disk"
_OPTIONS: Final = "noatime,nodiratime,logbufs=8"
_DF_LINE: Final = re.compile(r"\s*(\d{1,19})\s+(\d{1,19})\s+(\d{1,19})\s*")


def disk_folders(site: Site) -> tuple[str, ...]:
    """Where the disks of a host are mounted, in their order."""
    return tuple(f"{_BELOW}{number}" for number in range(len(site.disks)))


def mount_script(host: Host, *, make: bool = False) -> str:
    """A script that mounts the file systems of all disks of a host; `make` has them made first."""
    lines = []
    for disk, folder in zip(host.disks, disk_folders(host), strict=True):
        if make:
            lines.append(f"mkfs.xfs -q -f -K {disk}")
        lines += [f"mkdir -p {folder}", f"mount -t xfs -o {_OPTIONS} {disk} {folder}"]
    return "\n".join(lines)


def disk_usage(mounted: Sequence[tuple[Host, Sequence[str]]]) -> tuple[int, int, int]:
    """Size, used and free bytes of all file systems in these folders. Raises TargetError."""
    df = ("df", "--block-size=1", "--output=size,used,avail")
    answers = together([partial(host.run, [*df, *folders]) for host, folders in mounted])
    totals = [0, 0, 0]
    for (host, folders), answer in zip(mounted, answers, strict=True):
        rows = [_DF_LINE.fullmatch(line) for line in answer.stdout.splitlines()[1:]]
        if len(rows) != len(folders) or None in rows:
            raise TargetError(f"{host.name}: df does not say what its disks have")
        for row in rows:
            for column, count in enumerate(row.groups() if row else ()):
                totals[column] += int(count)
    size_bytes, used_bytes, free_bytes = totals
    return size_bytes, used_bytes, free_bytes


READY_S: Final = 120.0
"""How long a store may take until it says that it is ready: three-host stores took 8 s here."""

Hosts = Mapping[str, Host]
"""By name."""
Stages = Sequence[Sequence[Daemon]]
"""Daemons in the order of their starts: those of a stage start together, once those of the stage
before answer.
"""


def release_of(name: str, program: Program) -> Mapping[str, RootImage]:
    """The only release of a store, by its name: Debian with this program."""
    image = RootImage(name=name, suite="bookworm", packages=("python3",), programs=(program,))
    return {name: image}


def run_by_order(host: Host, module: str, order: Mapping[str, object]) -> None:
    """Run a program of this suite on a host, which ends within READY_S. Raises CommandFailed."""
    stdin = json.dumps({**order, "deadline_s": READY_S})
    host.run(program.ship(host, module), stdin=stdin, timeout_s=READY_S + 30)


def folder_daemon(
    host: Host, name: str, port: int, line: str, folders: Sequence[str] = (), **env: str
) -> Daemon:
    """A daemon by its command line, as a shell reads it; its folders are made first."""
    before = f"mkdir -p {shlex.join(folders)}; " if folders else ""
    command = ("sh", "-ec", f"{before}exec {shlex.join(shlex.split(line))}")
    return Daemon(host, Service(name, command, env), port)


@dataclass(frozen=True)
class Readiness:
    """The URL that says that a store is ready: `text` is in its answer, at least `times`."""

    host: Host
    url: str
    text: str = ""
    times: int = 1

    def wait(self) -> None:
        """Return when it is. Raises CommandFailed with the last answer."""
        wanted = {"url": self.url, "text": self.text, "times": self.times}
        run_by_order(self.host, "weighbridge.gateways.await_answers", {"wanted": [wanted]})


class FileStore(Gateway):
    """A kind of gateway of one program, on hosts whose disks it fills with files, over S3."""

    place: Any
    settings: Any
    roles: ClassVar[Mapping[str, Tier]]
    """Fields of `Placement`, each with what its hosts spend their CPU on. Hosts of the first one
    keep objects; clients use the first host of the last.
    """
    copied: ClassVar[tuple[str, str] | None] = None
    """The setting with the number of copies, and the word for hosts that have one each; None: it
    has one copy.
    """
    copied_by: ClassVar[Literal["gateway", "store"]] = "gateway"
    """As of `Structure`."""
    answers: Answers = "data on disk"
    """What is on disk when it acknowledges a write, with all of `syncs`."""
    syncs: ClassVar[tuple[str, ...]] = ()
    """Settings without any of which it answers from the page cache."""
    port: int
    """Of S3, on the host that clients use."""
    health_path: ClassVar[str] = "/health"
    """Of S3's port: answers when it is ready."""
    says_version: ClassVar[tuple[str, ...]] = ("--version",)
    """What its program is asked for its version."""

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """Raises Unfit when there are fewer hosts than copies."""
        self.release, self.place, self.settings = release, place, settings
        (self.program,) = self.image.programs
        self._hosts: dict[str, tuple[str, ...]] = {}
        for role in self.roles:
            names = getattr(place, role)
            self._hosts[role] = (names,) if isinstance(names, str) else names
        by_role = list(self._hosts.values())
        self.keepers, self.entrance = by_role[0], by_role[-1][0]
        self.hosts = tuple(dict.fromkeys((self.entrance, *self.keepers)))
        if not all(getattr(settings, name) for name in self.syncs):
            self.answers = "page cache"
        if self.copied is not None and len(self.keepers) < self.copies:
            setting, what = self.copied
            raise Unfit(
                f"{self.copies} copies on separate hosts need as many {what}, not "
                f"{len(self.keepers)}: add hosts, or set {setting} to {len(self.keepers)}",
                ("settings", setting),
            )

    @abstractmethod
    def stages(self, hosts: Hosts, endpoint: Endpoint) -> Stages:
        """Its daemons; `endpoint` has the user and key that they are to know."""

    @abstractmethod
    def facts(self, structure: Structure) -> dict[str, str]:
        """Sentences of the report's table, without program and verification."""

    def files(self, site: Site, user: str, key: str, more: tuple[str, str]) -> Mapping[str, str]:
        """Its configuration files on a host by path; `more` are secrets of the hosts' own."""
        return {}

    def ready(self, hosts: Hosts) -> tuple[Readiness, ...]:
        """What says that it is ready."""
        host = hosts[self.entrance]
        return (Readiness(host, f"{base_url(host.address, self.port)}{self.health_path}"),)

    def fragments(self, disks: int) -> Fragments | None:
        """How it cuts objects over so many disks; None: it does not."""
        return None

    @property
    def wanted_version(self) -> str:
        """What its program says of its version, among other words."""
        return self.program.version.removeprefix("v")

    def new_keys(self) -> tuple[str, str]:
        """A user's name and secret key, in the form that it takes."""
        return "weighbridge", secrets.token_hex(20)

    def meet(self, hosts: Hosts) -> None:
        """Have daemons find each other after each start, if they do not by themselves."""

    def set_up(self, running: RunningFileStore, hosts: Hosts) -> None:
        """Have a store that has started for the first time ready. Raises as `await_ready`."""
        running.await_ready()

    @property
    def copies(self) -> int:
        """How many of each object it keeps."""
        return 1 if self.copied is None else int(getattr(self.settings, self.copied[0]))

    def needs(self) -> Mapping[str, HostNeed]:
        roles: dict[str, list[str]] = {}
        for role, names in self._hosts.items():
            for name in names:
                roles.setdefault(name, []).append(role)
        needs = {}
        for name, own in roles.items():
            tiers = {self.roles[role] for role in own}
            needs[name] = HostNeed(
                # The servers of a store that has but one kind have its name.
                roles=(self.kind,) if len(self.roles) == 1 else tuple(own),
                disks=int(name in self.keepers),
                tier=tiers.pop() if len(tiers) == 1 else "shared",
            )
        return needs

    def structure(self, disks: Mapping[str, int]) -> Structure:
        used = {name: tuple(range(disks.get(name, 0))) for name in self.keepers}
        return Structure(
            entrances=(self.entrance,),
            gateways=(self.entrance,),
            stores=self.keepers,
            disks=used,
            replicas=self.copies,
            fragments=self.fragments(sum(len(numbers) for numbers in used.values())),
            answers=self.answers,
            copied_by=self.copied_by,
        )

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("s3",)

    def cannot_restart(self) -> str:
        return ""

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return tuple(
            Rendered(host=name, path=path, text=text)
            for name in self.hosts
            for path, text in self.files(sites[name], HIDDEN, HIDDEN, (HIDDEN, HIDDEN)).items()
        )

    def preflight(self, hosts: Hosts, say: Say) -> None:
        """Raise UsageError unless the program is there: there are no files that it could check."""
        for name in self.needs():
            self._version(hosts[name])

    def bring_up(self, hosts: Hosts, client: Host, say: Say) -> RunningGateway:
        entrance = hosts[self.entrance]
        (user, key), more = self.new_keys(), (secrets.token_hex(32), secrets.token_hex(32))
        url = base_url(entrance.address, self.port)
        endpoint = Endpoint(api="s3", url=url, user=user, key=SecretStr(key))
        say("creating file systems")
        run_scripts({hosts[name]: mount_script(hosts[name], make=True) for name in self.keepers})
        for name in self.hosts:
            for path, text in self.files(hosts[name], user, key, more).items():
                hosts[name].put(path, text, mode=0o600)
        program = f"{self._version(entrance)}; {self.program.source}"
        running = RunningFileStore(self, hosts, client, endpoint, program)
        running.start(running.daemons(), say)
        self.set_up(running, hosts)
        running.describe(running.verify())
        say(f"verified: {running.facts['verified']}")
        return running

    def _version(self, host: Host) -> str:
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


class RunningFileStore(RunningStore[FileStore]):
    """The store on its hosts: `start`, have it ready, then `describe`."""

    def __init__(
        self, store: FileStore, hosts: Hosts, client: Host, endpoint: Endpoint, program: str
    ) -> None:
        self.endpoints = (endpoint,)
        super().__init__(store, hosts, client)
        self._program = program
        self._keepers = [hosts[name] for name in store.keepers]
        self._structure = store.structure({name: len(host.disks) for name, host in hosts.items()})
        self.rendered = store.render(hosts)

    def planned(self, gateway: FileStore) -> StorePlan[FileStore]:
        return StorePlan(gateway, gateway.stages(self.hosts, *self.endpoints))

    def start(self, daemons: Collection[Daemon], say: Say) -> None:
        super().start(daemons, say)
        self.plan.gateway.meet(self.hosts)

    def await_ready(self) -> None:
        """Return when it says that it is ready. Raises ServiceFailed or CommandFailed."""
        try:
            for readiness in self.plan.gateway.ready(self.hosts):
                readiness.wait()
        except CommandFailed:
            self.check()
            raise

    def describe(self, checks: Sequence[OperationCheck]) -> None:
        self.facts = MappingProxyType(
            {
                **self.plan.gateway.facts(self._structure),
                "program": self._program,
                "on disk": ANSWERS[self.plan.gateway.answers],
                "verified": f"{len(checks)} operations over S3, reads byte for byte",
            }
        )

    def settle(self) -> tuple[str, ...]:
        return ("nothing to wait for",)

    def drop_caches(self) -> tuple[str, ...]:
        return ("no cache of the store itself: objects are in the page cache",)

    def disk_space(self) -> DiskSpace:
        size, _, free = disk_usage([(host, disk_folders(host)) for host in self._keepers])
        return DiskSpace(bytes=size, free_bytes=free, kept=self._structure)

    def kept_bytes(self) -> KeptBytes:
        _, used, _ = disk_usage([(host, disk_folders(host)) for host in self._keepers])
        return KeptBytes(used, None, "XFS: used bytes of all disks, metadata included")

    def mounts(self, host: Host) -> str:
        return mount_script(host) if host in self._keepers else ""

    def start_again(self, names: Collection[str], say: Say) -> None:
        super().start_again(names, say)
        self.await_ready()
