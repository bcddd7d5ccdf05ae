"""Wait until services answer, as a program on the client host or on one of theirs.

It reads a line `{"wanted": [...], "deadline_s": s}` from stdin, and prints the index of each that
answers as it is wanted, one a line: `{"address": ..., "port": ...}` accepts a connection; `{"url":
..., "ca": file, "below": 500}` answers a request with a status below that; `{"url": ..., "text":
..., "times": n}` answers 200 with the text at least so many times. It exits with 0 when all have,
with 1 and the last answers at the deadline; with `"watched": true` also when stdin closes.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

_CONNECT_TIMEOUT_S = 1.0
_LONGEST_BYTES = 1 << 20
_PAUSE_S = 0.05


def answer_of(
    url: str,
    *,
    ca: str = "",
    head: Mapping[str, str] = MappingProxyType({}),
    body: object = None,
    timeout_s: float = 5.0,
) -> tuple[int, str]:
    """Status and text of a GET, or of a POST of `body`; `ca` is a file with the CA of an https URL.
    Raises OSError or ValueError where there is none.
    """
    # They cost more than all of the rest, on a host with a fraction of a CPU.
    import http.client  # noqa: PLC0415
    import ssl  # noqa: PLC0415
    from urllib.parse import urlsplit  # noqa: PLC0415

    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=timeout_s)
    if place.scheme == "https":
        tls = ssl.create_default_context(cafile=ca)
        connection = http.client.HTTPSConnection(place.netloc, timeout=timeout_s, context=tls)
    data = None if body is None else json.dumps(body)
    target = place._replace(scheme="", netloc="").geturl()
    with contextlib.closing(connection):
        try:
            connection.request("GET" if data is None else "POST", target, data, dict(head))
            answer = connection.getresponse()
            return answer.status, answer.read(_LONGEST_BYTES).decode(errors="replace")
        except http.client.HTTPException as error:
            raise ValueError(repr(error)) from None


def lacking(wanted: Mapping[str, Any]) -> str:
    """What is wrong with an answer, in words; empty: it is as wanted. Raises as `answer_of`."""
    if "url" not in wanted:
        place = (wanted["address"], wanted["port"])
        socket.create_connection(place, timeout=_CONNECT_TIMEOUT_S).close()
        return ""
    status, text = answer_of(wanted["url"], ca=wanted.get("ca", ""))
    enough = text.count(wanted.get("text", "")) >= wanted.get("times", 1)
    fine = status < wanted.get("below", HTTPStatus.OK + 1)
    return "" if enough and fine else f"{status} {text[:300]}"


def ask(
    wanted: Sequence[Mapping[str, Any]], deadline_s: float, pause: Callable[[], bool]
) -> Iterator[int]:
    """The index of each as it answers. Ends at the deadline or when `pause` is true; the last
    answers of the others are then on stderr.
    """
    waiting, answers = dict(enumerate(wanted)), [""] * len(wanted)
    deadline = time.monotonic() + deadline_s
    while waiting:
        for index in list(waiting):
            try:
                answers[index] = lacking(waiting[index])
            except (OSError, ValueError) as error:
                answers[index] = f"0 {error}"
            if not answers[index]:
                del waiting[index]
                yield index
        # A refused connection returns at once: without a pause this loop would eat the client's
        # CPU.
        if waiting and (time.monotonic() > deadline or pause()):
            break
    for index, place in waiting.items():
        sys.stderr.write(f"{place.get('url', place)} is not ready: {answers[index]}\n")


def main() -> int:
    """Read the order from stdin, print the index of each that answers; exit status."""
    order = json.loads(sys.stdin.readline())
    watched = [sys.stdin] if order.get("watched") else []
    answered = 0
    for index in ask(
        order["wanted"],
        float(order["deadline_s"]),
        lambda: bool(select.select(watched, [], [], _PAUSE_S)[0]),
    ):
        answered += 1
        sys.stdout.write(f"{index}\n")
        sys.stdout.flush()
    return 0 if answered == len(order["wanted"]) else 1


if __name__ == "__main__":
    sys.exit(main())
