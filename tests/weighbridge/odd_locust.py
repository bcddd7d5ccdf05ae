"""Locust's driver on hosts with odd clocks, and with a shorter wait for a lost process than 10 s.

No two processes agree on any clock that Python reads, and the wall clock goes backwards: whatever
relies on them is wrong.
"""

from __future__ import annotations

import os
import random
import sys
import time

ANSWER_S = 8.0


def odd_clocks() -> None:
    """Call this before importing anything that binds a clock."""
    steady, precise = time.monotonic, time.perf_counter
    ahead_s = random.uniform(0, 1e6)
    time.monotonic = lambda: steady() + ahead_s
    time.perf_counter = lambda: precise() + ahead_s
    time.time = lambda: 2e9 - ahead_s - steady()


if __name__ == "__main__":
    odd_clocks()
    from weighbridge.drivers.locust import __main__, load_runner

    load_runner.ANSWER_S = ANSWER_S
    code = __main__.main(sys.argv)
    sys.stderr.flush()
    os._exit(code)
