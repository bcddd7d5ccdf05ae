"""What the native engine is given: configurations, workloads, pickers, content."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.conftest import SEED, Served, shape
from weighbridge.drivers.engine import _native
from weighbridge.drivers.engine._native import added_histograms
from weighbridge.results.record.histogram import Histogram
from weighbridge.suites import Workload

Make = Callable[..., Any]
MIX = {"read": 5.0, "write": 3.0, "head": 1.0, "list": 1.0, "delete": 1.0}


def parts(multipart: dict[str, int], others: dict[str, float] | None = None) -> dict[str, Any]:
    """A workload of objects of 1,000 bytes that are read by part."""
    operations = {"read-part": 1.0, **(others or {})}
    return shape(operations=operations, size=1000, multipart=multipart)


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"threads": 0}, "threads"),
        ({"request_timeout_s": 0}, "request_timeout_s"),
        ({"api": "ftp"}, "ftp"),
        ({"bucket_prefix": "a b"}, "bucket_prefix"),
        ({"base_path": "v1"}, "base_path"),
        ({"token": "a\r\nb"}, "control"),
        ({"colour": "red"}, "colour"),
        ({"host": "name.invalid"}, "name.invalid"),
        ({"tls": True, "ca_file": "/nowhere.pem"}, "/nowhere.pem"),
        ({"workload": shape(operations={"append": 1.0})}, "append"),
        ({"workload": shape(operations={"read-part": 1.0})}, "need a `multipart`"),
        ({"workload": parts({"part": 1000})}, "at least two parts"),
        ({"workload": parts({"part": 400}, {"copy": 1.0})}, "read-part beside copy"),
        ({"workload": parts({"part": 400}, {"read-if-match": 1.0})}, "beside read-if-match"),
    ],
)
def test_an_unusable_config_is_refused(bench: Make, keys: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        bench(Served(1), **keys)


def test_invalid_arguments_are_refused(bench: Make) -> None:
    engine = bench(Served(1)).engine
    for call in (
        lambda: engine.prepare(0, 21, 1, 1),
        lambda: engine.prepare(0, 1, 0, 1),
        lambda: engine.add_worker(2, 2, 0),
        lambda: engine.delete("everything", 1),
        lambda: engine.stop(-1.0),
        lambda: _native.Picker("{}", 1, 1, 0, 0),
        lambda: _native.Picker(json.dumps(shape()), 1, 1, 0, 1),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            call()


def test_a_picker_of_deletes_alone_stops() -> None:
    picker = _native.Picker(json.dumps(shape(operations={"delete": 1.0})), 1, 2, 0, 1)
    taken = [picker.next() for _ in range(10)]
    with pytest.raises(StopIteration):
        picker.next()
    assert len(set(taken)) == len(taken) == 10


def test_workloads_of_suites_are_understood() -> None:
    bars = {"histogram": [{"size": 100, "weight": 1}, {"size": [200, 300], "weight": 2}]}
    workload = Workload.model_validate(
        shape(size=bars, operations=MIX, pick={"zipf": 0.9}) | {"runtime": "1s", "warmup": "0s"}
    )
    picker = _native.Picker(workload.model_dump_json(), 1, 4, 0, 2)
    for _ in range(200):
        operation, _, _, size = picker.next()
        assert operation == "list" or size == 100 or 200 <= size <= 300


def test_content_is_the_same_in_any_pieces() -> None:
    content = _native.content(SEED, 1_000_000, 0, 1_000_000)
    assert len(content) == 1_000_000
    assert content == b"".join(
        _native.content(SEED, 1_000_000, offset, 77_777) for offset in range(0, 1_000_000, 77_777)
    )
    assert _native.content(SEED, 10, 8, 100) == _native.content(SEED, 10, 0, 10)[8:]


latencies = st.lists(st.integers(1, 10_000_000), max_size=60)


@given(st.lists(latencies, max_size=5))
def test_the_sum_of_encoded_histograms_is_the_histogram_of_all_samples(
    parts: list[list[int]],
) -> None:
    expected = Histogram.of([value for part in parts for value in part])
    found = Histogram.decode(added_histograms([Histogram.of(part).encode() for part in parts]))
    assert (found.count, found.buckets()) == (expected.count, expected.buckets())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-9],
        lambda text: "A" + text[1:],
        lambda text: text[:60],
        lambda _: "",
        lambda _: "ä",
    ],
)
def test_no_sum_is_made_if_one_histogram_cannot_be_read(spoil: Callable[[str], str]) -> None:
    good = Histogram.of([10, 2000, 300_000]).encode()
    with pytest.raises(ValueError, match="cannot be decoded"):
        added_histograms([good, spoil(good)])


def test_no_sum_is_made_of_histograms_with_other_bounds() -> None:
    other = HdrHistogram(1, 1000, 2)
    other.record_value(5)
    with pytest.raises(ValueError, match=r"1\.\.1000"):
        added_histograms([str(other.encode().decode("ascii"))])
