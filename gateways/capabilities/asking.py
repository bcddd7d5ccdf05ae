"""Ask a store capabilities, one after the other, and notice when one of them ends it.

As a program (`python -m weighbridge.gateways.capabilities.asking`, on the client host): reads an
`AskingOrder` from stdin as a line of JSON, then keys of capabilities, a line each. Prints a
`CapabilityReply` as a line of JSON for each. Ends with its stdin.
"""

from __future__ import annotations

import contextlib
import http.client
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from pydantic import Field, ValidationError

from weighbridge.common.bounded_http import in_words
from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import ServiceFailed, TargetError
from weighbridge.common.exchange import Wire
from weighbridge.common.host import Host
from weighbridge.common.program_lines import NoLine, ProgramLines, end
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.gateways.capabilities import buckets, large, objects
from weighbridge.gateways.capabilities.capability import Answer, Capability, NotWorking, Wrong
from weighbridge.gateways.capabilities.session import Session, buckets_of

GROUPS: Final = (
    *("objects", "ranges", "conditions", "account", "multipart", "listing", "checksums"),
    *("aws-chunked", "large objects", "bulk", "versions", "access", "buckets", "encryption"),
)


def _declared(value: object) -> Iterator[Capability]:
    if isinstance(value, Capability):
        yield value
    elif isinstance(value, tuple):
        for member in value:
            yield from _declared(member)


def _own() -> dict[str, Capability]:
    own: list[Capability] = []
    for module in (objects, large, buckets):
        own += _declared(tuple(vars(module).values()))
    own.sort(key=lambda each: (each.api, GROUPS.index(each.group)))
    return {each.key: each for each in own}


CAPABILITIES: Registry[Capability] = Registry(
    "weighbridge.capabilities", "capability", own=_own(), kind=Capability
)
"""In the order in which they are asked and shown. Another package adds its own by an entry point
whose name is the capability's key.
"""

PROGRAM: Final = "weighbridge.gateways.capabilities.asking"
DEADLINE_S: Final = 300.0
"""How long one capability may take: that of listings writes some thousand objects, which took Swift
on a busy machine more than two minutes. A request without an answer is given up long before.
"""
ALIVE_WITHIN_S: Final = 10.0
RAISED_AGAIN_S: Final = 0.1
MOST_MEMORY_BYTES: Final = 2**31
SILENT: Final = (TimeoutError, ConnectTimeoutError, ReadTimeoutError)
MOST_SILENT: Final = 3
"""After so many questions in a row without an answer nothing more is asked."""
MOST_PROGRAMS: Final = 3
"""A program that ended, or said something that is no answer, is started again so often at most."""
_GRACE_S: Final = 60.0
"""The program's own start, and more than its deadlines, on a host with a fraction of a CPU."""
_DIES_WITHIN_S: Final = 15.0
"""How long a daemon that crashed may write about it before it ends."""
_LOOK_S: Final = 0.5
_ENDS_S: Final = 5.0
_FAILED_ENDS_S: Final = 0.5
"""How long the program may take to end by itself, and one that failed."""


class AskingOrder(Record):
    """What the program is given; it holds credentials."""

    endpoints: tuple[Endpoint, ...]
    buckets: tuple[str, ...]
    """The names of those that it may make."""
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


# The program.


class Overdue(BaseException):
    """The deadline has passed; no library's `except Exception` keeps it."""


class Asker:
    """Sessions with the endpoints of an order."""

    def __init__(self, order: AskingOrder) -> None:
        self._deadline_s = order.deadline_s
        names = iter(order.buckets)
        self._private: list[str] = []
        self.sessions: dict[str, Session] = {}
        for endpoint in order.endpoints:
            self.sessions[endpoint.api] = Session(endpoint, names, self._private, own=order.own)

    def ask(self, capability: Capability) -> CapabilityReply:
        """Ask one capability; whatever the store does, there is a reply."""
        session = self.sessions[capability.api]
        session.status = None
        said: dict[str, Any] = {"outcome": "unknown"}
        answered = True
        try:
            with _deadline(self._deadline_s):
                text = capability.probe(session) or ""
            said = {"outcome": "works", "status": session.status, "text": text}
        except NotWorking as other:
            said = {"outcome": other.outcome, "code": other.code, "text": other.text}
            said["status"] = other.status
            if isinstance(other, Wrong) and other.status is None:
                said["status"] = session.status
        except Overdue:
            answered, said["text"] = False, f"no answer within {self._deadline_s:g} s"
        except SILENT as error:
            answered, said["text"] = False, in_words(error)
        except (OSError, http.client.HTTPException) as error:
            said["text"] = in_words(error)
        except Exception as error:  # noqa: BLE001 - what a store sends may break any parser
            said["text"] = f"its answer cannot be read: {type(error).__name__}: {error}"
        for name in ("code", "text"):
            said[name] = redacted(said.get(name, "")[:10_000], self._private)
        alive = _alive(session.endpoint)
        answer = Answer(**said)
        return CapabilityReply(key=capability.key, answer=answer, alive=alive, answered=answered)


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


# The conductor's side.


@dataclass
class Asked:
    """What a store answered, by the capabilities' keys."""

    answers: dict[str, Answer] = field(default_factory=dict)
    died: TargetError | None = None
    """Why nothing more could be asked: the daemon that ended, with its log."""
    buckets: list[str] = field(default_factory=list)
    """All that may be made, before they are."""


def reply_of(line: bytes, key: str) -> CapabilityReply:
    """A line of the program as the reply to this capability. Raises NoLine."""
    try:
        reply = CapabilityReply.model_validate_json(line)
    except ValidationError as error:
        raise NoLine("printed something other than a reply") from error
    if reply.key != key:
        raise NoLine("replied to another capability")
    return reply


def in_order(capabilities: Mapping[str, Capability]) -> list[Capability]:
    """Capabilities as they are asked: dangerous ones last."""
    return sorted(capabilities.values(), key=lambda each: each.dangerous)


def ask_all(
    client: Host,
    endpoints: Sequence[Endpoint],
    capabilities: Sequence[Capability],
    asked: Asked,
    *,
    prefix: str,
    own: bool,
    check: Callable[[], None],
    log: Path,
    asking: Callable[[Capability], None] = lambda _: None,
    deadline_s: float = DEADLINE_S,
) -> None:
    """Ask these capabilities of the endpoints with their APIs, in this order; fills `asked`.

    `check` raises TargetError when a daemon of the gateway has died: the rest is then unknown.
    `log` gets what the program says about itself, `asking` each capability before it is asked.
    """
    served = {endpoint.api for endpoint in endpoints}
    waiting = [each for each in capabilities if each.api in served]
    for program in range(MOST_PROGRAMS):
        if not waiting or asked.died is not None:
            break
        names = buckets_of(prefix, program)
        asked.buckets += names
        order = AskingOrder(
            endpoints=tuple(endpoints), buckets=names, own=own, deadline_s=deadline_s
        )
        _ask_one_program(client, order, waiting, asked, check, asking, log)
    why = "the program that asks failed repeatedly" if asked.died is None else _ended(asked.died)
    for each in waiting:
        asked.answers[each.key] = Answer(outcome="unknown", text=f"not asked: {why}")


def _ask_one_program(
    client: Host,
    order: AskingOrder,
    waiting: list[Capability],
    asked: Asked,
    check: Callable[[], None],
    asking: Callable[[Capability], None],
    log: Path,
) -> None:
    within_s = order.deadline_s + ALIVE_WITHIN_S + _GRACE_S
    command = client.module(PROGRAM)
    process = client.spawn(command.argv, stderr=log, env=command.env)
    ends_s = _FAILED_ENDS_S
    silent = 0
    try:
        lines = ProgramLines(process)
        first = order.model_dump_json() + "\n"
        while waiting and asked.died is None:
            capability = waiting.pop(0)
            asking(capability)
            try:
                lines.send(f"{first}{capability.key}", within_s)
                reply = reply_of(lines.next(within_s), capability.key)
            except NoLine as error:
                text = f"the program that asks {error}; see {log}"
                asked.answers[capability.key] = Answer(outcome="unknown", text=text)
                asked.died = _death(check)
                return
            first = ""
            asked.answers[capability.key] = reply.answer
            silent = 0 if reply.answered else silent + 1
            asked.died = _died_of(capability, reply, silent, check)
            if asked.died is not None and silent < MOST_SILENT:
                blame = {"outcome": "unknown", "text": f"{_ended(asked.died)} when this was asked"}
                asked.answers[capability.key] = reply.answer.model_copy(update=blame)
        ends_s = _ENDS_S
    finally:
        end(process, within_s=ends_s)


def _died_of(
    capability: Capability, reply: CapabilityReply, silent: int, check: Callable[[], None]
) -> TargetError | None:
    if silent == MOST_SILENT:
        what = f"did not answer {silent} questions in a row, up to {capability.key}"
        return _death(check) or TargetError(f"the {capability.api} API {what}")
    if not reply.alive:
        what = f"has not answered since {capability.key} was asked"
        died = _death(check, within_s=_DIES_WITHIN_S)
        return died or TargetError(f"the {capability.api} API {what}")
    return _death(check) if reply.answer.outcome == "unknown" else None


def _ended(died: TargetError) -> str:
    if isinstance(died, ServiceFailed):
        return f"{died.service} on {died.host} had ended"
    return died.message.splitlines()[0]


def _death(check: Callable[[], None], within_s: float = 0.0) -> TargetError | None:
    deadline = time.monotonic() + within_s
    while True:
        try:
            check()
        except TargetError as died:
            return died
        if time.monotonic() >= deadline:
            return None
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    sys.exit(main())
