"""Locust's driver with a request timeout below its minute, which tests would wait for.

`python -m tests.weighbridge.impatient_locust [SECONDS]`
"""

from __future__ import annotations

import os
import sys

from weighbridge.drivers.locust import loop
from weighbridge.drivers.locust.__main__ import main
from weighbridge.drivers.protocol import Ready, Setup

TIMEOUT_S = float(sys.argv[1]) if len(sys.argv) > 1 else 0.6


class ImpatientLoop(loop.LocustLoop):
    """The driver, set up with another timeout."""

    def _set_up(self, order: Setup) -> Ready:
        return super()._set_up(order.model_copy(update={"request_timeout_s": TIMEOUT_S}))


if __name__ == "__main__":
    loop.LocustLoop = ImpatientLoop  # type: ignore[misc]
    code = main(sys.argv[:1])
    sys.stderr.flush()
    os._exit(code)
