"""`python -m weighbridge.drivers.cosbench`: the driver, which speaks `drivers.protocol`.

`python -m weighbridge.drivers.cosbench driver HOME ADDRESS` is one of COSBench's own drivers on
another client (see drivers.cosbench.remote_drivers).
"""

from __future__ import annotations

import logging
import os
import sys


def main(argv: list[str]) -> int:
    """Be the driver, or one of COSBench's own. Returns the exit status."""
    # Events go to the real stdout; everything else that is printed in this process goes to stderr.
    events = os.dup(1)
    os.dup2(2, 1)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
    )
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    if argv[1:2] == ["driver"]:
        from weighbridge.drivers.cosbench.remote_drivers import serve  # noqa: PLC0415 - as below

        return serve(argv[2], argv[3], 0, events)
    from weighbridge.drivers.cosbench.loop import drive  # noqa: PLC0415 - what it imports may print

    return drive(0, events)


if __name__ == "__main__":
    code = main(sys.argv)
    sys.stderr.flush()
    # A thread still waits for stdin; all else has ended, so it need not be waited for.
    os._exit(code)
