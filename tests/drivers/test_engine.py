"""The native engine with the null target; boto3 and python-swiftclient check what it wrote."""

from __future__ import annotations

import itertools
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import swiftclient
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from null_process import s3_client
from tests.drivers.conftest import SEED, Bench, Served, always, shape, until
from tests.drivers.good_answers import (
    BODY,
    answer,
    of_api,
    version_body,
    versions,
    versions_page,
    workload_of,
)
from tests.drivers.sent_page import ABOUT, PAGE, page
from tls_proxy import authority
from weighbridge.drivers.engine import _native
from weighbridge.drivers.engine._native import added_histograms
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Second, Tally
from weighbridge.suites import OPERATIONS, Workload

Make = Callable[..., Any]
MIX = {"read": 5.0, "write": 3.0, "head": 1.0, "list": 1.0, "delete": 1.0}


def make_buckets(served: Served, containers: int = 2, name: str = "w") -> Any:
    client = s3_client(served.url)
    for container in range(containers):
        client.create_bucket(Bucket=f"wb-{name}-{container}")
    return client


def names(client: Any, containers: int = 2) -> list[str]:
    found = []
    for container in range(containers):
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=f"wb-w-{container}")
        found += [f"{container}/{one['Key']}" for page in pages for one in page.get("Contents", [])]
    return found


@pytest.mark.parametrize("token", ["", "FwoGZXIvYXdzEJr//token+=="])
def test_signatures_are_those_of_botocore(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    auth = S3SigV4Auth(Credentials("AKID", "secret/key+=", token or None), "s3", "eu-central-1")
    cases = itertools.product(
        ["GET", "PUT", "HEAD", "DELETE"],
        [
            "/bucket/object",
            "/b/a-very-long-name-that-needs-one-more-block-of-the-hash-than-the-short-one-does",
            "/b",
        ],
        ["", "list-type=2&max-keys=1000"],
        [1_401_192_000, 1_700_000_000, 1_700_000_001, 1_709_164_800],
    )
    for method, path, query, unix_s in cases:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(unix_s))
        request = AWSRequest(method, f"http://host.example:8080{path}{'?' if query else ''}{query}")
        request.headers["X-Amz-Content-SHA256"] = "UNSIGNED-PAYLOAD"
        request.headers["X-Amz-Date"] = stamp
        if token:
            request.headers["X-Amz-Security-Token"] = token
        request.context["timestamp"] = stamp
        monkeypatch.setattr(auth, "payload", lambda _request: "UNSIGNED-PAYLOAD")
        wanted = auth.signature(
            auth.string_to_sign(request, auth.canonical_request(request)), request
        )
        keys = ("AKID", "secret/key+=", token)
        ours = _native.signed_headers(
            keys, "eu-central-1", "host.example:8080", method, path, query, unix_s
        )
        assert f"x-amz-date: {stamp}\r\n" in ours
        assert ours.endswith(f"Signature={wanted}\r\n"), (method, path, query)


def test_boto3_reads_the_prepared_objects(null: Make, bench: Make) -> None:
    served = null()
    client = make_buckets(served)
    workload = shape(size={"uniform": [0, 100_000]})
    engine = bench(served, workload)
    progress = engine.prepare()
    assert (progress["done"], progress["failed"]) == (20, 0)
    sizes = {}
    for container, index in itertools.product(range(2), range(10)):
        answer = client.get_object(Bucket=f"wb-w-{container}", Key=_native.object_name(index))
        body = answer["Body"].read()
        size = _native.object_size(json.dumps(workload), SEED, container, index)
        assert body == _native.content(SEED, size, 0, size)
        sizes[container, index] = size
    assert len(set(sizes.values())) > 10
    assert progress["bytes"] == sum(sizes.values())
    assert len(names(client)) == 20


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("size", [0, 1, 4096, 70_000, 3_000_000])
def test_every_size_is_written_and_read_without_an_error(
    null: Make, bench: Make, size: int, verify: bool
) -> None:
    served = null()
    make_buckets(served)
    engine = bench(served, shape(size=size, operations=MIX), verify=verify, threads=2)
    engine.prepare()
    engine.start(5)
    by = engine.window(lambda since: since["done"] >= 100)["by"]
    assert engine.engine.stop(10.0) == 0
    assert engine.progress["errors"] == {}
    assert by["read"]["bytes"] == by["read"]["count"] * size
    assert by["write"]["bytes"] == by["write"]["count"] * size
    assert by["head"]["bytes"] == by["delete"]["bytes"] == 0


def test_the_counts_are_consistent_and_readable_by_other_tools(null: Make, bench: Make) -> None:
    served = null()
    make_buckets(served)
    engine = bench(served, shape(operations=MIX), threads=2)
    engine.prepare()
    engine.start(4)
    snapshot = engine.window(lambda since: since["done"] >= 2000)
    seconds = [Second.model_validate(one) for one in snapshot["seconds"]]
    for one in snapshot["tallies"]:
        tally = Tally.model_validate(one)
        mine = [second for second in seconds if second.operation == tally.operation]
        assert tally.latency is not None
        histogram = HdrHistogram.decode(tally.latency)
        assert histogram.get_total_count() == tally.count == sum(second.count for second in mine)
        assert histogram.lowest_trackable_value == 1
        assert histogram.highest_trackable_value == 3_600_000_000
        assert histogram.significant_figures == 3
        assert tally.min_us is not None
        assert tally.max_us is not None
        assert histogram.get_max_value() >= tally.max_us > 0
        assert abs(histogram.get_mean_value() * tally.count / tally.sum_us - 1) < 0.01
        assert tally.bytes == sum(second.bytes for second in mine)
        assert tally.sum_us == sum(second.sum_us for second in mine)
        assert tally.max_us == max(second.max_us for second in mine)
        assert (tally.first_byte is not None) == (tally.operation in ("read", "list"))
    assert 0 < snapshot["window_s"] < 30
    # The last second may have just begun.
    last = max(second.second for second in seconds)
    assert int(max(0.0, snapshot["window_s"] - 0.1)) <= last <= int(snapshot["window_s"])


def test_nothing_is_recorded_outside_the_window(null: Make, bench: Make) -> None:
    engine = prepared(null(), bench)
    engine.start(2)
    assert all(tally["count"] == 0 for tally in engine.snapshot()["tallies"])
    closed = engine.window(lambda since: since["done"] >= 100)
    done = engine.progress["done"]
    until(lambda: engine.progress["done"] > done + 100, "workers continue")
    assert engine.snapshot()["tallies"] == closed["tallies"]
    assert engine.snapshot()["window_s"] == closed["window_s"]
    engine.engine.stop(10.0)
    engine.engine.open_window()
    assert engine.snapshot()["by"]["read"]["count"] == 0


def prepared(
    served: Served, bench: Make, workload: dict[str, Any] | None = None, **keys: Any
) -> Bench:
    make_buckets(served)
    engine: Bench = bench(served, workload or shape(), **keys)
    engine.prepare()
    return engine


def test_the_engine_sends_the_requests_of_its_picker(scripted: Make, bench: Make) -> None:
    def answer(connection: Any, head: bytes) -> bool:
        size = 7 if head.startswith((b"GET", b"HEAD")) else 0
        body = b"" if head.startswith(b"HEAD") else b"x" * size
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + body)
        return True

    served = scripted(answer)
    workload = shape(size=7, operations=MIX, pick={"zipf": 1.1})
    engine = bench(served, workload)
    engine.start(1, repeat=3)
    until(lambda: len(served.asked) > 300, "requests")
    engine.engine.stop(5.0)
    picker = _native.Picker(json.dumps(workload), SEED, 1, 3, 0)
    verbs = {"read": "GET", "write": "PUT", "list": "GET", "head": "HEAD", "delete": "DELETE"}
    for head in served.asked:
        operation, container, index, _ = picker.next()
        if operation == "list":
            path = f"/wb-w-{container}?list-type=2&max-keys=1000"
        elif operation == "write" or index < 0:
            number = index if index >= 0 else -1 - index
            path = f"/wb-w-{container}/{_native.written_name(1, 3, 0, number)}"
        else:
            path = f"/wb-w-{container}/{_native.object_name(index)}"
        assert head.decode().startswith(f"{verbs[operation]} {path} ")


def test_workers_never_overwrite_prepared_objects_or_each_others(null: Make, bench: Make) -> None:
    served = null()
    client = make_buckets(served)
    engine = bench(served, shape(operations={"write": 1.0}))
    engine.prepare()
    written = 0
    for repeat, workers in ((0, 2), (0, 3), (1, 3)):
        before = engine.progress["done"]
        engine.start(workers, repeat)
        assert engine.engine.stop(10.0) == 0
        written += engine.progress["done"] - before
    assert len(names(client)) == 20 + written
    engine.engine.delete("written", 4)
    engine.finish()
    assert names(client) == [
        f"{container}/{_native.object_name(index)}" for container in range(2) for index in range(10)
    ]
    engine.engine.delete("objects", 4)
    assert engine.finish()["failed"] == 0
    assert names(client) == []


def test_a_removed_worker_ends_and_the_others_continue(null: Make, bench: Make) -> None:
    engine = prepared(null(), bench)
    engine.start(3)
    engine.engine.remove_worker(1)
    until(lambda: engine.progress["running"] == 2, "one worker ends")
    assert engine.engine.started() == 2
    done = engine.progress["done"]
    until(lambda: engine.progress["done"] > done + 50, "the others continue")
    engine.engine.add_worker(1, 3, 0)
    until(lambda: engine.engine.started() == 3, "it can come back")


def test_swiftclient_reads_the_swift_objects(null: Make, bench: Make) -> None:
    served = null(user="bench", key="secret")
    connection = swiftclient.Connection(
        authurl=f"{served.url}/auth/v1.0", user="bench", key="secret", retries=0
    )
    storage, token = connection.get_auth()
    for container in range(2):
        connection.put_container(f"wb-w-{container}")
    path = storage.removeprefix(served.url)
    engine = bench(served, shape(operations=MIX), api="swift", base_path=path, token=token)
    assert engine.prepare()["failed"] == 0
    engine.start(3)
    engine.window(lambda since: since["done"] >= 300)
    engine.engine.stop(10.0)
    assert engine.progress["errors"] == {}
    for name in (_native.object_name(4), _native.object_name(9)):
        assert connection.get_object("wb-w-1", name)[1] == _native.content(SEED, 1000, 0, 1000)
    stranger = bench(served, shape(), api="swift", base_path=path, token="another")
    stranger.start(1)
    assert set(stranger.progress["errors"]) == {"http-401"}
    connection.close()


@pytest.mark.parametrize(("rate_per_s", "fewest", "most"), [(100.0, 40, 150), (None, 1, 5)])
def test_a_stall_counts_from_the_intended_start_of_each_request_only_at_a_constant_rate(
    scripted: Make, bench: Make, rate_per_s: float | None, fewest: int, most: int
) -> None:
    # One answer takes 0.6 s. At 100/s 60 requests are due in the meantime, about 50 of which wait
    # 0.1 s and more; a closed loop sees one.
    def answer(connection: Any, head: bytes) -> bool:
        if len(served.asked) == 20:
            time.sleep(0.6)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000)
        return True

    served: Served = scripted(answer)
    engine = bench(served, shape(rate_per_s=rate_per_s))
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done"] >= 150, "requests")
    engine.engine.close_window()
    items = HdrHistogram.decode(engine.snapshot()["by"]["read"]["latency"]).get_recorded_iterator()
    slow = sum(
        item.count_added_in_this_iter_step for item in items if item.value_iterated_to > 100_000
    )
    assert fewest <= slow <= most


def test_a_delay_of_the_target_is_measured(null: Make, bench: Make) -> None:
    engine = prepared(null(delay_ms=20.0), bench)
    engine.start(2)
    tally = engine.window(lambda since: since["done"] >= 40)["by"]["read"]
    assert 20_000 <= tally["min_us"] < 25_000
    assert HdrHistogram.decode(tally["latency"]).get_value_at_percentile(50) < 40_000
    assert HdrHistogram.decode(tally["first_byte"]).get_min_value() >= 19_980


def test_the_first_byte_of_a_request_that_the_windows_end_cuts_counts_if_it_had_come(
    scripted: Make, bench: Make
) -> None:
    ended, order = threading.Event(), itertools.count(1)

    def answer(connection: Any, head: bytes) -> bool:
        number = next(order)
        if number <= 10 or number % 2:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 10)
        if number > 10:
            ended.wait(20)
        connection.sendall(b"x" * 990)
        return True

    served: Served = scripted(answer)
    engine = bench(served, shape())
    engine.engine.open_window()
    engine.start(2)
    until(lambda: engine.progress["done"] >= 10 and len(served.asked) == 12, "hanging requests")
    time.sleep(0.1)  # the first bytes of one arrive
    engine.engine.close_window()
    tally = engine.snapshot()["by"]["read"]
    ended.set()
    counts = {
        name: HdrHistogram.decode(tally[name]).get_total_count()
        for name in ("first_byte", "in_flight", "awaiting")
    }
    assert counts == {"first_byte": tally["count"] + 1, "in_flight": 2, "awaiting": 1}


def test_over_tls_only_a_trusted_target_gets_requests(
    scripted: Make, bench: Make, tmp_path: Path
) -> None:
    def answer(connection: Any, head: bytes) -> bool:
        body = _native.content(SEED, 3_000_000, 0, 3_000_000) if head.startswith(b"GET") else b""
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return True

    ca, certificate = authority(tmp_path, ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = scripted(answer, context)
    workload = shape(size=3_000_000, operations={"read": 1.0, "write": 1.0})
    trusting = bench(served, workload, tls=True, ca_file=str(ca), verify=True)
    trusting.start(2)
    by = trusting.window(lambda since: since["done"] >= 30)["by"]
    assert trusting.engine.stop(10.0) == 0
    assert trusting.progress["errors"] == {}
    assert by["read"]["bytes"] == 3_000_000 * by["read"]["count"] > 0
    stranger = bench(served, workload, tls=True)
    stranger.start(1)
    assert set(stranger.progress["errors"]) == {"connect"}
    assert "ertificate" in stranger.progress["last_error"]


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


@pytest.mark.parametrize("mixed", [False, True])
def test_only_a_workload_that_changes_something_may_have_more_versions_than_were_prepared(
    scripted: Make, bench: Make, *, mixed: bool
) -> None:
    def one_more(connection: socket.socket, head: bytes) -> bool:
        if head.startswith(b"PUT"):
            connection.sendall(answer("200 OK", b"", "x-amz-version-id: new"))
            return True
        newest = ("object-0000000000", "v2-20")
        connection.sendall(versions_page("s3", [newest, *versions(0, 20)]))
        return True

    given = {**workload_of("list-versions"), "listing": {"page": 30, "prefix": "", "delimiter": ""}}
    given["operations"] |= {"overwrite": 1.0} if mixed else {}
    engine = bench(scripted(one_more), given)
    engine.engine.add_worker(0, 1, 0)
    which = "done" if mixed else "failed"
    until(lambda: engine.progress[which] >= 4, which)
    assert set(engine.progress["errors"]) == (set() if mixed else {"bad-list"})
    if not mixed:
        assert engine.progress["last_error"].endswith("21 versions or more where only 20 exist")


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize("named_id", [True, False])
def test_a_write_into_a_container_with_versions_must_make_one(
    scripted: Make, bench: Make, api: str, *, named_id: bool
) -> None:
    header = "x-amz-version-id" if api == "s3" else "X-Object-Version-Id"
    more = (f"{header}: 17",) if named_id else ()
    served = scripted(always(answer("201 Created", b"", *more)))
    engine = bench(served, workload_of("overwrite", versions=2), **of_api(api))
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done" if named_id else "failed"] >= 2, "writes")
    assert set(engine.progress["errors"]) == (set() if named_id else {"bad-result"})


def test_each_version_is_written_with_its_own_content_and_the_latest_is_written_again(
    scripted: Make, bench: Make
) -> None:
    served = scripted(always(answer("201 Created", b"", "x-amz-version-id: 17")))
    engine = bench(served, workload_of("overwrite", versions=3))
    for version in range(3):
        engine.engine.prepare(0, 10, 1, 1, version)
        assert engine.finish()["errors"] == {}
    assert served.bodies == [version_body(version) for version in range(3) for _ in range(10)]
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done"] >= 32, "overwrites")
    engine.engine.stop(5.0)
    assert served.bodies[30:32] == [version_body(2)] * 2
    assert len({version_body(0), version_body(1), version_body(2)}) == 3
    assert version_body(0) == BODY


def test_versions_and_ids_that_a_workload_has_not_are_refused(bench: Make, null: Make) -> None:
    engine = bench(null(), workload_of("overwrite", versions=2)).engine
    with pytest.raises(ValueError, match="no such version among 2"):
        engine.prepare(0, 10, 1, 1, 2)
    with pytest.raises(ValueError, match="3 IDs of 20 versions"):
        engine.know_versions(["a", "b", "c"])
    with pytest.raises(ValueError, match="a version without an ID"):
        engine.know_versions([""] * 20)
    for wrong in ({"versions": 0}, {"versions": 101}):
        with pytest.raises(ValueError, match="not 1 to 100"):
            bench(null(), workload_of("overwrite", **wrong))


def test_the_page_shows_every_operation_as_the_engine_sends_it() -> None:
    assert set(ABOUT) == set(OPERATIONS)
    again = "write it again: python -m tests.drivers.sent_page"
    assert page() == PAGE.read_text(encoding="utf-8"), again
