"""`python -m weighbridge.drivers.locust`: the driver, which speaks `drivers.protocol`.

`python -m weighbridge.drivers.locust worker ADDRESS PORT NUMBER [PARENT]` is a worker process of
its Locust master. The master is the parent of those on its own host; the conductor starts the
others.
"""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Be the driver or one of its worker processes. Returns the exit status."""
    # Events go to the real stdout; everything else that is printed in this process goes to stderr.
    events = os.dup(1)
    os.dup2(2, 1)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
    )
    for chatty in ("locust", "urllib3", "botocore", "boto3", "swiftclient", "requests"):
        # Locust warns of every fast start of users, which is wanted here; swiftclient logs every
        # failed request.
        logging.getLogger(chatty).setLevel(logging.ERROR)
    # Each worker is a connection, and beyond capacity there are thousands: the usual soft limit of
    # 1024 open files is too low.
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    if argv[1:2] == ["worker"]:
        return be_worker(argv[2], *(int(word) for word in argv[3:6]))
    from weighbridge.drivers.locust.loop import drive  # noqa: PLC0415 - imports Locust, which patches the process it is in

    return drive(0, events)


def be_worker(address: str, port: int, number: int, parent: int | None = None) -> int:
    """Be worker process `number` of a Locust master, until stdin closes or `parent` ends."""
    if parent is not None:
        # It must not outlive even a parent that is killed.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return 1
    import gevent  # noqa: PLC0415 - as above
    import gevent.queue  # noqa: PLC0415

    from weighbridge.drivers.locust.loop import LoopEnd, read_lines  # noqa: PLC0415
    from weighbridge.drivers.locust.worker_main import serve  # noqa: PLC0415
    from weighbridge.drivers.protocol import Joining  # noqa: PLC0415

    inbox = gevent.queue.Queue()
    ending = LoopEnd()
    ending.on_signals()
    gevent.spawn(read_lines, 0, inbox, ending)
    serve(Joining.model_validate_json(inbox.get()), address, port, number, ending.event)
    return ending.code


if __name__ == "__main__":
    code = main(sys.argv)
    sys.stderr.flush()
    # A native thread still waits for stdin; all else has ended, so it need not be waited for.
    os._exit(code)
