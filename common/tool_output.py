"""JSON that tools print, on its own or after other output."""

from __future__ import annotations

import json
from typing import Any

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.escaping import escape_controls


def json_value(tool: str, printed: str | bytes, error: type[WeighbridgeError]) -> Any:
    """The JSON that a tool printed. Raises `error`, with the output, if it is none."""
    try:
        return json.loads(printed)
    except (ValueError, RecursionError) as wrong:
        raise error(f"{tool}: what it printed is not JSON ({wrong}): {printed[:300]!r}") from wrong


def json_object(tool: str, printed: str, error: type[WeighbridgeError]) -> dict[str, Any]:
    """The JSON object in a tool's output, after any warnings. Raises `error` without one."""
    found = json_value(tool, printed[max(0, printed.find("{")) :], error)
    if not isinstance(found, dict):
        raise error(f"{tool}: what it printed is not a JSON object: {printed[:300]!r}")
    return found


def shortened(text: str, most: int = 600) -> str:
    """At most about `most` characters: of a longer text its beginning, which says what, and its
    end; what is quoted of a target is in between.
    """
    return text if len(text) <= most else f"{text[: most * 2 // 3]} ... {text[-most // 3 :]}"


def printable(printed: object) -> str:
    """At most 300 characters of a tool's output, all printable: JSON may hold lone surrogates."""
    return escape_controls(str(printed)[:300])
