"""Answers that have the right number of names, but not the names that were asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.drivers.good_answers import TOKEN, answer, names, page, xml
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
