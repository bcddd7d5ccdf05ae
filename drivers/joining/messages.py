"""What a run and a client that joins it say to each other: one JSON record a message.

    client                       run
    Greeting             ->
                         <-      Welcome, or Refusal, after which the client ends
    Alive                <->     Alive           twice a second
                         <-      Start           a worker process, for each driver
                         <-      Stop, Kill
    Ended                ->                      one has ended, for this or another reason
                         <-      Over            the run ends
    Leaving              ->                      so does the client, for this or another reason

Secrets travel in Start alone.
"""

from __future__ import annotations

import platform
import re
from importlib.metadata import version
from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeInt, SecretStr, TypeAdapter, field_serializer

from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record

BEAT_S: Final = 0.5
"""How often each side says that it is alive."""
LARGEST_BYTES: Final = 256 * 1024
"""Of a message from a client."""
TAIL_CHARACTERS: Final = 16_000
"""So much of a worker process's log is sent when it has ended."""

Line = Annotated[str, Field(max_length=200, pattern=r"^[\x20-\x7e]*$")]
NAME: Final = r"^[a-z][a-z0-9-]{0,30}$"
ClientName = Annotated[str, Field(pattern=NAME)]
"""As hosts are named in hardware files."""
Address = Annotated[str, Field(max_length=64, pattern=r"^[0-9A-Fa-f.:]+$")]
Port = Annotated[int, Field(ge=1, le=65535)]


class Versions(Record):
    """What must be the same on both sides."""

    weighbridge: Line
    locust: Line

    @classmethod
    def here(cls) -> Versions:
        """Those that are installed."""
        return cls(weighbridge=version("weighbridge"), locust=version("locust"))

    @property
    def words(self) -> str:
        """In words."""
        return f"Weighbridge {self.weighbridge} with Locust {self.locust}"


class Greeting(Record):
    """A client wants to join."""

    kind: Literal["greeting"] = "greeting"
    name: ClientName
    versions: Versions
    cpus: Annotated[float, Field(gt=0, le=100_000)]
    """That its worker processes may use."""
    system: Line
    """Its kernel and Python."""

    @classmethod
    def from_here(cls, name: str, cpus: float) -> Greeting:
        """That of this machine."""
        system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
        return cls(name=name, versions=Versions.here(), cpus=cpus, system=system)

    @property
    def words(self) -> str:
        """The client, in words."""
        return f"joined, {self.cpus:g} CPUs, {self.system}"


class Alive(Record):
    """Nothing new."""

    kind: Literal["alive"] = "alive"


class Ended(Record):
    """A worker process has ended, with the end of its log."""

    kind: Literal["ended"] = "ended"
    program: NonNegativeInt
    code: Annotated[int, Field(ge=-64, le=255)]
    tail: Annotated[str, Field(max_length=TAIL_CHARACTERS)] = ""


class Leaving(Record):
    """The client ends, and with it all that it started."""

    kind: Literal["leaving"] = "leaving"


class Welcome(Record):
    """The client has joined; its run waits for `expected` in all."""

    kind: Literal["welcome"] = "welcome"
    joined: NonNegativeInt
    expected: NonNegativeInt


class Refusal(Record):
    """The client cannot join."""

    kind: Literal["refusal"] = "refusal"
    reason: Annotated[str, Field(max_length=1000)]


class Start(Record):
    """Start a worker process of a Locust master, with `line` on its stdin."""

    kind: Literal["start"] = "start"
    program: NonNegativeInt
    address: Address | None
    """None: where the client joined the run."""
    port: Port
    number: Annotated[int, Field(ge=0, le=100_000)]
    line: SecretStr
    """A `drivers.protocol.Joining`, with the target's keys."""

    @field_serializer("line", when_used="json")
    def _open(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class Stop(Record):
    """Close a worker process's stdin, which ends it."""

    kind: Literal["stop"] = "stop"
    program: NonNegativeInt


class Kill(Record):
    """Kill a worker process."""

    kind: Literal["kill"] = "kill"
    program: NonNegativeInt


class Over(Record):
    """The run has ended."""

    kind: Literal["over"] = "over"


FromClient = Greeting | Alive | Ended | Leaving
FromRun = Welcome | Refusal | Alive | Start | Stop | Kill | Over
FROM_CLIENT: Final[TypeAdapter[FromClient]] = TypeAdapter(
    Annotated[FromClient, Field(discriminator="kind")]
)
FROM_RUN: Final[TypeAdapter[FromRun]] = TypeAdapter(Annotated[FromRun, Field(discriminator="kind")])


def own_name(asked: str | None) -> str:
    """The name as asked, else one made from this machine's. Raises UsageError."""
    if asked is not None:
        if re.fullmatch(NAME, asked) is None:
            raise UsageError(
                f"--name: {asked!r} is not a valid name of a client",
                advice="Give up to 31 lower-case letters, digits and hyphens.",
            )
        return asked
    made = re.sub("[^a-z0-9-]+", "-", platform.node().partition(".")[0].lower()).strip("-")
    return (made if made[:1].isalpha() else f"client-{made}".rstrip("-"))[:31]


def refusal_of(theirs: Versions, ours: Versions) -> str:
    """Why a client of these versions cannot join; empty: it can."""
    if theirs == ours:
        return ""
    return f"the client has {theirs.words}, the run {ours.words}: install the same on both"
