"""Running commands of this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from weighbridge.common.errors import CommandFailed, MissingPrerequisite
from weighbridge.common.host import program_environment

HERE = "this machine"
"""The host that CommandFailed names."""


def command(argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60) -> str:
    """What a command of this machine prints. Raises CommandFailed, MissingPrerequisite."""
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            env=program_environment(),
        )
    except FileNotFoundError as error:
        raise MissingPrerequisite(
            f"{argv[0]} is missing", advice="run `weighbridge doctor` to see how to get it"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(HERE, argv, None, str(error.stdout or "")) from error
    if done.returncode:
        raise CommandFailed(HERE, argv, done.returncode, done.stdout + done.stderr)
    return done.stdout
