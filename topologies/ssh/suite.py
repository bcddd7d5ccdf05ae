"""Installing this suite on real hosts that make load: a virtual environment below the folder of
deployments, made once for all runs.

Its name has a hash of its content, so that a changed suite gets another; it gets its name when it
is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError
from weighbridge.common.host import PYTHON, Command, program_environment
from weighbridge.common.paths import IMPORTED_FROM, PACKAGE, ROOMS
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.safe_files import open_lock
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.hardware import Hardware, SshAccess
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.remote import run_remote

# Nothing is built: the files of this suite with its compiled engine, and of each package that pip
# has installed, are the client's site-packages. With the same Python and machine type it runs this
# very code.


NEEDED: Final = (
    "asyncssh",
    "boto3",
    "click",
    "gevent",
    "hdrhistogram",
    "locust",
    "psutil",
    "pydantic",
    "python-swiftclient",
    "pyyaml",
)
"""What drivers, gateways' small programs and the null target import."""
_IMPORTED: Final = (
    "weighbridge.drivers.engine._native",
    "weighbridge.cli.stores",
    "asyncssh",
    "boto3",
    "swiftclient.client",
)
"""What is imported on a client, beside the programs of drivers and gateways, to check that its
suite is complete.
"""
_PROGRAM: Final = '\nif __name__ == "__main__":'
ENGINE: Final = "weighbridge/drivers/engine/_native.abi3.so"
"""The engine's name there: for Python's stable ABI (abi3-py311)."""
NAME: Final = "suite"
ARCHIVES: Final = "suites"
"""Folder on this machine of archives for clients."""
OLDEST: Final = (3, 11)
DOWNLOAD_TIMEOUT_S: Final = 900.0
INSTALL_TIMEOUT_S: Final = 900.0
LEVEL: Final = 1
"""Compression level: 97 MB become 43 MB in 2.5 s, or 39 MB at level 6 in twice that time. It is
packed once and unpacked in 0.7 s.
"""
ROOM_BYTES: Final = 400 * 2**20
"""Space to install a suite: the archive and what becomes of it."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


class Python(Record):
    """What distinguishes the Pythons of two machines for compiled packages."""

    version: str
    """Such as 3.11."""
    soabi: str
    """Such as cpython-311-x86_64-linux-gnu."""
    machine: str
    """Such as x86_64."""

    @classmethod
    def here(cls) -> Python:
        import platform  # noqa: PLC0415 - slower to import than the rest of this file
        import sysconfig  # noqa: PLC0415

        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return cls(
            version=version,
            soabi=str(sysconfig.get_config_var("SOABI")),
            machine=platform.machine(),
        )


def own_files() -> dict[str, Path]:
    """This suite's files by path in site-packages. Raises MissingPrerequisite without an engine."""
    found = {
        str(path.relative_to(IMPORTED_FROM)): path
        for folder in (PACKAGE, *(PACKAGE / room for room in ROOMS))
        for path in sorted(folder.rglob("*.py"))
        if not {"tests", "target", "src", "__pycache__"}.intersection(
            path.relative_to(PACKAGE).parts
        )
    }
    engines = sorted((PACKAGE / "drivers" / "engine").glob("_native*.so"))
    if not engines:
        raise MissingPrerequisite(
            "the engine of this suite is not built here, and clients need it",
            advice="run `make setup`",
        )
    # With several builds, Python loads the newest.
    return {**found, ENGINE: max(engines, key=lambda path: path.stat().st_mtime_ns)}


def modules() -> tuple[str, ...]:
    """What must be importable on a client: the programs of drivers and gateways, and more."""
    found = list(_IMPORTED)
    for name, path in own_files().items():
        room = name.split("/")[1]
        if (
            room in ("drivers", "gateways")
            and path.suffix == ".py"
            and _PROGRAM in path.read_text()
        ):
            found.append(name.removesuffix(".py").replace("/", "."))
    return tuple(found)


def packages() -> dict[str, str]:
    """The other packages that clients need, with their dependencies: installed versions by name."""
    found: dict[str, str] = {}
    pending = [(name, frozenset[str]()) for name in NEEDED]
    seen = set(pending)
    while pending:
        name, extras = pending.pop()
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # an environment marker excludes it here
        found[distribution.metadata["Name"]] = distribution.version
        for text in distribution.requires or ():
            match = _REQUIREMENT.match(text)
            if match is None:
                continue
            dependency, words, marker = match.groups()
            extra = _EXTRA.search(marker or "")
            if extra is not None and extra[1] not in extras:
                continue
            chosen = frozenset(word.strip() for word in (words or "").split(",") if word.strip())
            if (dependency, chosen) not in seen:
                seen.add((dependency, chosen))
                pending.append((dependency, chosen))
    return dict(sorted(found.items()))


def suite_key(python: Python) -> str:
    """A hash of a client's suite: its files, its packages' versions, its Python."""
    files = {name: _hash(path, path.stat().st_mtime_ns) for name, path in own_files().items()}
    parts = json.dumps([files, packages(), python.model_dump()], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:12]


@cache
def _hash(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def packed(python: Python, store: Path) -> Path:
    """The site-packages of a suite as a compressed archive in `store`, made if it is missing;
    archives of other versions are removed.

    It gets its name when it is complete. Raises MissingPrerequisite.
    """
    store.mkdir(parents=True, exist_ok=True)
    path = store / f"{NAME}-{python.soabi}-{suite_key(python)}.tar.gz"
    with os.fdopen(open_lock(store / "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path
        for other in (*store.glob(f"{NAME}-{python.soabi}-*"), *store.glob(".making-*")):
            shutil.rmtree(other) if other.is_dir() else other.unlink()
        with tempfile.TemporaryDirectory(prefix=".making-", dir=store) as folder:
            draft = Path(folder) / "packed"
            with tarfile.open(draft, "w:gz", compresslevel=LEVEL) as archive:
                if python == Python.here():
                    _add_installed(archive)
                else:
                    downloaded = Path(folder) / "site"
                    _download(python, downloaded)
                    archive.add(downloaded, ".")
                for name, source in own_files().items():
                    archive.add(source, name)
                _add_version(archive, Path(folder) / "METADATA")
            draft.rename(path)
    return path


def _add_installed(archive: tarfile.TarFile) -> None:
    """Add the packages as pip has installed them here. Raises MissingPrerequisite otherwise."""
    for name in packages():
        files = metadata.distribution(name).files
        if files is None:
            raise MissingPrerequisite(
                f"package {name} of this machine's Python cannot be copied to clients: it was not "
                "installed from a wheel",
                advice="install this suite into a virtual environment with pip (`make setup`)",
            )
        for path in files:
            # Scripts outside of the package, and bytecode, are this machine's own.
            if ".." in path.parts or path.is_absolute() or "__pycache__" in path.parts:
                continue
            archive.add(str(path.locate()), str(path))


def _add_version(archive: tarfile.TarFile, draft: Path) -> None:
    version = metadata.version("weighbridge")
    draft.write_text(f"Metadata-Version: 2.1\nName: weighbridge\nVersion: {version}\n")
    archive.add(draft, f"weighbridge-{version}.dist-info/METADATA")


def _download(python: Python, folder: Path) -> None:
    words = [*PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    words += ["--only-binary", ":all:", "--no-deps", "--no-compile", "--target", str(folder)]
    words += ["--python-version", python.version, "--implementation", "cp"]
    for name in ("_2_28", "_2_27", "_2_24", "_2_17", "_2_12", "_2_5", "2014"):
        words += ["--platform", f"manylinux{name}_{python.machine}"]
    words += [f"{name}=={version}" for name, version in packages().items()]
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_S,
            check=False,
            env=program_environment(),
        )
    except subprocess.TimeoutExpired:
        why = f"not done after {DOWNLOAD_TIMEOUT_S:.0f} s"
    else:
        why = done.stderr.strip() or f"pip ended with {done.returncode}" if done.returncode else ""
    if why:
        tail = "\n".join(why.splitlines()[-5:])
        raise MissingPrerequisite(
            f"the packages of a client with Python {python.version} ({python.soabi}) could not be "
            f"downloaded here:\n{tail}",
            advice="Give this machine access to a package index, or clients Python "
            f"{Python.here().version}, as here.",
        )


class HostPython(Record):
    """A host's Python and what it can do."""

    python: Python
    full: str
    """The full version, such as 3.11.2."""
    missing: tuple[str, ...] = ()
    """Missing modules of the standard library, such as ensurepip."""
    free_bytes: int
    """Free space in the folder of deployments."""


def look(shell: SshConnection, access: SshAccess) -> HostPython:
    """A host's Python. Raises TargetError."""
    return HostPython.model_validate(run_remote(shell, "suite", "look", access.folder))


def fault(shell: SshConnection, access: SshAccess, found: HostPython) -> str:
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


def ensure(shell: SshConnection, hardware: Hardware, home: Path, say: Say) -> Command:
    """Install this suite on a host if needed; returns the command that runs a module there with
    `-m`.

    `home` keeps the archive for all hosts with the same Python. Raises MissingPrerequisite about
    what the host or this machine lacks, CommandFailed or TargetError when installing fails.
    """
    access = hardware.access
    found = look(shell, access)
    folder = f"{access.folder}/{NAME}-{suite_key(found.python)}"
    command = Command((f"{folder}/bin/python",), {"PYTHONSAFEPATH": "1"})
    if shell.sh('if [ -x "$1" ]; then echo there; fi', command.argv[0]).stdout.strip():
        return command
    wrong = fault(shell, access, found)
    if wrong:
        advice = "`weighbridge doctor --hardware FILE` lists what to install."
        raise MissingPrerequisite(wrong, advice=advice)
    archive = packed(found.python, home / ARCHIVES).read_bytes()
    size = f"{len(archive) / 1e6:.0f} MB"
    say(f"{shell.name}: installing this suite ({size}), once for all runs")
    try:
        words = (folder, access.python, *modules())
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


def sweep(shell: SshConnection, folder: str, *, include_suites: bool = False) -> None:
    """Remove unfinished suites, or all of them."""
    which = "all" if include_suites else "partial"
    run_remote(shell, "suite", "sweep", folder, which, timeout_s=120)


# It gets its name when every module can be imported. Two earlier suites are kept; only the
# deployment that has claimed the host uses a suite, and that is this one.
_INSTALL: Final = """
folder=$1 python=$2
shift 2
partial=$folder.partial
umask 022
rm -rf "$partial"
trap 'rm -rf "$partial"' EXIT
"$python" -m venv --without-pip "$partial"
site=$("$partial/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
tar --no-same-owner -xzf - -C "$site"
for module in "$@"; do echo "import $module"; done | "$partial/bin/python" -I -
rm -rf "$folder"
mv "$partial" "$folder"
trap - EXIT
ls -dt "${folder%/*}"/suite-* | tail -n +4 | while read -r old; do rm -rf "$old"; done
"""
