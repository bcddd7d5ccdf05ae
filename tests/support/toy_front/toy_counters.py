"""Reports the toy front's counters every second: `toy_counters.py COUNTS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from weighbridge.gateways.counter_loop import print_every_second

if __name__ == "__main__":
    print_every_second(lambda: json.loads(Path(sys.argv[1]).read_text()), "toy front")
