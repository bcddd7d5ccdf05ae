"""The words between the conductor and a driver: orders as JSON lines on the driver's stdin, events
as JSON lines on its stdout.

    conductor                      driver
    Setup            ->
                     <-            Listening      (where there are clients beside the driver's own)
                     <-            Progress ...   Ready
    Prepare          ->
                     <-            Progress ...   Prepared
    Step             ->
                     <-            Progress ...   Measured
    Cleanup          ->
                     <-            Progress ...   Cleaned
    Age              ->
                     <-            Progress ...   Aged
    Quit             ->            (ends with exit status 0)

One order is answered before the next is sent; any order may be answered by `Failed`, after which
the driver ends with exit status 3. stdin closing means Quit at once. stderr is for people and goes
to a log. Secrets travel here and nowhere else: never on a command line.

Load from several clients: Locust's driver on the first is the master. It says where it listens, and
the conductor starts the stations of the other clients, `python -m weighbridge.drivers.locust
station ADDRESS PORT NUMBER` with the same Setup as a line on stdin. They end when their stdin
closes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    SecretStr,
    TypeAdapter,
    field_serializer,
    model_validator,
)

from weighbridge import suites
from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.record import Record
from weighbridge.results.record.measurement import Measurement
from weighbridge.suites import Workload


class RingDisk(Record):
    """One disk of one of Swift's object servers."""

    address: str
    port: Annotated[int, Field(ge=1, le=65535)]
    device: str


class Ring(Record):
    """Which disks have which partitions of objects, and what the paths of objects are hashed with
    (see _native.pyi).
    """

    disks: tuple[RingDisk, ...]
    table: tuple[tuple[NonNegativeInt, ...], ...]
    """Number of a disk for each replica (row) of each partition."""
    part_power: Annotated[int, Field(ge=1, le=32)]
    hash_prefix: SecretStr
    hash_suffix: SecretStr

    @field_serializer("hash_prefix", "hash_suffix", when_used="json")
    def _open(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class Setup(Record):
    """First order, once a deployment.

    A driver with settings of its own has a kind of Setup that holds them.
    """

    kind: Literal["setup"] = "setup"
    target: Endpoint
    ring: Ring | None = None
    """Where Swift's object servers are, when they are asked past any proxy: the path of the
    target's URL is then the account, there are no keys and no containers."""
    users: Literal["engine", "sdk"] = "engine"
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """Of each client: Locust's worker processes there, which are called stations."""
    clients: tuple[str, ...] = ()
    """Names of the hosts that make the load, the driver's own first; it has to be told them only
    where there are several.
    """
    listen: str | None = None
    """This host's address on the deployment's network, where stations on other clients find the
    driver; None: there are none.
    """
    bucket_prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{2,30}$")]
    """Buckets are named `{bucket_prefix}-{workload}-{index}`; nothing else is touched."""
    seed: NonNegativeInt
    request_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """What a request may take until it is given up: the suite's `timeout`."""

    @model_validator(mode="after")
    def _found(self) -> Setup:
        if len(set(self.clients)) != len(self.clients):
            raise ValueError("a client is there twice")
        if self.ring is not None and self.target.api != "swift":
            raise ValueError("a ring says where Swift's object servers are")
        if len(self.clients) > 1 and self.listen is None:
            raise ValueError("other clients must be told an address that the driver listens on")
        return self

    @property
    def api(self) -> Literal[ObjectApi, "object-server"]:
        """What the load talks to."""
        return self.target.api if self.ring is None else "object-server"

    @property
    def secrets(self) -> tuple[str, ...]:
        """All that opens anything, for who takes that out of texts."""
        return self.target.secrets

    @property
    def stations(self) -> int:
        """How many stations there are on all clients.

        The first `processes` of them are the driver's own.
        """
        return self.processes * max(1, len(self.clients))

    def client_of(self, station: int) -> str:
        """The name of the client that a station is on, counted from 0; empty where that was not
        told.
        """
        return self.clients[station // self.processes] if self.clients else ""


class Prepare(Record):
    """Make the buckets of a workload and, where it needs them, write its objects; what is there
    already is left.
    """

    kind: Literal["prepare"] = "prepare"
    workload: Workload
    parallel: Annotated[int, Field(ge=1)] = 8
    """Workers that write at once."""


class Step(Record):
    """Replay a prepared workload at one worker count."""

    kind: Literal["step"] = "step"
    workload: Workload
    workers: Annotated[int, Field(ge=1)]
    repeat: NonNegativeInt = 0
    """Goes into the seed of the sequence together with workload and workers, never into what is
    measured.
    """


class Cleanup(Record):
    """Delete what steps of this workload wrote (`written`), or its objects and buckets altogether
    (`all`).
    """

    kind: Literal["cleanup"] = "cleanup"
    workload: Workload
    what: Literal["written", "all"] = "written"


class AgeBuckets(Record):
    """Fill buckets `{bucket_prefix}-age-{index}` with `objects` objects and churn them; they are
    left there.
    """

    kind: Literal["age"] = "age"
    age: suites.Age
    objects: Annotated[int, Field(ge=1)]
    parallel: Annotated[int, Field(ge=1)] = 8
    """Workers that write or delete at once."""


class Quit(Record):
    """End."""

    kind: Literal["quit"] = "quit"


class Listening(Record):
    """Stations on other clients are waited for, at this port of the address that Setup told."""

    kind: Literal["listening"] = "listening"
    port: Annotated[int, Field(ge=1, le=65535)]
    key: SecretStr
    """Who does not have it is not let in."""

    @field_serializer("key", when_used="json")
    def _open(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class Joining(Record):
    """What a station is told by the first line of its stdin, by whoever starts it."""

    setup: Setup
    key: SecretStr
    """Of the driver, as Listening has it."""

    @field_serializer("key", when_used="json")
    def _open(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class Ready(Record):
    """Setup is done; `versions` names the libraries that make the load."""

    kind: Literal["ready"] = "ready"
    versions: dict[str, str]


class Progress(Record):
    """What is being done now, at least twice a second while an order runs.

    Rates are of the last second or so.
    """

    kind: Literal["progress"] = "progress"
    phase: Literal["prepare", "warm-up", "measure", "drain", "cleanup"]
    done: NonNegativeFloat
    """Seconds or objects done so far ..."""
    total: NonNegativeFloat
    """... of so many."""
    operations_per_s: NonNegativeFloat = 0.0
    bytes_per_s: NonNegativeFloat = 0.0
    errors: NonNegativeInt = 0


class KeptFile(Record):
    """A file of the tool that makes the load, kept beside the run as it is but for secrets: a
    configuration, an answer, a log.

    `text`, or where that would be long `packed`: its bytes by gzip in base64.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    text: str = ""
    packed: str | None = None


class Prepared(Record):
    """The workload's objects are there: all of them, or the driver would have answered Failed."""

    kind: Literal["prepared"] = "prepared"
    objects: NonNegativeInt
    bytes: NonNegativeInt
    seconds: NonNegativeFloat
    kept: tuple[KeptFile, ...] = ()


class Measured(Record):
    """One step is done."""

    kind: Literal["measured"] = "measured"
    measurement: Measurement
    kept: tuple[KeptFile, ...] = ()


class Cleaned(Record):
    """What was to be deleted is; `failed` objects could not be."""

    kind: Literal["cleaned"] = "cleaned"
    deleted: NonNegativeInt
    failed: NonNegativeInt = 0
    kept: tuple[KeptFile, ...] = ()


class AgeRound(Record):
    """One round of churn."""

    number: NonNegativeInt
    deleted: NonNegativeInt
    deleted_bytes: NonNegativeInt
    written: NonNegativeInt
    written_bytes: NonNegativeInt


class Aged(Record):
    """The store is filled and churned: all of it, or the driver would have answered Failed."""

    kind: Literal["aged"] = "aged"
    objects: NonNegativeInt
    """Objects that are there, and ..."""
    bytes: NonNegativeInt
    """... their bytes, without replicas."""
    filled_bytes: NonNegativeInt
    """Bytes of objects before the first round."""
    rounds: tuple[AgeRound, ...]
    seconds: NonNegativeFloat
    fingerprint: str
    """Sum over the place, name and size of each object that is there."""


class Failed(Record):
    """An order could not be done. `message` says what, where and what to do; it holds no secret."""

    kind: Literal["failed"] = "failed"
    message: str
    kept: tuple[KeptFile, ...] = ()


Order = Annotated[Setup | Prepare | Step | Cleanup | AgeBuckets | Quit, Field(discriminator="kind")]
Event = Annotated[
    Listening | Ready | Progress | Prepared | Measured | Cleaned | Aged | Failed,
    Field(discriminator="kind"),
]
ORDER: TypeAdapter[Order] = TypeAdapter(Order)
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
