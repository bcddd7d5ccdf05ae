"""Uploads whose parts are sent at once: what is outstanding together, and what is counted of the
parts and of the object.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tests.drivers.conftest import always, until
from tests.drivers.good_answers import GOOD, PART, REQUESTS, SIZE, answer, of_api, well, workload_of

Make = Callable[..., Any]


class Gathered:
    """Answers to uploads: parts only when as many as can be are there."""

    def __init__(self, api: str, at_once: int) -> None:
        self.api = api
        self.together = threading.Barrier(at_once, timeout=10)

    def answer(self, head: str) -> bytes:
        if "PUT" in head and "multipart-manifest" not in head:
            with suppress(threading.BrokenBarrierError):
                self.together.wait()
        return GOOD["write-multipart"](self.api, head)


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_parts_are_sent_at_once_and_the_object_takes_as_long_as_all_of_them(
    scripted: Make, bench: Make, api: str
) -> None:
    gathered = Gathered(api, 3)

    def slow(connection: socket.socket, head: bytes) -> bool:
        time.sleep(0.005)
        connection.sendall(gathered.answer(head.decode()))
        return True

    workload = workload_of("write-multipart", verify=True, multipart={"part": PART, "at_once": 3})
    served = scripted(slow)
    engine = bench(served, workload, **of_api(api))
    engine.start(1)
    by = engine.window(lambda since: since["done"] >= 4)["by"]
    assert engine.progress["errors"] == {}
    requests = REQUESTS["write-multipart"][api]
    count, parts = by["write-multipart"]["count"], by["write-part"]["count"]
    # Those of the uploads that began before the window and that did not end in it.
    assert 3 * (count - 1) <= parts <= 3 * (count + 2)
    assert by["write-multipart"]["bytes"] == SIZE * count
    assert by["write-multipart"]["min_us"] >= (requests - 2) * 5000
    assert by["write-part"]["min_us"] >= 5000
    one = by["write-multipart"]
    assert one["outstanding_us"] == (one["in_flight_max_us"] or 0)
    gathered.together.abort()  # the last upload may be sent by fewer
    assert engine.engine.stop(5.0) == 0
    finishing = [head for head in served.asked if b"uploadId=" in head and b"POST" in head]
    assert api == "swift" or len(finishing) >= count


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_upload_whose_part_fails_ends_when_its_other_parts_have(
    scripted: Make, bench: Make, api: str
) -> None:
    second = "partNumber=2" if api == "s3" else "/00000002 "

    def refusing(connection: socket.socket, head: bytes) -> bool:
        text = head.decode()
        refused = answer("503 Slow Down", b"busy")
        connection.sendall(refused if second in text else GOOD["write-multipart"](api, text))
        return True

    workload = workload_of("write-multipart", multipart={"part": PART, "at_once": 2})
    engine = bench(scripted(refusing), workload, **of_api(api))
    by = engine.alone("failed", 5, leaves=True)["by"]
    assert set(engine.progress["errors"]) == {"http-503"}
    assert by["write-multipart"]["count"] == 0
    assert by["write-multipart"]["latency"] is None
    objects, parts = (by[name]["errors"]["http-503"] for name in ("write-multipart", "write-part"))
    assert 4 <= objects <= parts <= objects + 1
    assert by["write-part"]["count"] >= objects


def test_a_worker_that_is_taken_away_in_an_upload_ends_with_its_helpers(
    scripted: Make, bench: Make
) -> None:
    release = threading.Event()

    def held(connection: socket.socket, head: bytes) -> bool:
        if b"partNumber" in head:
            release.wait(10)
        connection.sendall(GOOD["write-multipart"]("s3", head.decode()))
        return True

    workload = workload_of("write-multipart", multipart={"part": PART, "at_once": 3})
    served = scripted(held)
    engine = bench(served, workload)
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: sum(b"partNumber" in head for head in served.asked) == 3, "three parts")
    engine.engine.close_window()
    by = engine.snapshot()["by"]
    assert by["write-part"]["outstanding_us"] > 0 < by["write-multipart"]["outstanding_us"]
    engine.engine.remove_worker(0)
    release.set()
    assert engine.finish()["done"] == 1
    assert engine.engine.stop(5.0) == 0


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_objects_that_are_read_by_part_are_prepared_in_parts_and_begun_again_after_a_failure(
    scripted: Make, bench: Make, api: str
) -> None:
    second = "partNumber=2" if api == "s3" else "/00000002 "
    refused: set[str] = set()

    def flaky(connection: socket.socket, head: bytes) -> bool:
        text = head.decode()
        path = text.split("?")[0].split("/0000")[0]
        if second in text and path not in refused:
            refused.add(path)
            connection.sendall(answer("503 Slow Down", b"busy"))
        else:
            connection.sendall(GOOD["write-multipart"](api, text))
        return True

    served = scripted(flaky)
    engine = bench(served, workload_of("read-part"), **of_api(api))
    progress = engine.prepare(2)
    assert (progress["done"], progress["failed"], progress["errors"]) == (2, 2, {"http-503": 2})
    lines = [head.split(b"\r\n")[0] for head in served.asked]
    for name in (b"object-0000000000", b"object-0000000001"):
        puts = [line for line in lines if name in line and line.startswith(b"PUT")]
        begins = [line for line in lines if name in line and b"?uploads" in line]
        manifests = [line for line in puts if b"multipart-manifest=put" in line]
        # Two parts, of which the second failed, and all three again.
        assert len(puts) - len(manifests) == 5
        assert (len(begins), len(manifests)) == ((2, 0) if api == "s3" else (0, 1))


@pytest.mark.parametrize("encryption", ["none", "sse-c"])
@pytest.mark.parametrize("size", [3_000_000, 1000])
def test_every_part_is_compared_with_its_etag_unless_a_customers_key_encrypts_it(
    scripted: Make, bench: Make, size: int, encryption: str
) -> None:
    def wrong(connection: socket.socket, head: bytes) -> bool:
        other = always(answer("200 OK", b"", f'ETag: "{"b" * 32}"'))
        return (other if head.startswith(b"PUT") else well("write-multipart"))(connection, head)

    parts = {"part": size // 2 + 1}
    workload = workload_of("write-multipart", encryption=encryption, multipart=parts, size=size)
    engine = bench(scripted(wrong), workload)
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done"] + engine.progress["failed"] >= 2, "uploads")
    engine.engine.close_window()
    assert set(engine.progress["errors"]) <= {"bad-result", "wrong-etag"}
    assert ("wrong-etag" in engine.progress["errors"]) == (encryption == "none")


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_the_latency_of_an_object_is_that_of_all_its_requests(
    scripted: Make, bench: Make, api: str
) -> None:
    def slow(connection: socket.socket, head: bytes) -> bool:
        time.sleep(0.005)
        return well("write-multipart", api)(connection, head)

    engine = bench(scripted(slow), workload_of("write-multipart"), **of_api(api))
    engine.start(1)
    by = engine.window(lambda since: since["done"] >= 4)["by"]
    one, requests = by["write-multipart"], REQUESTS["write-multipart"][api]
    assert one["min_us"] >= requests * 5000
    assert 5000 <= by["write-part"]["min_us"] < requests * 5000
    # Whatever was outstanding when the window closed is counted of the object, once.
    assert one["outstanding_us"] == (one["in_flight_max_us"] or 0)
