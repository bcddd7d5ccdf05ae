"""What the two programs on a client host are given, and the lines that they print."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, field_validator

from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.record import Record
from weighbridge.drivers.survival.operation import Bucket, Operation
from weighbridge.drivers.survival.writing import parts_of, segments_container
from weighbridge.results.run.durability import Example, FoundObjects, Way
from weighbridge.suites.suite import LARGEST_BYTES

Endpoints = Annotated[tuple[Endpoint, ...], Field(min_length=1, max_length=2)]


class Kind(Record):
    """Objects that are alike."""

    api: ObjectApi
    size_bytes: int
    way: Way = "plain"


def refuse_unfit(endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    """Raise ValueError for endpoints that these programs cannot use."""
    if len({one.api for one in endpoints}) < len(endpoints):
        raise ValueError("an API is named twice")
    if any(one.addressing != "path" or one.addresses != "first" for one in endpoints):
        raise ValueError("endpoints are addressed by path, each with one address")
    return endpoints


class WriteOrder(Record):
    """What is to be written; it holds credentials."""

    endpoints: Endpoints
    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{1,39}$")]
    """Of the names of all containers."""
    containers: Annotated[int, Field(ge=1, le=64)] = 2
    """Of each API."""
    sizes: Annotated[
        tuple[Annotated[int, Field(ge=64, le=LARGEST_BYTES)], ...], Field(min_length=1)
    ]
    multipart: bool = True
    workers: Annotated[int, Field(ge=1, le=256)]
    overwrites: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    deletes: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    seed: Annotated[int, Field(ge=0)]
    timeout_s: Annotated[float, Field(gt=0)] = 30.0
    """After how long a request is given up."""
    drain_s: Annotated[float, Field(gt=0)] = 10.0
    """After how long every request is given up when the load stops."""

    _fit = field_validator("endpoints")(refuse_unfit)

    def containers_of(self, api: ObjectApi) -> tuple[str, ...]:
        return tuple(f"{self.prefix}-{api}-{number}" for number in range(self.containers))

    def all_containers(self, api: ObjectApi) -> tuple[str, ...]:
        """Those, and others that have parts of objects."""
        mine = self.containers_of(api)
        if api == "swift" and self.multipart:
            return (*mine, *map(segments_container, mine))
        return mine

    def kinds_of_workers(self) -> tuple[tuple[Kind, ...], ...]:
        """Each worker's kinds of objects, in turn; one in eight, but at least one, writes parts."""
        apis = [one.api for one in self.endpoints]
        plain = [Kind(api=api, size_bytes=size) for size in self.sizes for api in apis]
        parts = [
            Kind(api=api, size_bytes=sum(parts_of(api)), way="multipart")
            for api in apis
            if self.multipart
        ]
        if self.workers == 1:
            return ((*plain, *parts),)
        in_parts = max(1, self.workers // 8) if self.multipart else 0
        return (*_spread(plain, self.workers - in_parts), *_spread(parts, in_parts))


def _spread(kinds: list[Kind], workers: int) -> tuple[tuple[Kind, ...], ...]:
    if workers >= len(kinds):
        return tuple((kinds[worker % len(kinds)],) for worker in range(workers))
    return tuple(tuple(kinds[worker::workers]) for worker in range(workers))


class Ready(Record):
    """All containers exist."""

    kind: Literal["ready"] = "ready"
    containers: tuple[Bucket, ...]


class Ended(Record):
    """Nothing is outstanding; so many operations were printed."""

    kind: Literal["ended"] = "ended"
    operations: Annotated[int, Field(ge=0)]
    cpu_s: Annotated[float, Field(ge=0)]
    """CPU time that the program used from `go` on."""


class Failed(Record):
    """The program could not do what it was asked. The message contains no secret."""

    kind: Literal["failed"] = "failed"
    message: str


class InspectOrder(Record):
    """What is to be read; it holds credentials. Objects follow, a line each, then an empty line."""

    endpoints: Endpoints
    seed: Annotated[int, Field(ge=0)]
    """Of the order that they were written by."""
    threads: Annotated[int, Field(ge=1, le=64)] = 8
    within_s: Annotated[float, Field(gt=0)] = 60.0
    """How long reads and listings that fail are tried again."""
    most_s: Annotated[float, Field(gt=0)] = 1800.0
    """What has not been read by then is unreadable."""
    timeout_s: Annotated[float, Field(gt=0)] = 15.0
    list_again_s: Annotated[float, Field(ge=0)] = 5.0
    """A container whose listing has a finding is listed once more so much later."""

    _fit = field_validator("endpoints")(refuse_unfit)


class Reading(Record):
    """How many objects have been read, printed every second."""

    kind: Literal["reading"] = "reading"
    done: Annotated[int, Field(ge=0)]
    total: Annotated[int, Field(ge=0)]


class Found(Record):
    """An object with a finding."""

    kind: Literal["found"] = "found"
    example: Example


class Inspected(Record):
    """All objects were read, and all containers listed."""

    kind: Literal["inspected"] = "inspected"
    objects: tuple[FoundObjects, ...]
    notes: Annotated[tuple[str, ...], Field(max_length=50)] = ()
    """What was not as it should be, beside findings: listings that do not end."""
    reads_s: Annotated[float, Field(ge=0)]
    lists_s: Annotated[float, Field(ge=0)]
    cpu_s: Annotated[float, Field(ge=0)]


WriterLine = Annotated[Ready | Ended | Failed | Operation, Field(discriminator="kind")]
InspectorLine = Annotated[Reading | Found | Inspected | Failed, Field(discriminator="kind")]
WRITER_LINE: TypeAdapter[WriterLine] = TypeAdapter(WriterLine)
INSPECTOR_LINE: TypeAdapter[InspectorLine] = TypeAdapter(InspectorLine)
