"""A driver of COSBench on a further client: `python -m weighbridge.drivers.cosbench driver HOME
ADDRESS` prints its URL when it answers.

It ends, and the driver with it, when its stdin closes, at a signal, or when the driver has ended.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import NoReturn

from weighbridge.common.errors import WeighbridgeError
from weighbridge.drivers.cosbench.installation import Installation

EXIT_FAILED = 3
LOOK_S = 0.5

log = logging.getLogger(__name__)


def serve(home: str, address: str, stdin: int, stdout: int) -> int:
    """Be such a driver until told to end. Returns the exit status."""
    over = threading.Event()

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        over.set()
        sys.exit(0 if number == signal.SIGHUP else 128 + number)

    def read() -> None:
        while os.read(stdin, 65536):
            pass
        # To the main thread, whatever it waits for: COSBench may still be starting.
        os.kill(os.getpid(), signal.SIGHUP)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    threading.Thread(target=read, name="stdin", daemon=True).start()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="weighbridge-cosbench-") as folder,
            Installation(
                Path(home),
                address,
                Path(folder) / "cosbench",
                lambda text: log.info("%s", text),
                parts=("driver",),
            ) as one,
        ):
            os.write(stdout, f"{one.driver}\n".encode())
            while not over.wait(LOOK_S):
                one.check()
    except WeighbridgeError as error:
        log.error("%s", error)  # noqa: TRY400 - the words alone are wanted
        return EXIT_FAILED
    return 0
