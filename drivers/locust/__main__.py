"""`python -m weighbridge.drivers.locust`: the driver, orders on stdin and events on stdout (see
drivers.order).

`python -m weighbridge.drivers.locust station ADDRESS PORT NUMBER [PARENT]` is a worker process of
its Locust master. The master starts those of its own host, of which it is the parent; the conductor
starts the others.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Be the driver or one of its stations. Returns the exit status."""
    # Events go where stdout went; whatever else is printed here, by whomever, goes to stderr.
    events = os.dup(1)
    os.dup2(2, 1)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
    )
    for chatty in ("locust", "urllib3", "botocore", "boto3", "swiftclient", "requests"):
        # Locust warns of every fast start of users, which is wanted here; swiftclient tells every
        # failed answer.
        logging.getLogger(chatty).setLevel(logging.ERROR)
    if argv[1:2] == ["station"]:
        return station(argv[2], *(int(word) for word in argv[3:6]))
    from weighbridge.drivers.locust.loop import drive  # noqa: PLC0415 - imports Locust, which patches the process it is in

    return drive(0, events)


def station(address: str, port: int, number: int, parent: int | None = None) -> int:
    """Be station `number` of the Locust master at this port of an address; ends with its stdin, and
    with `parent`.
    """
    if parent is not None:
        # Not even a parent that is killed leaves this behind.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return 1
    import gevent  # noqa: PLC0415 - as above
    import gevent.queue  # noqa: PLC0415

    from weighbridge.drivers.locust.cpu_allowance import allowance  # noqa: PLC0415
    from weighbridge.drivers.locust.loop import LoopEnd, read_lines  # noqa: PLC0415
    from weighbridge.drivers.locust.serving import serve  # noqa: PLC0415
    from weighbridge.drivers.order import Joining  # noqa: PLC0415

    inbox = gevent.queue.Queue()
    ending = LoopEnd()
    ending.on_signals()
    gevent.spawn(read_lines, 0, inbox, ending)
    serve(
        Joining.model_validate_json(inbox.get()), address, port, number, ending.event, allowance()
    )
    return ending.code


if __name__ == "__main__":
    code = main(sys.argv)
    sys.stderr.flush()
    # A native thread still waits for stdin; everything of ours has ended, so nothing is lost by not
    # waiting for it.
    os._exit(code)
