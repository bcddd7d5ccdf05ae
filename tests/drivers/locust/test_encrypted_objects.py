"""Before a workload with encryption is measured, its store must prove that it encrypts."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.prepared_objects import PreparedObjects
from weighbridge.drivers.protocol import Prepare, Setup
from weighbridge.suites import Objects, Workload

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
OWN_KEY = OK.replace(b"\r\n\r\n", b"\r\nx-amz-server-side-encryption: AES256\r\n\r\n")
NO_KEY = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def prepared(
    scripted: Callable[..., Any],
    encryption: str,
    answers: dict[bytes, bytes],
    operation: str,
) -> list[str]:
    """The requests of a workload's preparation."""

    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answers.get(head.split(b" ")[0], OK))
        return True

    served = scripted(answer)
    workload = Workload.model_validate(
        {
            "name": "w",
            "objects": Objects(size=10, per_container=2),
            "operations": {operation: 1},
            "workers": (1,),
            "runtime": 1.0,
            "encryption": encryption,
        }
    )
    target = Endpoint(api="s3", url=served.url, user="AK", key=SecretStr("SK"))
    made = PreparedObjects(Setup(target=target, bucket_prefix="wb-sse", seed=1))
    made.prepare(Prepare(workload=workload), lambda _: None)
    return [head.split(b" HTTP")[0].decode() for head in served.asked]


@pytest.mark.parametrize(
    ("encryption", "answers", "proves"),
    [
        ("sse-c", {b"GET": NO_KEY, b"HEAD": NO_KEY}, True),
        ("sse-c", {}, False),
        ("sse-c", {b"HEAD": NO_KEY}, False),
        ("sse-c", {b"GET": GONE}, False),
        ("sse-s3", {b"HEAD": OWN_KEY}, True),
        ("sse-s3", {}, False),
        ("sse-s3", {b"HEAD": NO_KEY}, False),
    ],
)
@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_store_that_keeps_objects_plain_is_refused(
    scripted: Callable[..., Any],
    encryption: str,
    answers: dict[bytes, bytes],
    proves: bool,
    operation: str,
) -> None:
    first = "/wb-sse-w-0/object-0000000000"
    if not proves:
        with pytest.raises(DriverError, match=rf"does not encrypt as asked \({encryption}\)"):
            prepared(scripted, encryption, answers, operation)
        return
    asked = prepared(scripted, encryption, answers, operation)
    # What was written only for the proof is deleted.
    asks = f"{'GET' if encryption == 'sse-c' else 'HEAD'} {first}"
    own = [f"PUT {first}", asks, f"DELETE {first}"]
    assert operation == "read" or asked == ["PUT /wb-sse-w-0", *own]
    assert asks in asked
    assert (f"DELETE {first}" in asked) == (operation == "write")


def test_nothing_is_asked_where_objects_are_plain(scripted: Callable[..., Any]) -> None:
    assert prepared(scripted, "none", {}, "write") == ["PUT /wb-sse-w-0"]
