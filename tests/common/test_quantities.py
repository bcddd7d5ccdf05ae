from __future__ import annotations

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.quantities import (
    BitsPerS,
    Bytes,
    CpuList,
    Seconds,
    cpu_numbers,
    show_bytes,
    show_cpus,
)
from weighbridge.common.record import Record
from weighbridge.common.structure import Part, Target, parts_of, targets
from weighbridge.common.tool_output import json_object
from weighbridge.conductor.time_estimate import show_duration


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("1MB", 10**6), ("1MiB", 2**20), ("4 KiB", 4096), ("1.5GiB", 3 * 2**29)),
        *(("7", 7), ("1gb", 10**9), (12, 12)),
    ],
)
def test_mega_is_10_to_the_6_and_mebi_2_to_the_20(text: object, count: int) -> None:
    assert TypeAdapter(Bytes).validate_python(text) == count


@pytest.mark.parametrize("text", ["4 Kob", "-1MB", "1e3MB", "0.3B", "1.5B", "", "MB", "6TiB"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Bytes).validate_python(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("500ms", 0.5), ("200us", 2e-4), ("20s", 20.0), ("15m", 900.0), ("2h", 7200.0), (0, 0.0)),
        *(("9m30s", 570.0), ("1h5m", 3900.0), ("1h 2m 3.5s", 3723.5), ("90m30s", 5430.0)),
        *(("9:23", 563.0), ("0:30", 30.0), ("1:07:05", 4025.0), ("90:00", 5400.0)),
    ],
)
def test_times_become_seconds(text: object, seconds: float) -> None:
    assert TypeAdapter(Seconds).validate_python(text) == pytest.approx(seconds)


@pytest.mark.parametrize("seconds", [0, 9, 59, 60, 563, 3599, 3600, 4025, 90_061])
def test_a_time_is_read_as_it_is_printed(seconds: int) -> None:
    assert TypeAdapter(Seconds).validate_python(show_duration(seconds)) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "30m1h", "5m5m", "9:60", "1:7:05", "1:60:00", ":30", "9:", "1:2", "9:23s", "-1:00"],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="is not a quantity such as 20s or 15m"):
        TypeAdapter(Seconds).validate_python(text)


@pytest.mark.parametrize(
    ("adapter", "bare"), [(TypeAdapter(Seconds), 20), (TypeAdapter(BitsPerS), 10)]
)
def test_a_number_without_a_unit_is_refused(adapter: TypeAdapter[float], bare: int) -> None:
    with pytest.raises(ValidationError, match="has no unit"):
        adapter.validate_python(bare)


def test_network_rates_are_powers_of_a_thousand() -> None:
    assert TypeAdapter(BitsPerS).validate_python("10Gbit") == 10 * 10**9


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((10**6, "1 MB"), (2**20, "1 MiB"), (4096, "4 KiB"), (64 * 2**20, "64 MiB")),
        *((1234567, "1.23 MB"), (12, "12 B")),
    ],
)
def test_sizes_are_shown_in_the_shorter_unit(count: int, text: str) -> None:
    assert show_bytes(count) == text


class Host(Record):
    cpuset: CpuList | None = None


@pytest.mark.parametrize(
    ("text", "numbers"), [("0", (0,)), ("2-3,5", (2, 3, 5)), ("5, 2-3,3", (2, 3, 5)), ("7-7", (7,))]
)
def test_a_list_names_single_cpus_and_ranges(text: str, numbers: tuple[int, ...]) -> None:
    assert cpu_numbers(text) == numbers


@pytest.mark.parametrize("text", ["", ",", "1,", "3-2", "-1", "a", "1-", "0x1", "8192", "0-9999"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a (list|range) of CPUs"):
        cpu_numbers(text)


def test_a_list_is_shown_as_short_as_possible() -> None:
    assert show_cpus([5, 3, 2, 3]) == "2-3,5"
    assert show_cpus([]) == ""


def test_a_record_keeps_the_shortest_form_also_of_a_number() -> None:
    assert Host.model_validate({"cpuset": 0}).cpuset == "0"
    assert Host.model_validate({"cpuset": "3,2"}).cpuset == "2-3"


def test_output_before_the_json_is_skipped() -> None:
    assert json_object("rados bench", 'hints = 1\n{"a": "1"}\n', DriverError) == {"a": "1"}


@pytest.mark.parametrize(
    ("printed", "why"),
    [("", "is not JSON"), ("[1]", "is not a JSON object"), ('{"a": ', "is not JSON")],
)
def test_output_without_an_object_raises_the_given_error_with_the_output(
    printed: str, why: str
) -> None:
    with pytest.raises(TargetError, match=f"fio: what it printed {why}"):
        json_object("fio", printed, TargetError)


PARTS = (
    Part("store-1", "mon", lone="the only mon"),
    Part("store-1", "osd.0", "storage-daemon"),
    Part("store-2", "osd.1", "storage-daemon"),
    Part("store-3", "osd.2", "storage-daemon", disks=("/dev/wb0", "/dev/wb2")),
    Part("store-3", "osd.3", "storage-daemon", disks=("/dev/wb1", "/dev/wb2")),
    Part("gateway-1", "radosgw.0", "gateway-daemon"),
    Part("gateway-1", "radosgw.1", "gateway-daemon"),
    Part("gateway-1", "haproxy", lone="the only haproxy"),
)


def test_a_role_means_all_that_have_it_and_may_die() -> None:
    assert targets(PARTS, "storage-host") == (Target("store-2"), Target("store-3"))
    daemons = [str(one) for one in targets(PARTS, "gateway-daemon")]
    assert daemons == ["gateway-1/radosgw.0", "gateway-1/radosgw.1"]
    assert Target("store-1", "osd.0") in targets(PARTS, "storage-daemon")


def test_a_host_or_a_service_is_named_alone() -> None:
    assert targets(PARTS, "store-3") == (Target("store-3"),)
    assert targets(PARTS, "store-1/osd.0") == (Target("store-1", "osd.0"),)


def test_a_disk_is_a_role_or_named_and_concerns_all_that_keep_data_on_it() -> None:
    found = targets(PARTS, "storage-disk")
    assert [str(one) for one in found] == ["store-3/wb0", "store-3/wb2", "store-3/wb1"]
    journal = Target("store-3", disk="/dev/wb2")
    assert targets(PARTS, "store-3/wb2") == (journal,)
    assert [one.service for one in parts_of(PARTS, journal)] == ["osd.2", "osd.3"]
    assert [one.service for one in parts_of(PARTS, found[0])] == ["osd.2"]
    with pytest.raises(ValueError, match="it has no storage-disk"):
        targets(PARTS[:3], "storage-disk")


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("store-1", "store-1 may not die: the only mon is there"),
        ("store-1/mon", "store-1/mon may not die: it is the only mon"),
        ("gateway-1", "gateway-1 may not die: the only haproxy is there"),
        ("store-4", "it has no service on 'store-4' (did you mean 'store-"),
        ("store-2/osd.3", "store-2 has no 'osd.3' (did you mean 'osd.1'?)"),
        ("store-3/wb3", "store-3 has no 'wb3' (did you mean 'wb"),
        ("client-1", "it has no service on 'client-1' (known: store-1, store-2"),
    ],
)
def test_what_nothing_is_left_without_may_not_die(what: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        targets(PARTS, what)


def test_the_host_of_all_gateway_daemons_may_not_die() -> None:
    parts = [one for one in PARTS if one.service != "haproxy"]
    with pytest.raises(ValueError, match="all its gateway daemons are there"):
        targets(parts, "gateway-1")
