"""The claim on a host: `take`, `read`, `write` or `release` it below a folder; stdin is the claim.

stdout is JSON: `{"taken": CLAIM}` where another has it, `{"claim": CLAIM}` where there is one now,
else `{}`; a CLAIM is JSON text.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from pathlib import Path
from typing import Any

FILE = "claim.json"


def answer(verb: str, folder: Path, given: Any) -> dict[str, str]:
    """Do what `verb` says, under a lock that is held for moments; the file alone is the claim."""
    if verb == "read" and not folder.is_dir():
        return {}
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    path = folder / FILE
    try:
        there: str | None = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        there = None
    if verb == "take" and there is not None:
        return {"taken": there}
    if verb == "read":
        return {} if there is None else {"claim": there}
    if verb == "take":
        given["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return write(path, given)
    if there is None or not same(there, given):
        return {}
    if verb == "release":
        path.unlink()
        return {}
    return write(path, given)


def same(there: str, given: Any) -> bool:
    """Whether the present claim is of the same deployment."""
    try:
        return bool(json.loads(there)["deployment"] == given["deployment"])
    except (ValueError, KeyError, TypeError):
        return False


def write(path: Path, given: Any) -> dict[str, str]:
    """Write it atomically and to the disk: it must survive a power failure."""
    text = json.dumps(given)
    draft = path.with_suffix(".partial")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    draft.replace(path)
    return {"claim": text}


if __name__ == "__main__":
    json.dump(answer(sys.argv[1], Path(sys.argv[2]), json.load(sys.stdin)), sys.stdout)
