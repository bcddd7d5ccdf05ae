"""Buckets of workloads with anonymous requests are opened to everybody, those of others are not."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, Signing
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.prepared_objects import PreparedObjects
from weighbridge.drivers.protocol import Prepare, Setup
from weighbridge.suites import Objects, Workload

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NO = b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 2\r\n\r\nno"


def prepare(served: Any, signing: Signing) -> None:
    target = Endpoint(api="s3", url=served.url, user="AK", key=SecretStr("SK"))
    workload = Workload(
        name="w",
        objects=Objects(size=10),
        operations={"write": 1},
        workers=(1,),
        runtime=1.0,
        signing=signing,
    )
    made = PreparedObjects(Setup(target=target, bucket_prefix="wb-open", seed=1))
    made.prepare(Prepare(workload=workload), lambda _: None)


@pytest.mark.parametrize("auth", ["header", "query", "none"])
def test_everybody_may_use_the_bucket_only_if_requests_are_anonymous(
    scripted: Callable[..., Any], auth: str
) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(OK)
        return False

    served = scripted(answer)
    prepare(served, Signing.model_validate({"auth": auth}))
    lines = [head.split(b"\r\n")[0] for head in served.asked]
    policy = [b"PUT /wb-open-w-0?policy= HTTP/1.1"] if auth == "none" else []
    assert lines == [b"PUT /wb-open-w-0 HTTP/1.1", *policy]
    if policy:
        [rule] = json.loads(served.bodies[-1])["Statement"]
        assert rule["Resource"] == ["arn:aws:s3:::wb-open-w-0", "arn:aws:s3:::wb-open-w-0/*"]
        assert "s3:PutObject" in rule["Action"]


def test_a_store_that_does_not_open_it_is_reported(scripted: Callable[..., Any]) -> None:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(NO if b"?policy=" in head else OK)
        return False

    with pytest.raises(DriverError, match="cannot be opened to anonymous requests: HTTP 501: no"):
        prepare(scripted(answer), Signing(auth="none"))
