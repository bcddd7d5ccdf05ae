"""`python -m weighbridge.drivers.cosbench`: the driver, orders on stdin and events on stdout (see
drivers.order).

`python -m weighbridge.drivers.cosbench driver HOME ADDRESS` is a driver of COSBench itself on a
further client (see drivers.cosbench.further_driver).
"""

from __future__ import annotations

import logging
import os
import sys


def main(argv: list[str]) -> int:
    """Be the driver, or one of COSBench's own. Returns the exit status."""
    # Events go where stdout went; whatever else is printed here, by whomever, goes to stderr.
    events = os.dup(1)
    os.dup2(2, 1)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
    )
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    if argv[1:2] == ["driver"]:
        from weighbridge.drivers.cosbench.further_driver import serve  # noqa: PLC0415 - as below

        return serve(argv[2], argv[3], 0, events)
    from weighbridge.drivers.cosbench.loop import drive  # noqa: PLC0415 - what it imports may print

    return drive(0, events)


if __name__ == "__main__":
    code = main(sys.argv)
    sys.stderr.flush()
    # A thread still waits for stdin; everything of ours has ended, so nothing is lost by not
    # waiting for it.
    os._exit(code)
