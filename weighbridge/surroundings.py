"""Where the command keeps things on this machine, from the environment, read once at the edge."""

from __future__ import annotations

import os
from pathlib import Path

from weighbridge.common.errors import MissingMeans
from weighbridge.topologies.deployment import StatePlace


def place() -> StatePlace:
    """$WEIGHBRIDGE_HOME and $WEIGHBRIDGE_STATE, else the system's folders for root and the user's
    own for others.

    Raises MissingMeans where a folder of these cannot be looked into, or is not known.
    """
    home, state = _usable("WEIGHBRIDGE_HOME"), _usable("WEIGHBRIDGE_STATE")
    return StatePlace(home=home, state=state)


def _usable(variable: str) -> Path:
    """The folder that a variable names, or that is its default; there may be none yet."""
    advice = f"Set {variable} to a folder that this user can write."
    try:
        folder = Path(os.environ.get(variable) or _default(variable)).absolute()
        there = folder.exists()
    except RuntimeError as error:  # what Python raises of a user without a home folder
        raise MissingMeans(
            f"where to keep hosts and images is not known: {error}", advice=advice
        ) from error
    except OSError as error:
        raise MissingMeans(
            f"{error.filename or 'the working folder'}: {error.strerror}", advice=advice
        ) from error
    if there and not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
        raise MissingMeans(f"{folder}: this user cannot look into it", advice=advice)
    return folder


def _default(variable: str) -> Path:
    if os.geteuid() == 0:
        return Path(
            "/var/lib/weighbridge" if variable == "WEIGHBRIDGE_HOME" else "/run/weighbridge"
        )
    base = (
        Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "weighbridge"
    )
    return base if variable == "WEIGHBRIDGE_HOME" else base / "run"
