"""Locust's driver, whose worker processes on other clients cannot start."""

from __future__ import annotations

import os
import sys

from weighbridge.drivers.locust.__main__ import main

if __name__ == "__main__":
    if "worker" in sys.argv:
        sys.exit("there is no Locust here")
    code = main(sys.argv)
    sys.stderr.flush()
    os._exit(code)
