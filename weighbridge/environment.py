from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from weighbridge.common.errors import MissingPrerequisite, UsageError
from weighbridge.common.quantities import Seconds
from weighbridge.conductor.quiet import PATIENCE_S
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.requirements import HostRequirement, lab_requirements

PATIENCE: Final = "WEIGHBRIDGE_PATIENCE"


def place() -> StateFolders:
    """$WEIGHBRIDGE_HOME and _STATE, else root's or the user's own. Raises MissingPrerequisite."""
    return StateFolders(home=_readable("WEIGHBRIDGE_HOME"), state=_readable("WEIGHBRIDGE_STATE"))


def patience_s() -> float:
    """Seconds to wait for a quiet machine: $WEIGHBRIDGE_PATIENCE, `10m`. Raises UsageError."""
    given = os.environ.get(PATIENCE, "")
    if not given:
        return PATIENCE_S
    try:
        return TypeAdapter[float](Seconds).validate_python(given)
    except ValidationError as error:
        raise UsageError(
            f"${PATIENCE} is {given!r}: {error.errors()[0]['msg'].removeprefix('Value error, ')}",
            advice="Give a time, such as 10m, or 0s not to wait.",
        ) from None


def requirements(hardware: Hardware, place: StateFolders) -> tuple[HostRequirement, ...]:
    """What hosts of this hardware require of this machine; nothing for pretended hosts."""
    if hardware.of.by_ssh:
        from weighbridge.topologies.ssh.requirements import here  # noqa: PLC0415 - only for SSH hosts

        return here(hardware)
    return lab_requirements(hardware, home=place.home) if hardware.of.contained else ()


def optional_tools() -> tuple[HostRequirement, ...]:
    """What only some options require."""
    return (
        HostRequirement(
            "perf",
            shutil.which("perf") is not None,
            "--perf: stacks of daemons, and the requests to a disk",
            "apt install linux-perf",
        ),
    )


def require(hardware: Hardware, place: StateFolders) -> None:
    """Raise MissingPrerequisite, in the words of `weighbridge doctor`, if a requirement is missing;
    UsageError if this user cannot write to the command's folders, or $WEIGHBRIDGE_PATIENCE is no
    time.
    """
    patience_s()
    # Images are read by users with fewer rights (apt's, while one is built); locks and claims are
    # nobody else's business.
    for folder, variable, mode in (
        (place.home, "WEIGHBRIDGE_HOME", 0o755),
        (place.state, "WEIGHBRIDGE_STATE", 0o700),
    ):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=mode)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise UsageError(
                f"cannot write to {folder}, the folder for hosts and images: {error.strerror}",
                advice=f"Set {variable} to a folder that this user can write to.",
            ) from error
    lacking = [one for one in requirements(hardware, place) if not one.found]
    if lacking:
        lines = [f"  {one.name}: {one.why}\n    {one.remedy}" for one in lacking]
        raise MissingPrerequisite(
            "this machine lacks:\n" + "\n".join(lines),
            advice="`weighbridge doctor` lists all requirements.",
        )


def _readable(variable: str) -> Path:
    """The folder of a variable, or its default; it need not exist yet."""
    advice = f"Set {variable} to a folder that this user can write to."
    try:
        folder = Path(os.environ.get(variable) or _default(variable)).absolute()
        if folder.exists() and not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
            why = "this user cannot read it" if folder.is_dir() else "it is not a folder"
            raise MissingPrerequisite(f"{folder}: {why}", advice=advice)
        _refuse_foreign(folder, variable)
    except RuntimeError as error:  # Python's, for a user without a home folder
        raise MissingPrerequisite(
            f"the folder for hosts and images is not known: {error}", advice=advice
        ) from error
    except OSError as error:
        raise MissingPrerequisite(
            f"{error.filename or 'the working folder'}: {error.strerror}", advice=advice
        ) from error
    return folder


def _refuse_foreign(folder: Path, variable: str) -> None:
    """Raise MissingPrerequisite where another user can change what a folder has: claims in it are
    obeyed, and images in it are started, by root as well.
    """
    own = (folder, folder.resolve())
    for path in (*own, *own[1].parents, *_steps_to(folder)):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        mode = 0 if stat.S_ISLNK(status.st_mode) else status.st_mode
        # In a folder such as /tmp nobody can replace what is another's.
        safe = not mode & 0o022 if path in own else not mode & 0o002 or mode & stat.S_ISVTX
        if status.st_uid in (0, os.geteuid()) and safe:
            continue
        raise MissingPrerequisite(
            f"{folder}: others could write to it: {path} belongs to uid {status.st_uid}, with "
            f"mode {stat.S_IMODE(status.st_mode):04o}",
            advice=f"Set {variable} to a folder that, like all above it, only this user or root "
            "may write to.",
        )


def _steps_to(folder: Path) -> Iterator[Path]:
    waiting, seen = [folder], set[Path]()
    while waiting:
        path = waiting.pop()
        for step in {path, *path.parents} - seen:
            seen.add(step)
            yield step
            if step.is_symlink():
                waiting.append(step.parent / step.readlink())


def _default(variable: str) -> Path:
    home = variable == "WEIGHBRIDGE_HOME"
    if os.geteuid() == 0:
        return Path("/var/lib/weighbridge" if home else "/run/weighbridge")
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "weighbridge" if home else base / "weighbridge" / "run"
