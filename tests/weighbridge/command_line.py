"""For tests: the command as its own process."""

import os
import subprocess
import sys
from pathlib import Path


def weighbridge(*arguments: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weighbridge", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={
            **os.environ,
            "WEIGHBRIDGE_HOME": str(folder / "home"),
            "WEIGHBRIDGE_STATE": str(folder / "state"),
            **env,
        },
    )
