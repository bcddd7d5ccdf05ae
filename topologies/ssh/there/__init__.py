"""Programs of this suite that run on a real host itself, outside of any deployment: one file each,
given to the host's Python.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weighbridge.common.errors import TargetError
from weighbridge.common.printed import json_value
from weighbridge.topologies.ssh.shell import Shell

_FOLDER = Path(__file__).resolve().parent


def ask(
    shell: Shell, program: str, *words: str, given: object = None, timeout_s: float = 60
) -> Any:
    """Run the program `{program}_there.py` with JSON on its stdin; returns what its stdout, JSON
    too, says.

    Such a program uses nothing but Python 3.9's own library and what every Linux host has. Raises
    CommandFailed or TargetError.
    """
    source = (_FOLDER / f"{program}_there.py").read_text(encoding="utf-8")
    done = shell.python(source, *words, stdin=json.dumps(given), timeout_s=timeout_s)
    return json_value(
        f"{shell.name} ({shell.address}): {program}_there.py", done.stdout, TargetError
    )
