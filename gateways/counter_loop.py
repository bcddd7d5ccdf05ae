"""A probe's loop: a daemon's counters every second. Python 3.9's standard library alone."""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Callable, Mapping

EVERY_S = 1.0


def print_every_second(look: Callable[[], Mapping[str, float]], about: str) -> None:
    """Print what `look` returns as JSON every second; an OSError or ValueError goes to stderr."""
    due = time.monotonic()
    while True:
        try:
            sys.stdout.write(json.dumps(look()) + "\n")
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            sys.stderr.write(f"{about}: {str(error) or repr(error)}\n")
            sys.stderr.flush()
        # Missed seconds are not made up for.
        due = max(due + EVERY_S, time.monotonic())
        if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            return
