"""The loop of a probe's program: it tells each second what a daemon counts, on the daemon's host
(see gateways.probe).

It is shipped with the programs that use it: good for Python 3.9, and of nothing but its own
library.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Callable, Mapping

EVERY_S = 1.0


def tell(
    look: Callable[[], Mapping[str, float]],
    about: str,
    errors: tuple[type[Exception], ...] = (OSError, ValueError),
) -> None:
    """Print what `look` sees as a line of JSON, at once and then every second, until stdin ends.

    A second in which it raises one of `errors` has no line; stderr says why, of what it is `about`.
    """
    due = time.monotonic()
    while True:
        try:
            sys.stdout.write(json.dumps(look()) + "\n")
            sys.stdout.flush()
        except errors as error:
            sys.stderr.write(f"{about}: {str(error) or repr(error)}\n")
            sys.stderr.flush()
        # Seconds that were missed are not made up for.
        due = max(due + EVERY_S, time.monotonic())
        if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            return
