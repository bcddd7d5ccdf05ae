"""Listings: how many names they have, which, and where they end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.drivers.conftest import Reply
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


def paged(page_of: int, total: int) -> Reply:
    """A container of Swift with so many objects, in pages of so many."""

    def answered(connection: socket.socket, head: bytes) -> bool:
        first = int(head.split(b"marker=object-")[1][:10]) + 1 if b"marker=" in head else 0
        connection.sendall(sent_page("swift", names(first, max(0, min(page_of, total - first)))))
        return True

    return answered


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
    inside = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
    spoilt = answer("200 OK", xml("DeleteResult", inside))
    _, errors = failing(scripted, bench, "delete-many", "s3", 0, lambda _: spoilt)
    assert set(errors) == {"bad-result"}


def test_a_listing_whose_pages_never_hold_a_name_ends(scripted: Make, bench: Make) -> None:
    turns = iter(range(10_000))

    def endless(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answer("200 OK", page([], f"t{next(turns)}")))
        return True

    engine = bench(scripted(endless), workload_of("list-all"))
    engine.alone("failed", 2)
    assert set(engine.progress["errors"]) == {"bad-list"}
    assert "pages without a name" in engine.progress["last_error"]


@pytest.mark.parametrize(("given", "wrong"), [({}, False), ({"listed": {"deleted": 0.0}}, True)])
def test_objects_that_are_only_listed_are_as_many_as_are_left(
    scripted: Make, bench: Make, given: dict[str, Any], *, wrong: bool
) -> None:
    workload = workload_of("list-all", **given)
    engine = bench(scripted(paged(5, 11)), workload, **of_api("swift"))
    engine.alone("failed" if wrong else "done", 2)
    if wrong:
        assert engine.progress["last_error"].endswith("11 keys or more where only 10 exist")


def test_short_pages_do_not_end_a_listing(scripted: Make, bench: Make) -> None:
    """Pages of Ceph's Swift API are shorter than asked for: only an empty one is the last."""
    engine = bench(scripted(paged(1, 10)), workload_of("list-all"), **of_api("swift"))
    by = engine.alone("done", 2, leaves=True)["by"]
    assert engine.progress["errors"] == {}
    listings, pages = by["list-all"]["count"], by["list-page"]["count"]
    assert 11 * listings <= pages < 11 * (listings + 1)


def test_a_worker_that_is_to_end_does_not_list_the_pages_that_are_left(
    scripted: Make, bench: Make
) -> None:
    """A complete listing may take minutes, and is outstanding at the end of most windows."""
    workload = workload_of("list-all", per_container=10_000_000)
    engine = bench(scripted(paged(1, 10_000_000)), workload, **of_api("swift"))
    by = engine.alone("bytes", 1000)["by"]
    assert engine.engine.stop(5.0) == 0
    assert (by["list-all"]["count"], by["list-all"]["errors"]) == (0, {})
    assert by["list-all"]["outstanding_us"] > 0
    assert by["list-page"]["count"] > 0
