"""The driver's side of its orders: lines in, events out, one order after the other, whatever
becomes of each.
"""

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
from weighbridge.drivers.driver import GaveUp
from weighbridge.drivers.order import Event, Failed, Quit

EXIT_FAILED: Final = 3

log = logging.getLogger(__name__)


def answer_orders(
    lines: Iterable[bytes],
    orders: TypeAdapter[Any],
    answer: Callable[[Any], Event],
    say: Callable[[Event], None],
    secrets: Callable[[], Sequence[str]] = tuple,
) -> int:
    """Answer orders until Quit or the last line (0), or until one cannot be done (3). Returns the
    exit status.

    `orders` reads a line, `answer` gives the last event of an order, and `secrets` what no text of
    a library may tell anybody.
    """
    for line in lines:
        try:
            order = orders.validate_json(line)
        except ValidationError as error:
            # Without its input: the line may hold a key.
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            words = "; ".join(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:5]
            )
            say(Failed(message=f"the line is no order: {words}"))
            return EXIT_FAILED
        if isinstance(order, Quit):
            return 0
        try:
            say(answer(order))
        except WeighbridgeError as error:
            say(Failed(message=str(error), kept=error.kept if isinstance(error, GaveUp) else ()))
            return EXIT_FAILED
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered: silence would be waited for
            # As one text: handlers of logs are not ours to rely on, and what libraries say may
            # repeat a key.
            log.error("%s", redacted(traceback.format_exc(), secrets()))  # noqa: TRY400
            say(Failed(message=redacted(f"{type(error).__name__}: {error}", secrets())))
            return EXIT_FAILED
    return 0


def saying(descriptor: int, alone: Callable[[], None]) -> Callable[[Event], None]:
    """What says events as lines of a descriptor, from any thread; `alone` is called when nobody
    listens any more, which is how a conductor that died looks from a driver.
    """
    writing = threading.Lock()

    def say(event: Event) -> None:
        data = event.model_dump_json().encode() + b"\n"
        with writing:
            try:
                while data:
                    data = data[os.write(descriptor, data) :]
            except BrokenPipeError:
                alone()

    return say
