"""Installing this suite on real hosts that make load: a virtual environment below the folder of
deployments, made once for all runs.

Its name has a hash of its content, so that a changed suite gets another; it gets its name when it
is complete.
"""

from __future__ import annotations

import base64
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
import zipfile
from collections.abc import Iterable, Iterator, Sequence
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

# Nothing is built: this suite's files with its compiled engine make a wheel, and so do the files
# of each package that pip has installed. A client with the same Python and machine type runs this
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
MODULES: Final = (
    "weighbridge.drivers.locust.__main__",
    "weighbridge.drivers.cosbench.__main__",
    "weighbridge.drivers.engine._native",
    "weighbridge.gateways.existing.clear",
    "weighbridge.gateways.existing.look",
    "weighbridge.gateways.await_answers",
    "weighbridge.gateways.tls_handshake",
    "weighbridge.gateways.verify",
    "weighbridge.cli.stores",
    "asyncssh",
    "boto3",
    "swiftclient.client",
)
"""What is imported on a client to check that its suite is complete."""
ENGINE: Final = "weighbridge/drivers/engine/_native.abi3.so"
"""The engine's name in the wheel: for Python's stable ABI (abi3-py311)."""
DOWNLOAD_TIMEOUT_S: Final = 900.0
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a wheel: equal files make equal wheels."""


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
    """This suite's files by path in the wheel. Raises MissingPrerequisite without its engine."""
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


def wheels_key(python: Python) -> str:
    """A hash of a client's suite: its files, its packages' versions, its Python."""
    files = {name: _hash(path, path.stat().st_mtime_ns) for name, path in own_files().items()}
    parts = json.dumps([files, packages(), python.model_dump()], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:12]


@cache
def _hash(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheelhouse(python: Python, folder: Path) -> tuple[Path, ...]:
    """All wheels for a client's Python, in `folder`. Raises MissingPrerequisite without them."""
    own = _own(folder, python)
    if python == Python.here():
        return (own, *(repacked(name, folder) for name in packages()))
    pins = [f"{name}=={version}" for name, version in packages().items()]
    _download(pins, python, folder)
    return tuple(sorted(folder.glob("*.whl")))


def _own(folder: Path, python: Python) -> Path:
    version = metadata.version("weighbridge")
    tag = f"cp311-abi3-linux_{python.machine}"
    needs = "".join(f"Requires-Dist: {name}\n" for name in NEEDED)
    about = {
        "METADATA": "Metadata-Version: 2.1\nName: weighbridge\nVersion: "
        f"{version}\nRequires-Python: >=3.11\n{needs}",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: weighbridge\nRoot-Is-Purelib: false\n"
        f"Tag: {tag}\n",
    }
    path = folder / f"weighbridge-{version}-{tag}.whl"
    info = f"weighbridge-{version}.dist-info"
    files = [(name, source.read_bytes()) for name, source in own_files().items()]
    files += [(f"{info}/{name}", text.encode()) for name, text in about.items()]
    _write(path, files)
    return path


def repacked(name: str, folder: Path) -> Path:
    """An installed package's wheel. Raises MissingPrerequisite if pip installed it otherwise."""
    distribution = metadata.distribution(name)
    wheel = distribution.read_text("WHEEL")
    files = distribution.files
    if wheel is None or files is None:
        raise MissingPrerequisite(
            f"package {name} of this machine's Python cannot be copied to clients: it was not "
            "installed from a wheel",
            advice="install this suite into a virtual environment with pip (`make setup`)",
        )
    tags = [
        line.partition(":")[2].strip() for line in wheel.splitlines() if line.startswith("Tag:")
    ]
    parts = [".".join(sorted({tag.split("-")[index] for tag in tags})) for index in range(3)]
    project = re.sub(r"[-.]+", "_", distribution.metadata["Name"])
    version = distribution.version.replace("-", "_")
    path = folder / f"{'-'.join((project, version, *parts))}.whl"

    def kept(one: metadata.PackagePath) -> bool:
        # pip makes scripts outside the package, bytecode and its own records again.
        made = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
        record = one.parts[0].endswith(".dist-info") and len(one.parts) == 2 and one.name in made
        outside = ".." in one.parts or one.is_absolute()
        return not (record or outside or "__pycache__" in one.parts)

    wanted = filter(kept, files)
    _write(path, ((str(one), Path(str(one.locate())).read_bytes()) for one in wanted))
    return path


def _write(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a wheel, not compressed: it is sent once and unpacked at once."""
    record: list[str] = []
    about = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files:
            first = name.partition("/")[0]
            about = first if first.endswith(".dist-info") else about
            archive.writestr(_entry(name), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            quoted = f'"{name}"' if "," in name else name
            record.append(f"{quoted},sha256={digest},{len(data)}\n")
        archive.writestr(_entry(f"{about}/RECORD"), "".join([*record, f"{about}/RECORD,,\n"]))


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EARLIEST)
    entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
    return entry


def _download(pins: Sequence[str], python: Python, folder: Path) -> None:
    platforms = [word for name in _platforms(python.machine) for word in ("--platform", name)]
    pip = (*PYTHON, "-m", "pip", "--disable-pip-version-check", "download", "--quiet")
    words = (
        *(*pip, "--only-binary", ":all:", "--no-deps"),
        *("--python-version", python.version, "--implementation", "cp", *platforms),
        *("--dest", str(folder), *pins),
    )
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


def _platforms(machine: str) -> Iterator[str]:
    for minor in (28, 27, 24, 17, 12, 5):
        yield f"manylinux_2_{minor}_{machine}"
    yield f"manylinux2014_{machine}"


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
    folder = f"{access.folder}/{NAME}-{wheels_key(found.python)}"
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
        words = (folder, access.python, *MODULES)
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
    path = store / f"{NAME}-{python.soabi}-{wheels_key(python)}.tar.gz"
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
                for one in wheelhouse(python, Path(folder) / "wheels"):
                    archive.add(one, one.name)
            draft.rename(path)
    return path


def sweep(shell: SshConnection, folder: str, *, include_suites: bool = False) -> None:
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
