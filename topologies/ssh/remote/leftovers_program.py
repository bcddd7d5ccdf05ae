"""What deployments have on a host: claim, labelled processes, folders, suites. stdout is JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LABEL = b"WEIGHBRIDGE_DEPLOYMENT="


def labelled() -> dict[str, int]:
    """The number of processes of each deployment."""
    found: dict[str, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is a kernel thread
            continue
        for one in variables:
            if one.startswith(LABEL):
                label = one[len(LABEL) :].decode(errors="replace")
                found[label] = found.get(label, 0) + 1
    return found


def look(folder: Path) -> dict[str, Any]:
    """See `topologies.ssh.leftovers`."""
    claim = folder / "claim.json"
    deployments = folder / "deployments"
    folders = deployments.iterdir() if deployments.is_dir() else ()
    return {
        "claim": claim.read_text(encoding="utf-8") if claim.is_file() else None,
        "processes": labelled(),
        "folders": sorted(path.name for path in folders),
        "suites": sorted(path.name for path in folder.glob("suite-*")),
    }


if __name__ == "__main__":
    json.dump(look(Path(sys.argv[1])), sys.stdout)
