"""Installing this suite on real hosts that make load: a virtual environment below the folder of
deployments, made once for all runs.

Its name has a hash of its content, so that a changed suite gets another; it gets its name when it
is complete.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError
from weighbridge.common.host import Command
from weighbridge.common.locks import open_lock
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.real_host import SshAccess
from weighbridge.topologies.ssh import wheels
from weighbridge.topologies.ssh.remote import run_remote
from weighbridge.topologies.ssh.shell import Shell
from weighbridge.topologies.ssh.wheels import Python

NAME: Final = "suite"
WHEELHOUSE: Final = "wheelhouse"
"""Folder on this machine of archives for clients."""
OLDEST: Final = (3, 11)
INSTALL_TIMEOUT_S: Final = 900.0
LEVEL: Final = 1
"""Compression level: 97 MB become 43 MB in 2.5 s, or 39 MB at level 6 in twice that time. It is
packed once and unpacked in 0.7 s.
"""
ROOM_BYTES: Final = 400 * 2**20
"""Space to install a suite: the archive and what becomes of it."""


class HostPython(Record):
    """A host's Python and what it can do."""

    python: Python
    full: str
    """The full version, such as 3.11.2."""
    missing: tuple[str, ...] = ()
    """Missing modules of the standard library, such as ensurepip."""
    free_bytes: int
    """Free space in the folder of deployments."""


def look(shell: Shell, access: SshAccess) -> HostPython:
    """A host's Python. Raises TargetError."""
    return HostPython.model_validate(run_remote(shell, "suite", "look", access.folder))


def fault(shell: Shell, access: SshAccess, found: HostPython) -> str:
    """Why a suite cannot be installed there, with advice; empty: it can."""
    where = f"{shell.name} ({shell.address})"
    if tuple(int(part) for part in found.python.version.split(".")) < OLDEST:
        return (
            f"{where}: {access.python} is Python {found.full}, and clients need 3.11 or later: "
            "install one beside it, and name it (ssh: python)"
        )
    if found.missing:
        package = f"python{found.python.version}-venv"
        return (
            f"{where}: its Python {found.full} has no {', '.join(found.missing)}: install it "
            f"(Debian and Ubuntu: {package})"
        )
    if found.free_bytes < ROOM_BYTES:
        return (
            f"{where}: {access.folder} has {show_bytes(found.free_bytes)} of free space, and the "
            f"suite needs {show_bytes(ROOM_BYTES)}"
        )
    return ""


def ensure(shell: Shell, hardware: Hardware, home: Path, say: Say) -> Command:
    """Install this suite on a host if needed; returns the command that runs a module there with
    `-m`.

    `home` keeps the archive for all hosts with the same Python. Raises MissingPrerequisite about
    what the host or this machine lacks, CommandFailed or TargetError when installing fails.
    """
    access = hardware.access
    found = look(shell, access)
    folder = f"{access.folder}/{NAME}-{wheels.key(found.python)}"
    command = Command((f"{folder}/bin/python",), {"PYTHONSAFEPATH": "1"})
    if shell.sh('if [ -x "$1" ]; then echo there; fi', command.argv[0]).stdout.strip():
        return command
    wrong = fault(shell, access, found)
    if wrong:
        advice = "`weighbridge doctor --hardware FILE` lists what to install."
        raise MissingPrerequisite(wrong, advice=advice)
    archive = packed(found.python, home / WHEELHOUSE).read_bytes()
    size = f"{len(archive) / 1e6:.0f} MB"
    say(f"{shell.name}: installing this suite ({size}), once for all runs")
    try:
        words = (folder, access.python, *wheels.MODULES)
        shell.sh(_INSTALL, *words, stdin=archive, timeout_s=INSTALL_TIMEOUT_S)
    except CommandFailed as error:
        tail = "\n".join(error.output.splitlines()[-8:])
        raise TargetError(
            f"{shell.name} ({shell.address}): this suite could not be installed below "
            f"{access.folder}:\n{tail}",
            advice="If its C library is older than this machine's, its system is too old for a "
            "client.",
        ) from error
    return command


def packed(python: Python, store: Path) -> Path:
    """All wheels of a suite as one compressed archive in `store`, made if it is missing; archives
    of other versions are removed.

    It gets its name when it is complete. Raises MissingPrerequisite as `wheels.wheelhouse`.
    """
    store.mkdir(parents=True, exist_ok=True)
    path = store / f"{NAME}-{python.soabi}-{wheels.key(python)}.tar.gz"
    with os.fdopen(open_lock(store / "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path
        for other in (*store.glob(f"{NAME}-{python.soabi}-*"), *store.glob(".making-*")):
            shutil.rmtree(other) if other.is_dir() else other.unlink()
        with tempfile.TemporaryDirectory(prefix=".making-", dir=store) as folder:
            draft = Path(folder) / "packed"
            with tarfile.open(draft, "w:gz", compresslevel=LEVEL) as archive:
                (Path(folder) / "wheels").mkdir()
                for one in wheels.wheelhouse(python, Path(folder) / "wheels"):
                    archive.add(one, one.name)
            draft.rename(path)
    return path


def sweep(shell: Shell, folder: str, *, include_suites: bool = False) -> None:
    """Remove unfinished suites, or all of them."""
    which = "all" if include_suites else "partial"
    run_remote(shell, "suite", "sweep", folder, which, timeout_s=120)


# It gets its name when every module can be imported. No package index is asked: a package that is
# not in the archive is an error. Two earlier suites are kept; only the deployment that has claimed
# the host uses a suite, and that is this one.
_INSTALL: Final = """
folder=$1 python=$2
shift 2
partial=$folder.partial
umask 022
rm -rf "$partial"
mkdir -p "$partial/wheels"
trap 'rm -rf "$partial"' EXIT
tar -xzf - -C "$partial/wheels"
"$python" -m venv "$partial"
"$partial/bin/python" -I -m pip --disable-pip-version-check --no-cache-dir \
  install --quiet --no-index --find-links "$partial/wheels" weighbridge >&2
for module in "$@"; do echo "import $module"; done | "$partial/bin/python" -I -
rm -rf "$partial/wheels" "$folder"
mv "$partial" "$folder"
trap - EXIT
ls -dt "${folder%/*}"/suite-* | tail -n +4 | while read -r old; do rm -rf "$old"; done
"""
