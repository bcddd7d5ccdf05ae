"""What stores have in common that keep objects in files of XFS disks, and run no cluster beside."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.common.host import Host
from weighbridge.common.structure import ANSWERS, Structure
from weighbridge.gateways import daemon, program, xfs_disks
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.disk_space import DiskSpace, KeptBytes
from weighbridge.gateways.gateway import Rendered, RootImage, RunningGateway, Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.verify import verify

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

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All of them."""
        return tuple(one for stage in self.stages for one in stage)

    def start(self, client: Host, say: Say, names: Collection[str] | None = None) -> None:
        """Start its daemons, of hosts of these names only if they are given, until it is ready.

        Raises ServiceFailed or CommandFailed.
        """
        for stage in self.stages:
            mine = [one for one in stage if names is None or one.host.name in names]
            daemon.start(mine)
            await_ports(client, mine, say)
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
        """Nothing is known that it defers."""
        return ("nothing to wait for",)

    def drop_caches(self) -> tuple[str, ...]:
        """It caches objects only in the kernel's page cache."""
        return ("no cache of the store itself: objects are in the page cache",)

    def check(self) -> None:
        """See RunningGateway."""
        daemon.check(self._store.daemons)

    def daemons(self) -> tuple[Daemon, ...]:
        """See RunningGateway."""
        return self._store.daemons

    def disk_space(self) -> DiskSpace:
        """See RunningGateway. Raises TargetError."""
        return xfs_disks.space(self._store.stores, self._store.structure)

    def kept_bytes(self) -> KeptBytes:
        """See RunningGateway."""
        return xfs_disks.kept(self._store.stores)

    def start_again(self, names: Collection[str], say: Say) -> None:
        """See RunningGateway."""
        xfs_disks.mount_again([one for one in self._store.stores if one.name in names])
        self._store.start(self._client, say, names)


def version_of(host: Host, argv: Sequence[str], wanted: str, image: RootImage) -> str:
    """What a program of an image says of its version; raises UsageError unless `wanted` is in it,
    as on real hosts, on which nothing installs it.
    """
    (program_of,) = image.programs
    try:
        said = host.run(argv).stdout.strip()
    except CommandFailed as error:
        said = error.output.strip() or "it cannot be run"
    if wanted not in said:
        raise UsageError(
            f"{host.name}: {argv[0]} is not {program_of.version}: {said[:200]}",
            advice=f"lab hosts have it; on others put it into /usr/local/bin: {program_of.source}",
        )
    return said.splitlines()[0]
