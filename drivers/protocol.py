"""The protocol between the conductor and a driver: commands as JSON lines on the driver's stdin,
events as JSON lines on its stdout.

    conductor                      driver
    Setup            ->
                     <-            Listening      (only with more clients than the driver's own)
                     <-            Progress ...   Ready
    Prepare          ->
                     <-            Progress ...   Prepared
    Step, Open       ->
                     <-            Progress ...   Measured
    Cleanup          ->
                     <-            Progress ...   Cleaned
    Age              ->
                     <-            Progress ...   Aged
    Quit             ->            (ends with exit status 0)

One command is answered before the next is sent, but Open belongs to a step. Any may be answered by
`Failed`, after which the driver ends with exit status 3. A closed stdin means Quit at once. stderr
is for people and goes to a log. Secrets travel here and nowhere else: never on a command line.

With several clients, Locust's driver on the first one is the master. It sends the port it listens
on, and the conductor starts the worker processes of the other clients, `python -m
weighbridge.drivers.locust worker ADDRESS PORT NUMBER`, with the same Setup as a line on stdin. They
end when their stdin closes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    SecretStr,
    TypeAdapter,
    model_validator,
)

from weighbridge import suites
from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.errors import DriverError
from weighbridge.common.record import Record
from weighbridge.results.run.step import Measurement
from weighbridge.suites import Workload

SentSecret = Annotated[
    SecretStr, PlainSerializer(lambda secret: secret.get_secret_value(), when_used="json")
]
"""A secret that is itself in JSON, since it is sent by a pipe."""


class RingDisk(Record):
    """One disk of a Swift object server."""

    address: str
    port: Annotated[int, Field(ge=1, le=65535)]
    device: str


class Ring(Record):
    """Which disks hold which partitions, and how paths of objects are hashed (see _native.pyi)."""

    disks: tuple[RingDisk, ...]
    table: tuple[tuple[NonNegativeInt, ...], ...]
    """For each replica (row) of each partition, the index of a disk."""
    part_power: Annotated[int, Field(ge=1, le=32)]
    hash_prefix: SentSecret
    hash_suffix: SentSecret


class Setup(Record):
    """The first command, once a deployment. A driver's own settings are in a subclass."""

    kind: Literal["setup"] = "setup"
    target: Endpoint
    ring: Ring | None = None
    """Where Swift's object servers are, when they are measured without a proxy: the path of the
    target's URL is then the account, and there are no keys and no containers.
    """
    users: Literal["engine", "sdk"] = "engine"
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """Locust's worker processes on each client."""
    clients: tuple[str, ...] = ()
    """Names of the hosts that generate load, the driver's own first; needed only where there are
    several.
    """
    listen: str | None = None
    """This host's address on the deployment's network, where worker processes on other clients
    connect to the driver; None: there are none.
    """
    bucket_prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{2,30}$")]
    """Buckets are named `{bucket_prefix}-{workload}-{index}`; nothing else is touched."""
    seed: NonNegativeInt
    request_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """After how long a request is given up: the suite's `timeout`."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Setup:
        if len(set(self.clients)) != len(self.clients):
            raise ValueError("a client is listed twice")
        if self.ring is not None and self.target.api != "swift":
            raise ValueError("a ring is for Swift's object servers only")
        if len(self.clients) > 1 and self.listen is None:
            raise ValueError("with several clients, `listen` must be set")
        return self

    @property
    def api(self) -> Literal[ObjectApi, "object-server"]:
        return self.target.api if self.ring is None else "object-server"

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.target.secrets

    @property
    def worker_processes(self) -> int:
        """Locust's worker processes on all clients; the first `processes` are the driver's own."""
        return self.processes * max(1, len(self.clients))

    def client_of(self, number: int) -> str:
        """The client of a worker process, counted from 0; "" where clients have no names."""
        return self.clients[number // self.processes] if self.clients else ""


class Prepare(Record):
    """Make a workload's buckets and, where it needs them, its objects; existing ones are kept."""

    kind: Literal["prepare"] = "prepare"
    workload: Workload
    parallel: Annotated[int, Field(ge=1)] = 8
    """Parallel writers at first; of many objects, more follow while the store gets faster."""


class Step(Record):
    """Replay a prepared workload at one worker count."""

    kind: Literal["step"] = "step"
    workload: Workload
    workers: Annotated[int, Field(ge=1)]
    repeat: NonNegativeInt = 0
    """Part of the seed of the request sequence, with workload and workers; never of the result."""
    settle_s: NonNegativeFloat = 0.0
    """How long the window waits for Open after its warm-up; 0: it does not."""


class Open(Record):
    """In a step: its store has settled, and its window may open. Elsewhere it says nothing."""

    kind: Literal["open"] = "open"


class Cleanup(Record):
    """Delete what the workload's steps wrote (`written`), or all objects and buckets (`all`)."""

    kind: Literal["cleanup"] = "cleanup"
    workload: Workload
    what: Literal["written", "all"] = "written"


class AgeBuckets(Record):
    """Fill buckets `{bucket_prefix}-age-{index}` with objects and churn them; they remain."""

    kind: Literal["age"] = "age"
    age: suites.Age
    objects: Annotated[int, Field(ge=1)]
    parallel: Annotated[int, Field(ge=1)] = 8
    """Parallel writers, and parallel deleters."""


class Quit(Record):
    """End with exit status 0."""

    kind: Literal["quit"] = "quit"


class Listening(Record):
    """The driver waits for worker processes of other clients, at this port of Setup's `listen`."""

    kind: Literal["listening"] = "listening"
    port: Annotated[int, Field(ge=1, le=65535)]
    key: SentSecret
    """Without it nobody is let in."""


class Joining(Record):
    """The first line on the stdin of a worker process, from the process that starts it."""

    setup: Setup
    key: SentSecret
    """The driver's, as in Listening."""


class Ready(Record):
    """Setup succeeded; `versions` are of the libraries that make the load."""

    kind: Literal["ready"] = "ready"
    versions: dict[str, str]


class Progress(Record):
    """What is running now, sent at least twice a second. Rates are of about the last second."""

    kind: Literal["progress"] = "progress"
    phase: Literal["prepare", "warm-up", "measure", "drain", "cleanup"]
    done: NonNegativeFloat
    """Seconds or objects done, out of `total`."""
    total: NonNegativeFloat
    operations: NonNegativeInt = 0
    """Operations of the step so far that succeeded."""
    operations_per_s: NonNegativeFloat = 0.0
    bytes_per_s: NonNegativeFloat = 0.0
    errors: NonNegativeInt = 0


KEPT_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


class KeptFile(Record):
    """A file kept with the run, without secrets, as `text` or `packed`: gzipped, in base64."""

    name: Annotated[str, Field(pattern=rf"^{KEPT_NAME}$")]
    text: str = ""
    packed: str | None = None


class Prepared(Record):
    """All of the workload's objects exist (otherwise the driver answers Failed)."""

    kind: Literal["prepared"] = "prepared"
    objects: NonNegativeInt
    bytes: NonNegativeInt
    seconds: NonNegativeFloat
    kept: tuple[KeptFile, ...] = ()


class Measured(Record):
    """A step was measured."""

    kind: Literal["measured"] = "measured"
    measurement: Measurement
    kept: tuple[KeptFile, ...] = ()


class Cleaned(Record):
    """The objects were deleted, except for `failed` of them."""

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
    """The store was filled and churned completely (otherwise the driver answers Failed)."""

    kind: Literal["aged"] = "aged"
    objects: NonNegativeInt
    """Objects that exist now."""
    bytes: NonNegativeInt
    """Their bytes, without replicas."""
    filled_bytes: NonNegativeInt
    """Bytes of objects before the first round."""
    rounds: tuple[AgeRound, ...]
    seconds: NonNegativeFloat
    fingerprint: str
    """Sum over bucket, name and size of each object that exists."""


class Failed(Record):
    """A command failed. `message` says what, where and what to do; it contains no secret."""

    kind: Literal["failed"] = "failed"
    message: str
    kept: tuple[KeptFile, ...] = ()


DriverCommand = Annotated[
    Setup | Prepare | Step | Cleanup | AgeBuckets | Quit, Field(discriminator="kind")
]
Event = Annotated[
    Listening | Ready | Progress | Prepared | Measured | Cleaned | Aged | Failed,
    Field(discriminator="kind"),
]
DRIVER_COMMAND: TypeAdapter[DriverCommand] = TypeAdapter(DriverCommand)
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


OnProgress = Callable[[Progress], bool | None]
"""Called with every Progress event, in the conductor's own thread; True: send Open."""
OPEN_LINE: Final = Open().model_dump_json().encode()


class DriverFailure(DriverError):
    """A command failed; `kept` are files of the driver's tool about it, to be kept with the run."""

    def __init__(self, message: str, *, advice: str = "", kept: tuple[KeptFile, ...] = ()) -> None:
        super().__init__(message, advice=advice)
        self.kept = kept


class Driver(Protocol):
    """A driver that is set up, and a context manager that ends all it started.

    It answers one command after the other. Every command raises DriverError (DriverFailure, where
    files are to be kept) when it fails; after that only `close` may be called.
    """

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        """Make the workload's buckets and objects; all of them exist when this returns."""

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        """Run and measure one step."""

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """Delete what steps wrote, or all of the workload's objects and buckets."""

    def quit(self) -> None:
        """End an idle driver, and check that it ended well."""

    def close(self) -> None:
        """End it whatever it is doing."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(self, *_: object) -> None:
        """Close it."""
