"""Where the command keeps things on this machine, from the environment, read once at the edge."""

from __future__ import annotations

import os
from pathlib import Path

from topologies.deployment import Place


def place() -> Place:
    """$WEIGHBRIDGE_HOME and $WEIGHBRIDGE_STATE, else the system's folders for root and the user's own for others."""
    if os.geteuid() == 0:
        home, state = Path("/var/lib/weighbridge"), Path("/run/weighbridge")
    else:
        base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        home, state = base / "weighbridge", base / "weighbridge" / "run"
    home = Path(os.environ.get("WEIGHBRIDGE_HOME", home)).absolute()
    return Place(home=home, state=Path(os.environ.get("WEIGHBRIDGE_STATE", state)).absolute())
