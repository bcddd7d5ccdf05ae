"""Locust's driver as it is, but for requests that may take a second only: what waits for a timeout waits a minute otherwise."""

from __future__ import annotations

import os
import sys

from drivers.locust import loop
from drivers.locust.__main__ import main
from drivers.order import Ready, Setup

TIMEOUT_S = 0.6


class ImpatientLoop(loop.Loop):
    """The same, set up with another timeout."""

    def _set_up(self, order: Setup) -> Ready:
        return super()._set_up(order.model_copy(update={"request_timeout_s": TIMEOUT_S}))


if __name__ == "__main__":
    loop.Loop = ImpatientLoop  # type: ignore[misc]
    code = main(sys.argv)
    sys.stderr.flush()
    os._exit(code)
