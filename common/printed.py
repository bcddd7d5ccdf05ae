"""What tools print, where it is JSON: any of it, or an object with whatever the tool says before it
left out.
"""

from __future__ import annotations

import json
from typing import Any

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.inert import inert


def json_value(tool: str, told: str | bytes, error: type[WeighbridgeError]) -> Any:
    """The JSON that a tool printed. Raises `error`, with what was printed, when it is none."""
    try:
        return json.loads(told)
    except (ValueError, RecursionError) as wrong:
        raise error(f"{tool}: what it printed is not JSON ({wrong}): {told[:300]!r}") from wrong


def json_object(tool: str, told: str, error: type[WeighbridgeError]) -> dict[str, Any]:
    """The object of JSON that a tool printed, from the first `{` on: fio warns and `rados bench`
    tells of hints before it.

    Raises `error`, with what was printed, when there is none.
    """
    try:
        found = json.loads(told[max(0, told.find("{")) :])
    except (ValueError, RecursionError) as wrong:
        raise error(f"{tool}: what it printed is not JSON ({wrong}): {told[:300]!r}") from wrong
    if not isinstance(found, dict):
        raise error(f"{tool}: what it printed is not an object of JSON: {told[:300]!r}")
    return found


def printable(told: object) -> str:
    """What a tool told, in a sentence: at most 300 characters, none that cannot be printed:

    JSON may hold halves of characters.
    """
    return inert(str(told)[:300])
