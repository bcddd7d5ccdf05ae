"""Running commands of this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from weighbridge.common.errors import CommandFailed, MissingPrerequisite
from weighbridge.common.host import Completed, program_environment

HERE = "this machine"
"""The host that CommandFailed names."""


def command(argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60) -> str:
    """What a command of this machine prints. Raises CommandFailed, MissingPrerequisite."""
    return completed(argv, stdin=stdin, timeout_s=timeout_s).stdout


def completed(
    argv: Sequence[str],
    *,
    stdin: str | bytes = "",
    timeout_s: float = 60,
    env: Mapping[str, str] | None = None,
    host: str = HERE,
    prefix: Sequence[str] = (),
) -> Completed:
    """A command that ended with status 0. Raises as `command`, with `host` and without `prefix`."""
    try:
        done = subprocess.run(
            [*prefix, *argv],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=program_environment() if env is None else env,
        )
    except FileNotFoundError as error:
        raise MissingPrerequisite(
            f"{argv[0]} is missing", advice="run `weighbridge doctor` to see how to get it"
        ) from error
    except subprocess.TimeoutExpired as error:
        printed = (error.stdout or b"").decode(errors="replace")
        raise CommandFailed(host, argv, None, printed) from error
    stdout, stderr = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
    if done.returncode:
        raise CommandFailed(host, argv, done.returncode, stdout + stderr)
    return Completed(stdout, stderr)
