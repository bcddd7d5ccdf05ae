"""Wheels of this suite and of what its parts on clients import: made of what is installed here, or
downloaded for another Python.

Nothing is built: this suite's own files, with the engine as it is compiled here, make a wheel, and
so do the files of each package that pip has installed here. A client of the same Python on the same
kind of machine runs the very same code as this one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from weighbridge.common.errors import MissingMeans
from weighbridge.common.home import IMPORTED_FROM, PACKAGE, ROOMS
from weighbridge.common.record import Record

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
"""What drivers, the small programs of gateways and the null target import, of all that this suite
needs here.
"""
MODULES: Final = (
    "weighbridge.drivers.locust.__main__",
    "weighbridge.drivers.cosbench.__main__",
    "weighbridge.drivers.engine._native",
    "weighbridge.gateways.existing.clear",
    "weighbridge.gateways.existing.look",
    "weighbridge.gateways.ports",
    "weighbridge.gateways.swift.ask_servers",
    "weighbridge.gateways.verify",
    "weighbridge.cli.null_target",
    "asyncssh",
    "boto3",
    "swiftclient.client",
)
"""What is imported on a client to see that its suite is whole."""
ENGINE: Final = "weighbridge/drivers/engine/_native.abi3.so"
"""The engine in the wheel.

It is compiled against Python's stable ABI (abi3-py311), whatever its name is here.
"""
DOWNLOAD_S: Final = 900.0
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in a wheel, so that the same files make the same wheel."""


class Python(Record):
    """The Python of a machine, as far as compiled packages tell it from another."""

    version: str
    """Such as 3.11."""
    soabi: str
    """Such as cpython-311-x86_64-linux-gnu."""
    machine: str
    """Such as x86_64."""

    @classmethod
    def here(cls) -> Python:
        """That of this process."""
        import platform  # noqa: PLC0415 - costs more than the rest of this file
        import sysconfig  # noqa: PLC0415

        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return cls(
            version=version,
            soabi=str(sysconfig.get_config_var("SOABI")),
            machine=platform.machine(),
        )


def own_files() -> dict[str, Path]:
    """This suite's own files that clients want, by their paths in the wheel.

    Raises MissingMeans where its engine is not built.
    """
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
        raise MissingMeans(
            "the engine of this suite is not built here, and clients want it",
            advice="run `make setup`",
        )
    # Where an older build lies beside it, the one that this Python loads is the newest.
    return {**found, ENGINE: max(engines, key=lambda path: path.stat().st_mtime_ns)}


def packages() -> dict[str, str]:
    """What clients want of other packages, all they need themselves included: versions by name, as
    they are installed here.
    """
    found: dict[str, str] = {}
    waiting = [(name, frozenset[str]()) for name in NEEDED]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # a marker says that it is not wanted here
        found[distribution.metadata["Name"]] = distribution.version
        for text in distribution.requires or ():
            match = _REQUIREMENT.match(text)
            if match is None:
                continue
            wanted, its_extras, marker = match.groups()
            extra = _EXTRA.search(marker or "")
            if extra is not None and extra[1] not in extras:
                continue
            more = (
                wanted,
                frozenset(word.strip() for word in (its_extras or "").split(",") if word.strip()),
            )
            if more not in seen:
                seen.add(more)
                waiting.append(more)
    return dict(sorted(found.items()))


def key(python: Python) -> str:
    """What tells a suite on a client from another: this suite's files, the versions of the
    packages, the client's Python.
    """
    files = {name: _sum(path, path.stat().st_mtime_ns) for name, path in own_files().items()}
    told = json.dumps([files, packages(), python.model_dump()], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


@cache
def _sum(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheelhouse(python: Python, folder: Path) -> tuple[Path, ...]:
    """All wheels that a client of this Python wants, in an empty `folder`.

    Raises MissingMeans where packages for another Python than this one's cannot be downloaded.
    """
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
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: weighbridge\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    path = folder / f"weighbridge-{version}-{tag}.whl"
    files = [(name, source.read_bytes()) for name, source in own_files().items()]
    _write(
        path,
        [
            *files,
            *(
                (f"weighbridge-{version}.dist-info/{name}", text.encode())
                for name, text in about.items()
            ),
        ],
    )
    return path


def repacked(name: str, folder: Path) -> Path:
    """The wheel of a package that is installed here.

    Raises MissingMeans for one that pip did not install from a wheel.
    """
    distribution = metadata.distribution(name)
    wheel = distribution.read_text("WHEEL")
    files = distribution.files
    if wheel is None or files is None:
        raise MissingMeans(
            f"package {name} of this machine's Python cannot be taken along to clients: it was "
            "not installed from a wheel",
            advice="install this suite into a virtual environment by pip (`make setup`)",
        )
    tags = [
        line.partition(":")[2].strip() for line in wheel.splitlines() if line.startswith("Tag:")
    ]
    parts = [sorted({tag.split("-")[index] for tag in tags}) for index in range(3)]
    called = re.sub(r"[-.]+", "_", distribution.metadata["Name"])
    path = (
        folder
        / f"{called}-{distribution.version.replace('-', '_')}-{'-'.join('.'.join(part) for part in parts)}.whl"
    )
    left_out = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
    _write(
        path,
        (
            (str(one), Path(str(one.locate())).read_bytes())
            for one in files
            # What lies outside (scripts) pip makes anew, and bytecode too.
            if ".." not in one.parts
            and not one.is_absolute()
            and "__pycache__" not in one.parts
            and not (
                one.parts[0].endswith(".dist-info") and len(one.parts) == 2 and one.name in left_out
            )
        ),
    )
    return path


def _write(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """A wheel, not compressed: it is sent once and unpacked at once."""
    record: list[str] = []
    about = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files:
            first = name.partition("/")[0]
            about = first if first.endswith(".dist-info") else about
            archive.writestr(_entry(name), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{_quoted(name)},sha256={digest},{len(data)}\n")
        archive.writestr(_entry(f"{about}/RECORD"), "".join([*record, f"{about}/RECORD,,\n"]))


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EARLIEST)
    entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
    return entry


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name


def _download(pins: Sequence[str], python: Python, folder: Path) -> None:
    platforms = [word for name in _platforms(python.machine) for word in ("--platform", name)]
    words = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--only-binary",
        ":all:",
    ]
    words += [
        "--no-deps",
        "--python-version",
        python.version,
        "--implementation",
        "cp",
        *platforms,
        "--dest",
        str(folder),
        *pins,
    ]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False
        )
        why = (
            ""
            if done.returncode == 0
            else done.stderr.strip() or f"pip ended with {done.returncode}"
        )
    except subprocess.TimeoutExpired:
        why = f"not done after {DOWNLOAD_S:.0f} s"
    if why:
        tail = "\n".join(why.splitlines()[-5:])
        raise MissingMeans(
            f"the packages of a client with Python {python.version} ({python.soabi}) could not be "
            f"downloaded here:\n{tail}",
            advice="Let this machine reach a package index, or give clients a Python "
            f"{Python.here().version} as here.",
        )


def _platforms(machine: str) -> Iterator[str]:
    """From the newest glibc that wheels are made for to the oldest; pip takes the best that there
    is.
    """
    for minor in (28, 27, 24, 17, 12, 5):
        yield f"manylinux_2_{minor}_{machine}"
    yield f"manylinux2014_{machine}"
