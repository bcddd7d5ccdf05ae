"""For tests: the command as its own process."""

import os
import subprocess
import sys
from pathlib import Path


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "weighbridge", *map(str, words)]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This process's environment, with the command's folders below `folder`."""
    home, state = str(folder / "home"), str(folder / "state")
    return {**os.environ, "WEIGHBRIDGE_HOME": home, "WEIGHBRIDGE_STATE": state, **more}


def weighbridge(*words: str | Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        capture_output=True,
        encoding=more.get("PYTHONIOENCODING", "utf-8"),
        check=False,
        timeout=600,
        env=environment(folder, **more),
    )
