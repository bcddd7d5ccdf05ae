"""Files that are locked: whoever can open one, if only to read it, can hold its lock, and with it
everybody who waits for that.
"""

from __future__ import annotations

import os
from pathlib import Path

from weighbridge.common import inside


def open_lock(path: Path, flags: int = 0) -> int:
    """A descriptor of a file that is to be locked, made where it is missing; this user alone can
    open it. Raises OSError.
    """
    descriptor = inside.opened(path.parent, path.name, os.O_RDWR | os.O_CREAT | flags, mode=0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)  # one that an earlier version made
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
