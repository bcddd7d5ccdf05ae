"""Apache's graceful restart, as a program on its host, which ends when the new child processes have
taken the place of the old.

Arguments: Apache's configuration file, its PidFile, ThreadsPerChild, MinSpareThreads and the
seconds that it may take. It waits until every child process of before has ended, and others are
there with all their threads, which are as many as are to be spare. Prints `{"ended": number,
"came": number}`, child processes. Ends with 3, and words on stderr, when it is not so at the
deadline; with what Apache's own program ends with, and its words, when it refuses the file: Apache
then serves on as it did.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

LOOK_EVERY_S = 0.05
LEFT = 3


def children(parent: int) -> dict[int, str]:
    """Child processes by number, each with when it started, since numbers come back."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended while it was looked at
            continue
        if int(fields[1]) == parent:
            found[int(entry.name)] = fields[19]
    return found


def threads(child: int) -> int:
    """How many threads a process has; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{child}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Threads:")), 0)


def main() -> int:
    """Restart and wait; exit status."""
    conf, pid_file = sys.argv[1], Path(sys.argv[2])
    each, spare, within_s = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    parent = int(pid_file.read_text())
    before = children(parent)
    done = subprocess.run(
        ["apache2", "-f", conf, "-k", "graceful"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        return done.returncode
    deadline = time.monotonic() + within_s
    while True:
        now = children(parent).items()
        left = now & before.items()
        came = now - before.items()
        # A process has its first thread and the one that listens beside those that serve.
        ready = [child for child, _ in came if threads(child) > each]
        if not left and len(ready) == len(came) and len(ready) * each >= max(spare, 1):
            break
        if time.monotonic() > deadline:
            what = (
                f"{len(left)} of {len(before)} old child processes are left, {len(ready)} of "
                f"{len(came)} new ones are ready"
            )
            sys.stderr.write(what)
            return LEFT
        time.sleep(LOOK_EVERY_S)
    sys.stdout.write(json.dumps({"ended": len(before), "came": len(ready)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
