"""What a disk with a model counts of itself between two samples."""

from __future__ import annotations

from dataclasses import replace

from weighbridge.common.host import Counters, DiskCounters, ModelDiskCounters
from weighbridge.conductor.telemetry import grown
from weighbridge.results.record.telemetry import DiskSecond

MODEL = ModelDiskCounters(
    reads=5,
    writes=3,
    read_bytes=20480,
    written_bytes=12288,
    flushes=1,
    destages=2,
    destaged_bytes=12288,
    busy_s=0.5,
    waited_s=0.7,
    late_s=0.01,
    cached_bytes=8192,
)
KERNEL = DiskCounters(
    read_bytes=0, written_bytes=0, reads=0, writes=0, busy_s=0.0, waited_s=0.0, model=MODEL
)


def between(first: DiskCounters, last: DiskCounters) -> DiskSecond:
    disks = grown(Counters(disks=(first,)), Counters(disks=(last,)))["disks"]
    assert isinstance(disks, tuple)
    (disk,) = disks
    assert isinstance(disk, DiskSecond)
    return disk


def test_counters_grow_and_the_cache_is_as_it_was_last() -> None:
    later = replace(KERNEL, model=replace(MODEL, reads=9, busy_s=1.25, cached_bytes=4096))
    model = between(KERNEL, later).model
    assert model is not None
    assert (model.reads, model.busy_s, model.cached_bytes) == (4, 0.75, 4096)


def test_a_counter_that_fell_makes_the_model_unknown_and_not_the_disk() -> None:
    fell = replace(KERNEL, model=replace(MODEL, reads=1))
    assert between(KERNEL, fell).model is None


def test_a_disk_without_a_model_has_none() -> None:
    plain = replace(KERNEL, model=None)
    assert between(plain, plain).model is None
    assert (
        DiskSecond.model_validate_json(
            '{"read_bytes":0,"written_bytes":0,"reads":0,"writes":0,"busy_s":0,"waited_s":0}'
        ).model
        is None
    )
