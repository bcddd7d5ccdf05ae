"""A worker process that makes no load: `stub_worker ADDRESS PORT NUMBER PARENT`."""

import os
import sys

if __name__ == "__main__":
    line = sys.stdin.readline()
    sys.stderr.write(f"{' '.join(sys.argv[1:4])} got {line}")
    sys.stderr.flush()
    if line.startswith("die"):
        os._exit(7)
    sys.stdin.read()
