"""The main loop of a probe's program: prints a daemon's counters every second (see gateways.probe).

Shipped to hosts with the programs that use it: runs on Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Callable, Mapping

EVERY_S = 1.0


def print_every_second(
    look: Callable[[], Mapping[str, float]],
    about: str,
    errors: tuple[type[Exception], ...] = (OSError, ValueError),
) -> None:
    """Print the counters that `look` returns as a line of JSON every second, until stdin closes.

    A second in which it raises one of `errors` has no line; stderr gives the reason and `about`.
    """
    due = time.monotonic()
    while True:
        try:
            sys.stdout.write(json.dumps(look()) + "\n")
            sys.stdout.flush()
        except errors as error:
            sys.stderr.write(f"{about}: {str(error) or repr(error)}\n")
            sys.stderr.flush()
        # Missed seconds are not made up for.
        due = max(due + EVERY_S, time.monotonic())
        if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            return
