"""Leftover buckets of a service of several endpoints, some of which do not answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError
from weighbridge.gateways.existing import leftover_buckets
from weighbridge.gateways.existing.leftover_buckets import EndpointSilent, LeftoverBucket, Sweep

MADE = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = (("wb-0123abcd-small-0", MADE), ("wb-0123abcd-small-1", MADE))
SERVICE = Endpoint.model_validate(
    {"api": "s3", "url": "http://a:1", "others": ("http://b:1",), "user": "u", "key": "k"}
)


class Service:
    """Endpoints a and b of one service; `silent` ones do not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.silent: set[str] = set()
        self.fault: TargetError | None = None
        self.deleted: list[tuple[str, str]] = []
        for name in ("named", "content", "delete"):
            monkeypatch.setattr(leftover_buckets, name, getattr(self, name))

    def look(self, here: Endpoint) -> None:
        if here.url in self.silent:
            raise EndpointSilent(f"s3 connect at {here.url}: no answer")
        if self.fault is not None:
            raise self.fault

    def named(self, here: Endpoint) -> object:
        self.look(here)
        return NAMES

    def content(self, here: Endpoint, bucket: str, made: datetime) -> LeftoverBucket:
        self.look(here)
        return LeftoverBucket(api="s3", url=here.url, bucket=bucket, objects=2, newest=made)

    def delete(self, here: Endpoint, bucket: str) -> int:
        self.look(here)
        self.deleted.append((here.url, bucket))
        return 2


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    return Service(monkeypatch)


def test_the_next_endpoint_is_asked_where_the_first_is_dead_which_is_named(
    service: Service,
) -> None:
    service.silent = {"http://a:1"}
    said: list[str] = []
    sweep = Sweep(SERVICE, said.append)
    assert sweep.named() == NAMES
    assert sweep.delete(NAMES[0][0]) == 2
    assert service.deleted == [("http://b:1", NAMES[0][0])]
    assert said == ["s3 connect at http://a:1: no answer; going on with s3 http://b:1"]


def test_an_endpoint_that_dies_later_loses_no_bucket(service: Service) -> None:
    sweep = Sweep(SERVICE, lambda _: None)
    sweep.named()
    assert sweep.delete(NAMES[0][0]) == 2
    service.silent = {"http://a:1"}
    assert sweep.content(*NAMES[1]) is not None
    assert sweep.delete(NAMES[1][0]) == 2
    assert service.deleted == [("http://a:1", NAMES[0][0]), ("http://b:1", NAMES[1][0])]


def test_without_any_answer_the_last_fault_is_raised(service: Service) -> None:
    service.silent = {"http://a:1", "http://b:1"}
    with pytest.raises(EndpointSilent, match="b:1"):
        Sweep(SERVICE, lambda _: None).named()


def test_a_bucket_that_is_refused_is_not_asked_for_elsewhere(service: Service) -> None:
    sweep = Sweep(SERVICE, lambda _: None)
    service.fault = TargetError("403")
    with pytest.raises(TargetError, match="403"):
        sweep.delete(NAMES[0][0])
    service.fault = None
    assert sweep.there == "s3 http://a:1"
