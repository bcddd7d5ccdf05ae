"""This suite on real hosts that make load: a virtual environment below the folder of deployments,
made once and used by every run.

It is named by what is in it, so that a changed suite gets another, and has that name only when it
is whole.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed, MissingMeans, TargetError
from weighbridge.common.host import Command
from weighbridge.common.locks import open_lock
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.hardware import Hardware, SshAccess
from weighbridge.topologies.ssh import wheels
from weighbridge.topologies.ssh.shell import Shell
from weighbridge.topologies.ssh.there import ask
from weighbridge.topologies.ssh.wheels import Python

NAME: Final = "suite"
WHEELHOUSE: Final = "wheelhouse"
"""Folder of this machine with what is sent to clients."""
OLDEST: Final = (3, 11)
INSTALL_S: Final = 900.0
LEVEL: Final = 1
"""Of compression: 97 MB become 43 MB in 2.5 s, 39 MB in twice that at level 6; it is made once and
unpacked in 0.7 s.
"""
ROOM_BYTES: Final = 400 * 2**20
"""What a suite takes while it is made: what is sent, and what becomes of it."""


class HostPython(Record):
    """A host's Python, and what it can do."""

    python: Python
    full: str
    """Such as 3.11.2."""
    missing: tuple[str, ...] = ()
    """Modules of Python's own library that are not there, such as ensurepip."""
    free_bytes: int
    """In the folder of deployments."""


def look(shell: Shell, access: SshAccess) -> HostPython:
    """A host's Python. Raises TargetError."""
    return HostPython.model_validate(ask(shell, "suite", "look", access.folder))


def fault(shell: Shell, access: SshAccess, found: HostPython) -> str:
    """Why a suite cannot be had there, and how it could; empty when it can."""
    where = f"{shell.name} ({shell.address})"
    if tuple(int(part) for part in found.python.version.split(".")) < OLDEST:
        return (
            f"{where}: {access.python} is Python {found.full}, and clients need 3.11 or later: "
            "install one beside it, and "
            "say which it is (ssh: python)"
        )
    if found.missing:
        package = f"python{found.python.version}-venv"
        return (
            f"{where}: its Python {found.full} has no {', '.join(found.missing)}: install it "
            f"(Debian and Ubuntu: {package})"
        )
    if found.free_bytes < ROOM_BYTES:
        return (
            f"{where}: {access.folder} has {show_bytes(found.free_bytes)} of room, and the "
            f"suite needs {show_bytes(ROOM_BYTES)}"
        )
    return ""


def ensure(shell: Shell, hardware: Hardware, home: Path, say: Say) -> Command:
    """Have this suite on a host; returns what runs a module of it there, with `-m` and the module
    to come.

    `home` keeps what is sent, so that it is made once for all hosts of a kind. Raises MissingMeans
    about what the host or this machine lacks for it, CommandFailed or TargetError when it cannot be
    put there.
    """
    access = hardware.access
    found = look(shell, access)
    folder = f"{access.folder}/{NAME}-{wheels.key(found.python)}"
    command = Command((f"{folder}/bin/python",), {"PYTHONSAFEPATH": "1"})
    if shell.sh('if [ -x "$1" ]; then echo there; fi', command.argv[0]).stdout.strip():
        return command
    wrong = fault(shell, access, found)
    if wrong:
        raise MissingMeans(
            wrong, advice="`weighbridge doctor --hardware FILE --install` installs what can be."
        )
    sent = packed(found.python, home / WHEELHOUSE).read_bytes()
    say(f"{shell.name}: putting this suite there ({len(sent) / 1e6:.0f} MB), once for all runs")
    try:
        shell.sh(_INSTALL, folder, access.python, *wheels.MODULES, stdin=sent, timeout_s=INSTALL_S)
    except CommandFailed as error:
        tail = "\n".join(error.output.splitlines()[-8:])
        raise TargetError(
            f"{shell.name} ({shell.address}): this suite could not be installed below "
            f"{access.folder}:\n{tail}",
            advice="Where its C library is older than this machine's, its system is too old for a "
            "client.",
        ) from error
    return command


def packed(python: Python, store: Path) -> Path:
    """All wheels of a suite as one compressed tar in `store`, made when it is not there; those of
    other versions are removed.

    It takes its name when it is whole. Raises MissingMeans as `wheels.wheelhouse`.
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


def sweep(shell: Shell, folder: str, *, whole: bool = False) -> tuple[str, ...]:
    """Remove suites that were not finished, or all of them; returns their folders."""
    removed: list[str] = ask(
        shell, "suite", "sweep", folder, "all" if whole else "partial", timeout_s=120
    )
    return tuple(removed)


def suites(shell: Shell, folder: str, *, whole: bool = False) -> tuple[str, ...]:
    """The folders that `sweep` would remove."""
    there: list[str] = ask(shell, "suite", "list", folder, "all" if whole else "partial")
    return tuple(there)


# It gets its name when every module can be imported. No package index is asked: what is not in the
# wheelhouse is an error. Of earlier suites two are left: only the deployment that has claimed the
# host uses one, and that is this.
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
