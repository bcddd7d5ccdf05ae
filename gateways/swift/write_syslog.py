"""Appends lines of /dev/log to a file: Swift's servers log to syslog, which hosts lack."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path

DEVICE = "/dev/log"


def main() -> None:
    """Read until killed."""
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    # Bound under another name first, so that /dev/log is writable by every user as soon as it
    # exists.
    wire.bind(f"{DEVICE}.new")
    Path(f"{DEVICE}.new").chmod(0o666)
    Path(f"{DEVICE}.new").rename(DEVICE)
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    while True:
        message = wire.recv(65536).rstrip(b"\0\n")
        os.write(log, re.sub(rb"^<[0-9]+>", b"", message) + b"\n")


if __name__ == "__main__":
    main()
