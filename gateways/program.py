"""Small programs of this suite that run on the client host, started the same way everywhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def argv(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs `module` of this suite with the interpreter that runs now."""
    return (sys.executable, "-m", module, *arguments)


def environment() -> Mapping[str, str]:
    """What such a program needs to find this suite, wherever its working directory is."""
    return {"PYTHONPATH": str(_ROOT), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
