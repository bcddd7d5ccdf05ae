"""What the programs of a power cut's load can be ordered."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.survival import WriteOrder

S3 = Endpoint(api="s3", url="http://h:1", user="u", key=SecretStr("k"))
SWIFT = Endpoint(api="swift", url="http://h:1/auth/v1.0", user="u", key=SecretStr("k"))


def order(workers: int, **given: Any) -> WriteOrder:
    usual = {"endpoints": (S3, SWIFT), "prefix": "wb-x", "sizes": (64, 128), "seed": 1}
    return WriteOrder.model_validate(usual | {"workers": workers} | given)


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 9, 16, 33])
def test_all_kinds_of_objects_are_written_whatever_the_number_of_workers(workers: int) -> None:
    kinds = order(workers).kinds_of_workers()
    assert len(kinds) == workers
    assert all(kinds)
    assert len({kind for some in kinds for kind in some}) == 6


def test_one_worker_in_eight_writes_in_parts_and_the_others_spread_evenly() -> None:
    kinds = order(34).kinds_of_workers()
    counts = Counter(kind for some in kinds for kind in some)
    parts = {kind.api: count for kind, count in counts.items() if kind.way == "multipart"}
    plain = [count for kind, count in counts.items() if kind.way == "plain"]
    assert sorted(parts.values()) == [2, 2]
    assert sorted(plain) == [7, 7, 8, 8]
    assert {kind.way for some in order(8, multipart=False).kinds_of_workers() for kind in some} == {
        "plain"
    }


def test_segments_have_containers_of_their_own() -> None:
    one = order(1, containers=1)
    assert one.all_containers("s3") == ("wb-x-s3-0",)
    assert one.all_containers("swift") == ("wb-x-swift-0", "wb-x-swift-0-segments")


@pytest.mark.parametrize(
    ("endpoints", "why"),
    [
        ((S3, S3), "named twice"),
        ((S3.model_copy(update={"addressing": "virtual"}),), "addressed by path"),
        ((), "at least 1"),
    ],
)
def test_endpoints_that_the_programs_cannot_use_are_refused(
    endpoints: tuple[Endpoint, ...], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        order(1, endpoints=endpoints)
