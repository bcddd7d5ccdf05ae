"""Root images: suites with packages, built by mmdebstrap and cached by their definition."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial as partial_of
from pathlib import Path
from threading import Event, Lock
from typing import Final, Protocol

from weighbridge.common import safe_files
from weighbridge.common.errors import MissingPrerequisite, UsageError
from weighbridge.common.safe_files import open_lock
from weighbridge.gateways.gateway import FOLDER, RootImage, Say
from weighbridge.topologies import artefacts
from weighbridge.topologies.artefacts import follow
from weighbridge.topologies.local_command import command

UBUNTU_KEYS: Final = RootImage(
    name="ubuntu-keys",
    suite="trixie",
    packages=("ubuntu-keyring",),
    options=("--variant=extract",),
)
"""Debian verifies its own package of Ubuntu's keys, which Debian 12 does not have."""
_KEYRING: Final = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
_SUITES: Final = Path("/usr/share/distro-info/ubuntu.csv")


def ubuntu_options(
    image: RootImage,
    obtain: Callable[[RootImage], Path],
    *,
    own: Path = _KEYRING,
    suites: Path = _SUITES,
) -> list[str]:
    """Further options of mmdebstrap for an image; `obtain` builds the image of the keys, which is
    used if this machine has no keyring of its `own`.

    Raises MissingPrerequisite, and what `obtain` raises.
    """
    if image.distribution != "Ubuntu":
        return []
    if not suites.exists():
        raise MissingPrerequisite(
            f"mmdebstrap finds Ubuntu's archive by {suites}, which is missing",
            advice="install the package distro-info-data",
        )
    keyring = own if own.exists() else obtain(UBUNTU_KEYS) / _KEYRING.relative_to("/")
    return ["--components=main,universe", f"--keyring={keyring}"]


ALWAYS = ("iproute2", "procps", "python3-minimal", "xfsprogs")
"""In every image: tools to inspect a host and to make a file system on its disk."""
RECIPE = 1
"""Part of an image's name: increase it when the command below changes an image's content."""
AT_ONCE: Final = 3
"""Builds that run together: each mostly unpacks, in one process."""


class Build(Protocol):
    """What makes sure that an image exists, as `ensure` of one."""

    def __call__(self, say: Say, *, ending: Event) -> object:
        """Raise CommandFailed when `ending` is set; otherwise as `ensure`."""


# The image would otherwise have the build machine's resolv.conf and hostname.
FORGET_THIS_MACHINE = '--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"'
PACKAGES_FORMAT = "${Package}=${Version}\\n"


def packages(image: RootImage) -> tuple[str, ...]:
    """The packages of an image, sorted."""
    return tuple(sorted({*image.packages, *image.beside, *ALWAYS}))


def key(image: RootImage) -> str:
    """The name of an image in a store: its root's, and a hash of all that decides its content."""
    programs = [artefacts.key(one) for one in image.programs]
    asked = json.dumps(
        [RECIPE, image.suite, packages(image), image.options, *([programs] if programs else [])]
    )
    return f"{image.root}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def argv(
    image: RootImage, root: Path, programs: Sequence[Path] = (), more: Sequence[str] = ()
) -> list[str]:
    """The command that builds an image from this machine's mirror, or the distribution's own, with
    `programs` of this machine copied in and `more` options that do not change what is built.
    """
    return [
        "mmdebstrap",
        "--variant=minbase",
        "--format=directory",
        f"--include={','.join(packages(image))}",
        "--dpkgopt=force-unsafe-io",
        '--aptopt=APT::Install-Recommends "false"',
        *image.options,
        *more,
        *(f"--customize-hook=copy-in {shlex.quote(str(one))} {FOLDER}" for one in programs),
        FORGET_THIS_MACHINE,
        image.suite,
        str(root),
    ]


def find(image: RootImage, store: Path) -> Path | None:
    """The built image; None: there is none."""
    root = store / key(image)
    return root if root.is_dir() else None


def packages_sum(root: Path) -> str:
    """The hash of a built image's list of packages, which distinguishes two builds of one image."""
    listed = root.with_name(root.name + ".packages")
    if not listed.exists():
        return "list of packages not known"
    return f"packages sha256 {hashlib.sha256(listed.read_bytes()).hexdigest()[:16]}"


def built_on(root: Path) -> str:
    """The day (UTC) of a built image's packages, such as `2026-11-22`; `refresh` renews them."""
    listed = root.with_name(root.name + ".packages")
    # The folder's modification time is that of its files; its change time is that of its rename.
    built_s = listed.stat().st_mtime if listed.exists() else root.stat().st_ctime
    return f"{datetime.fromtimestamp(built_s, UTC):%Y-%m-%d}"


def in_use(root: Path) -> bool:
    """Whether a host of any deployment has this image mounted, as its root or for its tools."""
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if f"/{root.name}" in table.read_text(errors="replace"):
                return True
        except OSError:
            continue  # the process has ended
    return False


def refresh(image: RootImage, say: Say, *, store: Path) -> Path:
    """Rebuild an image from today's packages; returns its root folder.

    The old image stays until the new one is complete. Raises UsageError where hosts use it,
    CommandFailed, MissingPrerequisite.
    """
    root = store / key(image)
    if not root.is_dir():
        return ensure(image, say, store=store)
    with _build_lock(image, say, store) as lock:
        if in_use(root):
            raise UsageError(
                f"image {image.root}: it is in use by hosts",
                advice="`weighbridge status` lists them, `down` tears them down.",
            )
        return _build(image, say, store, lock)


def ensure(image: RootImage, say: Say, *, store: Path, ending: Event | None = None) -> Path:
    """The root folder of an image, built if it is not in the store; the list of its packages is
    beside it (`.packages`), unless packages are only unpacked.

    A build gets its name when it is complete: an interrupted one leaves only `.partial`, which the
    next one removes. Of two processes that want the same image, one builds and the other waits.
    Raises CommandFailed with mmdebstrap's last lines, or when `ending` is set; MissingPrerequisite.
    """
    found = find(image, store)
    if found is not None:
        return found
    with _build_lock(image, say, store) as lock:
        return find(image, store) or _build(image, say, store, lock, ending)


def together(builds: Iterable[Build], say: Say) -> None:
    """Do several builds, AT_ONCE at a time. Raises as `ensure`, after the others were ended."""
    ending, lock = Event(), Lock()

    def say_alone(text: str) -> None:
        with lock:
            say(text)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun = [pool.submit(build, say_alone, ending=ending) for build in builds]
        try:
            for build in as_completed(begun):
                build.result()
        except BaseException:
            ending.set()
            pool.shutdown(cancel_futures=True)
            raise


def _build(image: RootImage, say: Say, store: Path, lock: int, ending: Event | None = None) -> Path:
    root = store / key(image)
    partial = store / f"{key(image)}.partial"
    safe_files.remove_tree(partial)
    started = time.monotonic()
    count = len(packages(image))
    what = f"{image.distribution} {image.suite}"
    say(f"image {image.root}: building {what}, {count} packages and dependencies")
    obtain = partial_of(ensure, say=say, store=store, ending=ending)
    try:
        (partial / "tmp").mkdir(parents=True)
        programs = [
            artefacts.obtain(
                one,
                say,
                store=store,
                tools=obtain,
                ending=ending,
            )
            for one in image.programs
        ]
        line = argv(image, partial / "root", programs, ubuntu_options(image, obtain))
        what = f"image {image.root}"
        follow(line, what, say, scratch=partial / "tmp", lock=lock, ending=ending)
        query = ["dpkg-query", f"--admindir={partial}/root/var/lib/dpkg", "--show"]
        listed = command([*query, f"--showformat={PACKAGES_FORMAT}"])
        if root.exists():
            # Two renames replace the old image: what is removed never has its name.
            root.rename(partial / "old")
        if listed:
            safe_files.write(store, f"{root.name}.packages", listed.encode())
        (partial / "root").rename(root)
    finally:
        safe_files.remove_tree(partial)
    installed = f", {len(listed.splitlines())} packages" if listed else ""
    say(f"image {image.root}: built in {time.monotonic() - started:.0f} s{installed}")
    return root


def half_built(store: Path) -> tuple[Path, ...]:
    """What killed builds left; not what running builds work on."""
    found = []
    for partial in sorted(store.glob("*.partial")):
        with os.fdopen(open_lock(store / f"{partial.stem}.lock"), "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            found.append(partial)
    return tuple(found)


@contextmanager
def _build_lock(image: RootImage, say: Say, store: Path) -> Iterator[int]:
    if shutil.which("mmdebstrap") is None:
        raise MissingPrerequisite(
            "mmdebstrap is missing", advice="run `weighbridge doctor` to see how to get it"
        )
    if os.geteuid() != 0:
        raise MissingPrerequisite(
            "building a root image needs root", advice="run it as root, or through sudo"
        )
    store.mkdir(parents=True, exist_ok=True)
    path = store / f"{key(image)}.lock"
    with os.fdopen(open_lock(path), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"image {image.root}: another process is building it; waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
