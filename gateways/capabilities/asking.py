"""Ask a running gateway capabilities, from a client host, and notice when one of them ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from pydantic import ValidationError

from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import ServiceFailed, TargetError
from weighbridge.common.host import Host
from weighbridge.common.program_lines import NoLine, ProgramLines, end
from weighbridge.gateways.capabilities.ask_store import (
    ALIVE_WITHIN_S,
    DEADLINE_S,
    AskingOrder,
    CapabilityReply,
)
from weighbridge.gateways.capabilities.capability import Answer, Capability
from weighbridge.gateways.capabilities.session import buckets_of

PROGRAM: Final = "weighbridge.gateways.capabilities.ask_store"
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


@dataclass
class Asked:
    """What a store answered, by the capabilities' keys."""

    answers: dict[str, Answer] = field(default_factory=dict)
    died: TargetError | None = None
    """Why nothing more could be asked: the daemon that ended, with its log."""
    left: tuple[str, ...] = ()
    """What could not be deleted."""


class AskingProgram:
    """The program on the client host; a context manager that ends it."""

    def __init__(self, client: Host, order: AskingOrder, log: Path) -> None:
        command = client.module(PROGRAM)
        self._process = client.spawn(command.argv, stderr=log, env=command.env)
        self._lines = ProgramLines(self._process)
        self._within_s = 2 * order.deadline_s + ALIVE_WITHIN_S + _GRACE_S
        self._first = order.model_dump_json() + "\n"
        self._failed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process, within_s=_FAILED_ENDS_S if self._failed else _ENDS_S)

    def ask(self, capability: Capability) -> CapabilityReply:
        """Ask one capability. Raises NoLine: nothing more is to be asked of this program then."""
        self._failed = True
        self._lines.send(f"{self._first}{capability.key}", self._within_s)
        self._first = ""
        reply = reply_of(self._lines.next(self._within_s), capability.key)
        self._failed = False
        return reply


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
    buckets: list[str],
    asking: Callable[[Capability], None] = lambda _: None,
    deadline_s: float = DEADLINE_S,
) -> None:
    """Ask these capabilities of the endpoints with their APIs, in this order; fills `asked`.

    `check` raises TargetError when a daemon of the gateway has died: the rest is then unknown.
    `buckets` gets the names of all buckets that may be made, before they are. `log` gets what the
    program says about itself, `asking` each capability before it is asked.
    """
    order = AskingOrder(
        endpoints=tuple(endpoints), prefix=prefix, program=0, own=own, deadline_s=deadline_s
    )
    served = {endpoint.api for endpoint in endpoints}
    waiting = [each for each in capabilities if each.api in served]
    for program in range(MOST_PROGRAMS):
        if not waiting or asked.died is not None:
            break
        buckets[:] = buckets_of(prefix, program + 1)
        order = order.model_copy(update={"program": program})
        with AskingProgram(client, order, log) as asks:
            _ask_one_program(asks, waiting, asked, check, asking, log)
    why = "the program that asks failed repeatedly" if asked.died is None else _ended(asked.died)
    for each in waiting:
        asked.answers[each.key] = Answer(outcome="unknown", text=f"not asked: {why}")
    secrets = [secret for endpoint in endpoints for secret in endpoint.secrets]
    for key, answer in asked.answers.items():
        safe = {"code": redacted(answer.code, secrets), "text": redacted(answer.text, secrets)}
        asked.answers[key] = answer.model_copy(update=safe)
    asked.left = tuple(redacted(text, secrets) for text in asked.left)


def _ask_one_program(
    program: AskingProgram,
    waiting: list[Capability],
    asked: Asked,
    check: Callable[[], None],
    asking: Callable[[Capability], None],
    log: Path,
) -> None:
    silent = 0
    while waiting and asked.died is None:
        capability = waiting.pop(0)
        key, api = capability.key, capability.api
        asking(capability)
        try:
            reply = program.ask(capability)
        except NoLine as error:
            text = f"the program that asks {error}; see {log}"
            asked.answers[key] = Answer(outcome="unknown", text=text)
            asked.died = _death(check)
            return
        asked.answers[key] = reply.answer
        asked.left += reply.left
        silent = 0 if reply.answered else silent + 1
        if silent == MOST_SILENT:
            asked.died = _death(check) or TargetError(
                f"the {api} API did not answer {silent} questions in a row, up to {key}"
            )
            return
        if not reply.alive:
            asked.died = _death(check, within_s=_DIES_WITHIN_S) or TargetError(
                f"the {api} API has not answered since {key} was asked"
            )
        elif reply.answer.outcome == "unknown":
            asked.died = _death(check)
        if asked.died is not None:
            blame = {"outcome": "unknown", "text": f"{_ended(asked.died)} when this was asked"}
            asked.answers[key] = reply.answer.model_copy(update=blame)


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
