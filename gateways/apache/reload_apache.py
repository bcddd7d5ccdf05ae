"""Apache's graceful restart, as a program on its host; ends when new processes have replaced the
old.

Arguments: Apache's configuration file, its PidFile, ThreadsPerChild, MinSpareThreads, the timeout
in seconds and Apache's program. Waits until every old child process has ended and the new ones have
all their threads, at least MinSpareThreads. Prints `{"ended": number, "new": number}`, child
processes. Exits with 3 and a message on stderr at the timeout; with the exit code and output of
Apache's own program when it refuses the file: Apache then continues as before.
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
    """Child processes by pid, with their start times, since pids are reused."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[1]) == parent:
            found[int(entry.name)] = fields[19]
    return found


def threads(child: int) -> int:
    """The number of threads of a process; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{child}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Threads:")), 0)


def main() -> int:
    """Restart and wait; exit status."""
    conf, pid_file = sys.argv[1], Path(sys.argv[2])
    each, spare, within_s = int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    apache = sys.argv[6]
    parent = int(pid_file.read_text())
    before = children(parent)
    done = subprocess.run(
        [apache, "-f", conf, "-k", "graceful"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        return done.returncode
    deadline = time.monotonic() + within_s
    while True:
        now = children(parent).items()
        left = now & before.items()
        new = now - before.items()
        # A process has its first thread and the listener beside the workers.
        ready = [child for child, _ in new if threads(child) > each]
        if not left and len(ready) == len(new) and len(ready) * each >= max(spare, 1):
            break
        if time.monotonic() > deadline:
            what = (
                f"{len(left)} of {len(before)} old child processes are left, {len(ready)} of "
                f"{len(new)} new ones are ready"
            )
            sys.stderr.write(what)
            return LEFT
        time.sleep(LOOK_EVERY_S)
    sys.stdout.write(json.dumps({"ended": len(before), "new": len(ready)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
