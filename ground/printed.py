"""What tools print, where it is JSON: an object, with whatever the tool says before it left out."""

from __future__ import annotations

import json
from typing import Any

from ground.errors import WeighbridgeError


def json_object(tool: str, told: str, error: type[WeighbridgeError]) -> dict[str, Any]:
    """The object of JSON that a tool printed, from the first `{` on: fio warns and `rados bench` tells of hints before it.

    Raises `error`, with what was printed, when there is none.
    """
    try:
        found = json.loads(told[max(0, told.find("{")) :])
    except ValueError as wrong:
        raise error(f"{tool}: what it printed is not JSON ({wrong}): {told[:300]!r}") from wrong
    if not isinstance(found, dict):
        raise error(f"{tool}: what it printed is not an object of JSON: {told[:300]!r}")
    return found
