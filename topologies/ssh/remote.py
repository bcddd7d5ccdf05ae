"""Questions to a real host, answered by a program of one file that its own Python runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weighbridge.common.errors import TargetError
from weighbridge.common.tool_output import json_value
from weighbridge.topologies.on_host import machine
from weighbridge.topologies.ssh.connection import SshConnection


def run_remote(
    shell: SshConnection, question: str, *words: str, given: object = None, timeout_s: float = 60
) -> Any:
    """The answer of `on_host/machine.py`, which gets `given`. Raises CommandFailed, TargetError."""
    source = Path(machine.__file__).read_text(encoding="utf-8")
    done = shell.python(source, question, *words, stdin=json.dumps(given), timeout_s=timeout_s)
    where = f"{shell.name} ({shell.address})"
    return json_value(f"{where}: machine.py {question}", done.stdout, TargetError)
