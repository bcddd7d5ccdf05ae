"""The rule by which settings follow the size of hosts."""

import pytest

from weighbridge.common.record import Record
from weighbridge.gateways.sizing import (
    HostSize,
    Role,
    Sized,
    bits,
    left_open,
    pieces,
    with_sizes,
)

GIB = 2**30
SIZES = {
    "small": HostSize(cpus=0.6, memory_bytes=2560 * 2**20, disks=1),
    "middle": HostSize(cpus=8, memory_bytes=64 * GIB, disks=4),
    "large": HostSize(cpus=40, memory_bytes=384 * GIB, disks=12),
    "unknown": HostSize(disks=2),
}


class Inner(Record):
    given: int = 1
    open: int = 1


class Outer(Record):
    inner: Inner = Inner()
    other: int = 1


@pytest.mark.parametrize(
    ("names", "shared_by", "processes"),
    [
        (["small"], 1, 1),
        (["middle"], 1, 8),
        (["large"], 1, 40),
        (["large"], 2, 20),
        (["large"], 100, 1),
        (["large", "middle"], 1, 8),
        (["large", "unknown"], 1, 1),
    ],
)
def test_a_program_has_a_process_for_each_cpu_of_the_smallest_host(
    names: list[str], shared_by: int, processes: int
) -> None:
    assert Role(names, SIZES).processes("workers", shared_by=shared_by).value == processes


def test_why_a_setting_is_as_it_is_names_the_host_and_its_figures() -> None:
    two = Role(["large", "middle"], SIZES).processes("workers", shared_by=2)
    assert two.why == "one per CPU: middle has 8, for 2 daemons"
    bound = Role(["large"], SIZES).processes("threads", most=32)
    assert (bound.value, bound.why) == (32, "one per CPU: large has 40, at most 32")
    unknown = Role(["large", "unknown"], SIZES).processes("workers")
    assert unknown.why == "one per CPU: those of unknown are not known"


@pytest.mark.parametrize(
    ("name", "shared_by", "threads"),
    [("small", 1, 512), ("small", 2, 256), ("middle", 1, 512), ("large", 1, 1280)],
)
def test_threads_that_wait_are_never_fewer_than_on_a_host_of_one_cpu(
    name: str, shared_by: int, threads: int
) -> None:
    found = Role([name], SIZES).waiting("threads", per_cpu=32, least=512, shared_by=shared_by)
    assert found.value == threads


def test_caches_are_equal_parts_of_the_hosts_memory_by_disk() -> None:
    found = Role(["large"], SIZES).cache("cache", {"large": 12}, least_bytes=GIB)
    assert found is not None
    assert (found.value, found.shown) == (19660 * 2**20, "19660 MiB")
    assert found.why == "60 % of large's 384 GiB for 12 disks"
    least = Role(["small", "large"], SIZES).cache(
        "cache", {"small": 2, "large": 12}, least_bytes=896 * 2**20
    )
    assert least is not None
    assert (least.value, least.why) == (
        896 * 2**20,
        "60 % of small's 2560 MiB for 2 disks, at least 896 MiB",
    )


def test_caches_stay_as_they_are_where_memory_or_disks_are_not_known() -> None:
    assert Role(["unknown"], SIZES).cache("cache", {"unknown": 2}, least_bytes=1) is None
    assert Role(["large"], SIZES).cache("cache", {"large": 0}, least_bytes=1) is None


@pytest.mark.parametrize(
    ("disks", "copies", "percent", "found"),
    [
        (3, 3, 64, 64),
        (3, 3, 16, 16),
        (3, 3, 4, 4),
        (36, 3, 64, 512),  # 768 is as near to 1024
        (37, 3, 64, 1024),
        (1, 3, 4, 1),
        (10**6, 1, 100, 32768),
    ],
)
def test_pieces_are_the_nearest_power_of_two_of_a_hundred_a_disk(
    disks: int, copies: int, percent: int, found: int
) -> None:
    assert pieces("pg_num", disks, copies, percent=percent, most=32768).value == found


@pytest.mark.parametrize(("disks", "power"), [(3, 10), (10, 10), (11, 11), (36, 12), (10**9, 32)])
def test_partitions_are_at_least_a_hundred_for_each_disk(disks: int, power: int) -> None:
    assert bits("part_power", disks, least=10, most=32).value == power


def test_what_a_layout_gives_itself_stays_also_where_it_gives_the_default() -> None:
    settings = Outer.model_validate({"inner": {"given": 1}})
    found = [Sized(key=key, value=7, why="") for key in ("inner.given", "inner.open", "other")]
    kept = left_open(settings, found)
    assert [one.key for one in kept] == ["inner.open", "other"]
    assert with_sizes(settings, kept) == Outer(inner=Inner(given=1, open=7), other=7)
