"""Become a program that cannot set the clock and ends with its parent: `installation_start.py
PARENT-PID COMMAND ...`.

Run by path and without this project: only the standard library is imported. Both are properties of
a process, set here in a process that then becomes the program, rather than between fork and exec of
a parent with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAP_SYS_TIME = 25


def main(parent: int, command: list[str]) -> None:
    """Drop the capability, ask for SIGKILL at the parent's death, and become the command."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent has ended already")
    # A process that may not drop it from the bounding set does not have it; the parent checks.
    prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    os.execv(command[0], command)  # noqa: S606 - an argv list of the parent's, no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
