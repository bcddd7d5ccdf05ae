"""Ask a store capabilities, one after the other.

As a program (`python -m weighbridge.gateways.capabilities.ask_store`, on the client host): reads an
`AskingOrder` from stdin as a line of JSON, then keys of capabilities, a line each. Prints a
`CapabilityReply` as a line of JSON for each. Ends with its stdin.
"""

from __future__ import annotations

import contextlib
import http.client
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from pydantic import Field

from weighbridge.common.bounded_http import in_words
from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.exchange import Wire
from weighbridge.common.record import Record
from weighbridge.gateways.capabilities.capability import (
    Answer,
    Capability,
    Refused,
    Unknown,
    Wrong,
)
from weighbridge.gateways.capabilities.registry import CAPABILITIES
from weighbridge.gateways.capabilities.session import Names, S3Session, StoreSession, SwiftSession

DEADLINE_S: Final = 300.0
"""How long one capability may take: that of listings writes some thousand objects, which took Swift
on a busy machine more than two minutes. A request without an answer is given up long before.
"""
ALIVE_WITHIN_S: Final = 10.0
RAISED_AGAIN_S: Final = 0.1
MOST_MEMORY_BYTES: Final = 2**31
SILENT: Final = (TimeoutError, ConnectTimeoutError, ReadTimeoutError)


class AskingOrder(Record):
    """What the program is given; it holds credentials. `program`: which of the run, from 0."""

    endpoints: tuple[Endpoint, ...]
    prefix: Annotated[str, Field(pattern=r"^wb-[0-9a-f]{8}$")]
    program: Annotated[int, Field(ge=0)]
    own: bool
    """Whether the gateway ends with its deployment: then account settings may be changed."""
    deadline_s: Annotated[float, Field(gt=0)] = DEADLINE_S


class CapabilityReply(Record):
    """A line of the program."""

    key: str
    answer: Answer
    alive: bool
    """Whether the store answered anything at all afterwards."""
    answered: bool = True
    """Whether it answered what it was asked."""
    left: Annotated[tuple[str, ...], Field(max_length=50)] = ()
    """Versions that could not be deleted, by bucket."""


class Overdue(BaseException):
    """The deadline has passed; no library's `except Exception` keeps it."""


class Asker:
    """Sessions with the endpoints of an order."""

    def __init__(self, order: AskingOrder) -> None:
        self._deadline_s = order.deadline_s
        names = Names(order.prefix, order.program)
        kinds: dict[str, type[StoreSession]] = {"s3": S3Session, "swift": SwiftSession}
        self._sessions = {}
        for endpoint in order.endpoints:
            session = kinds[endpoint.api](endpoint.model_dump(mode="json"), names, own=order.own)
            self._sessions[endpoint.api] = session
        self._secrets = [secret for endpoint in order.endpoints for secret in endpoint.secrets]

    def ask(self, capability: Capability) -> CapabilityReply:
        session = self._sessions[capability.api]
        answered = False
        try:
            with _deadline(self._deadline_s):
                answer = self._answer(capability, session)
            answered = True
        except Overdue:
            answer = self._unknown(f"no answer within {self._deadline_s:g} s")
        except SILENT as error:
            answer = self._unknown(in_words(error))
        try:
            with _deadline(self._deadline_s):
                left = session.clean()
        except Overdue:
            left = (f"{capability.key}: not deleted in time",)
        return CapabilityReply(
            key=capability.key,
            answer=answer,
            alive=_alive(session.endpoint),
            answered=answered,
            left=left[:50],
        )

    def _answer(self, capability: Capability, session: StoreSession) -> Answer:
        try:
            return capability.probe(session)
        except (Refused, Wrong, Unknown) as other:
            return self._harmless(other)
        except SILENT:
            raise
        except (OSError, http.client.HTTPException) as error:
            return self._unknown(in_words(error))
        except Exception as error:  # noqa: BLE001 - what a store sends may break any parser
            return self._unknown(f"its answer cannot be read: {type(error).__name__}: {error}")

    def _unknown(self, text: str) -> Answer:
        return self._harmless(Unknown(text))

    def _harmless(self, other: Refused | Wrong | Unknown) -> Answer:
        given = [*self._secrets]
        swift = self._sessions.get("swift")
        if swift is not None and "access" in vars(swift):
            given.append(vars(swift)["access"][1])
        return Answer(
            outcome=other.outcome,
            status=other.status,
            code=redacted(other.code[:10_000], given),
            text=redacted(other.text[:10_000], given),
        )


def _alive(endpoint: Mapping[str, Any]) -> bool:
    place = urlsplit(endpoint["url"])
    # A certificate for virtual hosts may be valid for these only.
    netloc = f"wb-check.{place.netloc}" if endpoint["addressing"] == "virtual" else place.netloc
    try:
        wire = Wire(place.scheme, netloc, endpoint["ca_file"], ALIVE_WITHIN_S)
        with contextlib.closing(wire):
            wire("GET", "/", b"", {})
    except (OSError, http.client.HTTPException):
        return False
    return True


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def passed(_number: int, _frame: FrameType | None) -> None:
        raise Overdue

    before = signal.signal(signal.SIGALRM, passed)
    # Again and again: what is raised while the collector or a finalizer runs, Python drops.
    signal.setitimer(signal.ITIMER_REAL, seconds, RAISED_AGAIN_S)
    try:
        yield
    finally:
        while signal.getsignal(signal.SIGALRM) is passed:
            with contextlib.suppress(Overdue):
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)


def main() -> int:
    """Read the order and the keys, print a line for each key; exit status."""
    # boto3 reads a body to its end, and a store may send one without an end.
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    asker = Asker(AskingOrder.model_validate_json(sys.stdin.readline()))
    for line in sys.stdin:
        reply = asker.ask(CAPABILITIES[line.strip()])
        sys.stdout.write(reply.model_dump_json() + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
