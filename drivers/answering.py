"""The driver's side of the protocol (drivers.protocol): commands in, events out, one at a time."""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from weighbridge.common.credential import redacted
from weighbridge.common.errors import WeighbridgeError
from weighbridge.drivers.protocol import DriverFailure, Event, Failed, Quit

EXIT_FAILED: Final = 3

log = logging.getLogger(__name__)


def answer_commands(
    lines: Iterable[bytes],
    commands: TypeAdapter[Any],
    answer: Callable[[Any], Event],
    send: Callable[[Event], None],
    secrets: Callable[[], Sequence[str]] = tuple,
) -> int:
    """Answer commands until Quit or the last line (0), or until one fails (3); the exit status.

    `commands` parses a line, `answer` returns the last event of a command, and `secrets` are
    redacted from the texts of libraries.
    """
    for line in lines:
        try:
            command = commands.validate_json(line)
        except ValidationError as error:
            # Without its input: the line may hold a key.
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            reasons = "; ".join(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:5]
            )
            send(Failed(message=f"the line is not a valid command: {reasons}"))
            return EXIT_FAILED
        if isinstance(command, Quit):
            return 0
        try:
            send(answer(command))
        except WeighbridgeError as error:
            send(
                Failed(
                    message=str(error), kept=error.kept if isinstance(error, DriverFailure) else ()
                )
            )
            return EXIT_FAILED
        except Exception as error:  # noqa: BLE001 - every command is answered: the conductor waits for it
            # Redacted as one text: log handlers are not ours to rely on, and what libraries log
            # may repeat a key.
            log.error("%s", redacted(traceback.format_exc(), secrets()))  # noqa: TRY400
            send(Failed(message=redacted(f"{type(error).__name__}: {error}", secrets())))
            return EXIT_FAILED
    return 0


def event_writer(descriptor: int, unheard: Callable[[], None]) -> Callable[[Event], None]:
    """Writes events as lines, from any thread; `unheard` is called when the other end closes."""
    writing = threading.Lock()

    def send(event: Event) -> None:
        data = event.model_dump_json().encode() + b"\n"
        with writing:
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            except BrokenPipeError:
                unheard()

    return send
