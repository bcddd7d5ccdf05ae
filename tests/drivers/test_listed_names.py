"""Listings: how many names they have, which, and where they end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.drivers.conftest import until
from tests.drivers.good_answers import (
    TOKEN,
    answer,
    names,
    of_api,
    page,
    workload_of,
    xml,
)
from tests.drivers.test_engine_results import failing

Make = Callable[..., Any]
STRANGE = [f"zzz-of-somebody-else-{index}" for index in range(5)]


def sent_page(api: str, keys: list[str], token: str = "") -> bytes:
    if api == "s3":
        return answer("200 OK", page(keys, token))
    return answer("200 OK", "\n".join(keys).encode(), "Content-Type: text/plain")


def sent_deleted(keys: list[str]) -> bytes:
    inside = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
    return answer("200 OK", xml("DeleteResult", inside))


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize(
    ("at", "keys", "why"),
    [
        (0, [*names(2, 1) * 3, *names(3, 2)], "not after the one before it"),
        (0, names(0, 5)[::-1], "not after the one before it"),
        (0, STRANGE, "without the prefix"),
        (1, [*names(4, 1), *names(6, 4)], "listed before"),
    ],
    ids=["duplicates", "backwards", "strange", "repeated from the last page"],
)
def test_a_page_of_as_many_but_other_names_is_a_bad_listing(
    scripted: Make, bench: Make, api: str, at: int, keys: list[str], why: str
) -> None:
    engines: list[Any] = []

    def kept(*given: Any, **more: Any) -> Any:
        engines.append(bench(*given, **more))
        return engines[-1]

    spoilt = sent_page(api, keys, "" if at else TOKEN)
    tally, errors = failing(scripted, kept, "list-all", api, at, lambda _: spoilt)
    assert set(errors) == {"bad-list"}
    assert (tally["count"], tally["latency"]) == (0, None)
    assert why in engines[0].progress["last_error"]


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_name_that_is_listed_twelve_times_is_a_bad_listing(
    scripted: Make, bench: Make, api: str
) -> None:
    spoilt = sent_page(api, names(0, 1) * 12)
    _, errors = failing(scripted, bench, "list", api, 0, lambda _: spoilt)
    assert set(errors) == {"bad-list"}


@pytest.mark.parametrize(
    "keys", [names(0, 1) * 3, [*names(0, 2), *names(3, 1)], STRANGE[:3]], ids=repr
)
def test_a_deletion_of_as_many_but_other_keys_is_a_bad_result(
    scripted: Make, bench: Make, keys: list[str]
) -> None:
    spoilt = sent_deleted(keys)
    _, errors = failing(scripted, bench, "delete-many", "s3", 0, lambda _: spoilt)
    assert set(errors) == {"bad-result"}


def test_a_listing_whose_pages_never_hold_a_name_ends(scripted: Make, bench: Make) -> None:
    turns = iter(range(10_000))

    def endless(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answer("200 OK", page([], f"t{next(turns)}")))
        return True

    engine = bench(scripted(endless), workload_of("list-all"))
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["failed"] >= 2, "failures")
    assert set(engine.progress["errors"]) == {"bad-list"}
    assert "pages without a name" in engine.progress["last_error"]


@pytest.mark.parametrize(("given", "wrong"), [({}, False), ({"listed": {"deleted": 0.0}}, True)])
def test_objects_that_are_only_listed_are_as_many_as_are_left(
    scripted: Make, bench: Make, given: dict[str, Any], *, wrong: bool
) -> None:
    def one_too_many(connection: socket.socket, head: bytes) -> bool:
        first = int(head.split(b"marker=object-")[1][:10]) + 1 if b"marker=" in head else 0
        body = "\n".join(names(first, max(0, min(5, 11 - first)))).encode()
        connection.sendall(answer("200 OK", body, "Content-Type: text/plain"))
        return True

    workload = {**workload_of("list-all"), **given}
    engine = bench(scripted(one_too_many), workload, **of_api("swift"))
    engine.engine.add_worker(0, 1, 0)
    which = "failed" if wrong else "done"
    until(lambda: engine.progress[which] >= 2, which)
    if wrong:
        assert engine.progress["last_error"].endswith("11 keys or more where only 10 exist")


def test_short_pages_do_not_end_a_listing(scripted: Make, bench: Make) -> None:
    """Pages of Ceph's Swift API are shorter than asked for: only an empty one is the last."""

    def one_by_one(connection: socket.socket, head: bytes) -> bool:
        first = int(head.split(b"marker=object-")[1][:10]) + 1 if b"marker=" in head else 0
        body = "\n".join(names(first, 1 if first < 10 else 0)).encode()
        connection.sendall(answer("200 OK", body, "Content-Type: text/plain"))
        return True

    engine = bench(scripted(one_by_one), workload_of("list-all"), **of_api("swift"))
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done"] >= 2, "listings")
    engine.engine.remove_worker(0)
    engine.finish()
    engine.engine.close_window()
    by = engine.snapshot()["by"]
    assert engine.progress["errors"] == {}
    listings, pages = by["list-all"]["count"], by["list-page"]["count"]
    assert 11 * listings <= pages < 11 * (listings + 1)


def test_a_worker_that_is_to_end_does_not_list_the_pages_that_are_left(
    scripted: Make, bench: Make
) -> None:
    """A complete listing may take minutes, and is outstanding at the end of most windows."""

    def one_by_one(connection: socket.socket, head: bytes) -> bool:
        first = int(head.split(b"marker=object-")[1][:10]) + 1 if b"marker=" in head else 0
        body = "\n".join(names(first, 1)).encode()
        connection.sendall(answer("200 OK", body, "Content-Type: text/plain"))
        return True

    workload = workload_of("list-all")
    workload["objects"] = {**workload["objects"], "per_container": 10_000_000}
    engine = bench(scripted(one_by_one), workload, **of_api("swift"))
    engine.engine.open_window()
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["bytes"] > 1000, "pages")
    engine.engine.close_window()
    assert engine.engine.stop(5.0) == 0
    by = engine.snapshot()["by"]
    assert (by["list-all"]["count"], by["list-all"]["errors"]) == (0, {})
    assert by["list-all"]["outstanding_us"] > 0
    assert by["list-page"]["count"] > 0
