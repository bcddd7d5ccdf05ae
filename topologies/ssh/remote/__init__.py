"""Programs of one file that a real host's Python runs, outside of any deployment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weighbridge.common.errors import TargetError
from weighbridge.common.tool_output import json_value
from weighbridge.topologies.ssh.connection import SshConnection

_FOLDER = Path(__file__).resolve().parent


def run_remote(
    shell: SshConnection, program: str, *words: str, given: object = None, timeout_s: float = 60
) -> Any:
    """Run `{program}_program.py` on a host with JSON on its stdin; returns the JSON on its stdout.

    Such a program needs only Python 3.9's standard library and what every Linux host has. Raises
    CommandFailed or TargetError.
    """
    name = f"{program}_program.py"
    source = (_FOLDER / name).read_text(encoding="utf-8")
    done = shell.python(source, *words, stdin=json.dumps(given), timeout_s=timeout_s)
    return json_value(f"{shell.name} ({shell.address}): {name}", done.stdout, TargetError)
