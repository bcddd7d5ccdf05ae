"""Models of disks: how long a lab host's disk takes, by figures of data sheets.

The program `vdisk` (topologies/lab/vdisk) makes the times of these figures; what it does with each
is in `platter.rs`, `head.rs` and `flash.rs`. All figures of a model can be set in a hardware file:
`model: {base: spinning-7200, seek_avg: 9ms}`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import TargetError
from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record

Rate = Annotated[Bytes, Field(ge=100_000, le=10**12)]
"""Bytes a second."""
Latency = Annotated[Seconds, Field(le=1.0)]
Page = Annotated[Bytes, Field(ge=512, le=16 * 2**20)]


class DiskModel(Record):
    """What every model has."""

    base: str
    """The shipped model that the others' figures are from."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014
    """Decides the phase of the platters, and how each page of flash differs from the mean."""
    queue_depth: Annotated[int, Field(ge=1, le=65536)] = 32
    """Requests that the disk knows of at once; SATA's native command queueing has 32."""
    write_cache: Annotated[Bytes, Field(le=4 * 2**30)]
    """A volatile cache for writes, which a flush empties; 0: writes are on the media at once."""
    link_rate: Rate | None
    """Rate of the interface; None: no limit."""
    command: Latency
    """Time of the disk's electronics for each request."""
    overhead: Annotated[Seconds, Field(le=0.01)] = 50e-6
    """What loop device and FUSE take on this machine for a request. It is part of the service time,
    not added to it; `benchmarks/disk_models.py` measures it. A disk answers no faster than this.
    """


class SpinningDisk(DiskModel):
    """One head over turning platters.

    A request waits for seek and rotation, then takes its bytes' time below the head. The queue is
    served by shortest positioning time first. What continues the last read needs no positioning.
    The stroke is over the disk's own size, however small: without `scatter`, data on a tenth of it
    have short seeks.
    """

    kind: Literal["spinning"] = "spinning"
    write_cache_runs: Annotated[int, Field(ge=1, le=10**9)]
    """Separate places of which the cache keeps writes: the more, the shorter the way between two.
    """
    rpm: Annotated[float, Field(ge=600, le=60_000)]
    seek_track: Latency
    """To the next track."""
    seek_avg: Latency
    """The mean between random places."""
    seek_full: Latency
    """Over all tracks."""
    transfer_rate: Rate
    """Sustained, on the outermost track, which has the first bytes."""
    transfer_rate_inner: Rate
    """Sustained, on the innermost; in between it falls evenly."""
    read_ahead: Annotated[Bytes, Field(le=2**30)]
    """How far the disk reads on while nothing else is asked of it."""
    scatter: Annotated[Bytes, Field(ge=64 * 2**10)] | None = None
    """Consecutive bytes that lie together; the next ones lie elsewhere on the platters, as on a
    disk in use, of which the file is a sample. None: all lie in order, as on an empty disk.
    """
    longest_wait: Annotated[Seconds, Field(ge=0.001, le=3600)]
    """A request that has waited this long is served next, however far it is."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.seek_track <= self.seek_avg <= self.seek_full:
            raise ValueError("seek_track, seek_avg and seek_full must not decrease in this order")
        if self.transfer_rate_inner > self.transfer_rate:
            raise ValueError("transfer_rate_inner is above transfer_rate, that of the outer tracks")
        return self


class FlashDisk(DiskModel):
    """Flash memory: channels in parallel, then one link.

    Random reads a second are at most channels / read_latency. Writes into the cache take
    `write_latency` and the link's time; sustained, random writes a second are channels /
    program_latency, and sequential bytes a second program_bytes times that.
    """

    kind: Literal["flash"] = "flash"
    channels: Annotated[int, Field(ge=1, le=1024)]
    """Dies that work in parallel."""
    read_latency: Latency
    """The mean of one page."""
    read_bytes: Page
    """A page: a larger read takes several, on several channels."""
    write_latency: Latency
    """Of a write into the cache, instead of `command`."""
    program_latency: Latency
    """How long a write occupies a channel, on average, with the cleaning up that it causes."""
    program_bytes: Page
    """Consecutive bytes that one program writes."""
    variation: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Latencies differ evenly by up to this share of the mean."""


DISK_MODELS: Final[Mapping[str, DiskModel]] = {
    one.base: one
    for one in (
        # Seagate Constellation ES.3 product manual (100671510, Rev. C): 7200 rpm, 4.16 ms mean
        # rotational latency, 83 to 175 MB/s sustained, 600 MB/s interface; its data sheet
        # (DS1769): 128 MB cache, mean seek 8.5 ms. Track and full seeks are not in either: 0.8 and
        # 16 ms are usual for such disks. Half of the cache is taken to be for writes. Command
        # overhead of 0.1 ms and the wait of 0.5 s: assumed.
        SpinningDisk(
            base="spinning-7200",
            write_cache=64 * 2**20,
            write_cache_runs=128,
            link_rate=600 * 10**6,
            command=100e-6,
            rpm=7200,
            seek_track=0.8e-3,
            seek_avg=8.5e-3,
            seek_full=16e-3,
            transfer_rate=175 * 10**6,
            transfer_rate_inner=83 * 10**6,
            read_ahead=8 * 2**20,
            longest_wait=0.5,
        ),
        # Intel SSD DC S3500, 480 GB, product specification (328860): 75,000 random reads and
        # 11,000 random writes of 4 KiB a second, 500 and 410 MB/s, write latency 65 us. 8 channels
        # (of its controller) give the latencies of one page; the cache of 8 MiB is assumed.
        FlashDisk(
            base="sata-ssd",
            write_cache=8 * 2**20,
            link_rate=500 * 10**6,
            command=5e-6,
            write_latency=57e-6,
            channels=8,
            read_latency=107e-6,
            read_bytes=16 * 2**10,
            program_latency=727e-6,
            program_bytes=36 * 2**10,
        ),
        # Intel SSD DC P4500, 2 TB, as in Lenovo's product guide of these disks: 490,000 random
        # reads and 38,000 random writes of 4 KiB a second, 3.2 and 1.05 GB/s, latencies of random
        # reads 85 us and of writes 20 us. The channels follow from rate and latency; the cache of
        # 16 MiB is assumed. NVMe queues are deeper than SATA's.
        FlashDisk(
            base="nvme",
            queue_depth=1024,
            write_cache=16 * 2**20,
            link_rate=3200 * 10**6,
            command=0.0,
            write_latency=19e-6,
            channels=42,
            read_latency=84e-6,
            read_bytes=16 * 2**10,
            program_latency=1.105e-3,
            program_bytes=28 * 2**10,
        ),
        # No disk: it takes no time and keeps nothing back, to measure what its program costs.
        FlashDisk(
            base="ideal",
            queue_depth=65536,
            write_cache=0,
            link_rate=None,
            command=0.0,
            write_latency=0.0,
            overhead=0.0,
            channels=1,
            read_latency=0.0,
            read_bytes=2**20,
            program_latency=0.0,
            program_bytes=2**20,
            variation=0.0,
        ),
    )
}
"""The shipped models by name."""


def _complete(value: object) -> object:
    given: dict[str, Any] | None = {"base": value} if isinstance(value, str) else None
    if isinstance(value, dict):
        given = value
    if given is None:
        return value
    base = given.get("base")
    if not isinstance(base, str) or base not in DISK_MODELS:
        if "base" not in given:
            raise ValueError(f"a model needs its base: one of {', '.join(DISK_MODELS)}")
        raise ValueError(f"no model {base!r}{did_you_mean(str(base), list(DISK_MODELS))}")
    return {**DISK_MODELS[base].model_dump(), **given}


AnyDiskModel = Annotated[
    Annotated[SpinningDisk | FlashDisk, Discriminator("kind")], BeforeValidator(_complete)
]
"""A model as hardware files have it: `spinning-7200`, or `{base: spinning-7200, rpm: 5400}`."""


def described(model: DiskModel) -> str:
    """The model and its figures in words, such as `spinning-7200 (rpm 7200, ...)`."""
    figures = model.model_dump(exclude={"base", "kind"})
    return f"{model.base} ({', '.join(f'{key} {value}' for key, value in figures.items())})"


PROGRAM: Final = Path(__file__).with_name("lab") / "vdisk_server"
"""It serves disks and simulates them, so that both take the same times."""
MOST_PER_S: Final = 4000.0
"""With more requests a second, this machine's CPU and not the model may decide how many there are,
on several disks at once: nothing is expected then.
"""
SLOWEST_BYTES_S: Final = 50e6
"""A cache is taken to be full after as long as it takes at this rate."""


class DiskLoad(Record):
    """Requests to the first `span` bytes of a disk, `depth` of them in flight."""

    write: bool
    random: bool
    bytes: PositiveInt
    depth: PositiveInt
    span: PositiveInt
    flush: bool = False
    """Whether each write is followed by a flush."""
    warmup: Annotated[float, Field(ge=0)] = 0.0
    """Seconds before the figures begin, such as a cache takes to fill."""
    seconds: PositiveFloat = 10.0
    most_per_s: PositiveFloat | None = None
    """A load of which more are served a second counts as not limited; None: 20 million requests."""


class DiskFigures(Record):
    """What the disk does: requests a second, and times in seconds."""

    per_s: float
    mean_s: float
    flush_s: float
    """Of a flush, on average; 0 without any."""


def simulate(model: DiskModel, size_bytes: int, load: DiskLoad) -> DiskFigures | None:
    """A disk under a load, in no time; None: the model does not limit it. Raises TargetError."""
    question = {
        "model": model.model_dump(mode="json"),
        "bytes": size_bytes,
        "load": load.model_dump(mode="json"),
    }
    try:
        done = subprocess.run(
            [str(PROGRAM), "simulate"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or "").strip()
        raise TargetError(f"{PROGRAM}: {error}: {said}", advice="Run `make setup`.") from error
    answer = json.loads(done.stdout)
    return None if "error" in answer else DiskFigures.model_validate(answer)


@lru_cache(maxsize=256)
def expected_per_s(model: DiskModel, size_bytes: int, load: DiskLoad) -> float | None:
    """Requests a second that a disk sustains; None: above `MOST_PER_S`. Raises TargetError."""
    warmup = 2.0 + model.write_cache / SLOWEST_BYTES_S if load.write else 0.0
    figures = simulate(
        model, size_bytes, load.model_copy(update={"warmup": warmup, "most_per_s": MOST_PER_S})
    )
    return None if figures is None else figures.per_s
