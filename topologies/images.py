"""Root images: Debian suites with packages, built once by mmdebstrap and kept by what they were
asked to be.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import selectors
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from weighbridge.common import inside
from weighbridge.common.errors import CommandFailed, MissingMeans, UsageError
from weighbridge.common.locks import open_lock
from weighbridge.gateways.gateway import RootImage, Say

ALWAYS = ("iproute2", "procps", "python3-minimal", "xfsprogs")
"""In every image: what one needs to look at a host, and to put a file system on its disk."""
RECIPE = 1
"""Part of an image's name: raise it when the command below changes what is in an image."""
SAY_EVERY_S = 5.0
TAIL_LINES = 30
LONGEST_BUILD_S = 1800.0

# mmdebstrap mounts /proc, /sys and devices of this machine in the image while it installs. In
# namespaces of its own, whose first process ends with this one, no such mount and no process is
# left whenever and however a build is ended; without them, sweeping what a killed build left would
# go through the machine's own /dev.
ALONE = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *(
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--mount-proc",
        "--fork",
        "--kill-child=KILL",
        "--",
    ),
)

# The build machine's own resolv.conf and hostname would otherwise be in the image.
FORGET_THIS_MACHINE = '--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"'
PACKAGES_FORMAT = "${Package}=${Version}\\n"


def packages(image: RootImage) -> tuple[str, ...]:
    """The packages an image is asked to have, sorted."""
    return tuple(sorted({*image.packages, *ALWAYS}))


def key(image: RootImage) -> str:
    """The name of an image in a store: its own, and a sum of all that decides what is in it."""
    asked = json.dumps([RECIPE, image.suite, packages(image), image.options])
    return f"{image.name}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def argv(image: RootImage, root: Path) -> list[str]:
    """The command that builds an image.

    No mirror is named: mmdebstrap takes this machine's, or the distribution's own.
    """
    return [
        "mmdebstrap",
        "--variant=minbase",
        "--format=directory",
        f"--include={','.join(packages(image))}",
        "--dpkgopt=force-unsafe-io",
        '--aptopt=APT::Install-Recommends "false"',
        *image.options,
        FORGET_THIS_MACHINE,
        image.suite,
        str(root),
    ]


def find(image: RootImage, store: Path) -> Path | None:
    """The built image; None when there is none."""
    root = store / key(image)
    return root if root.is_dir() else None


def packages_sum(root: Path) -> str:
    """The sum of the list of packages beside a built image, which tells two builds of one image
    apart.
    """
    listed = root.with_name(root.name + ".packages")
    if not listed.exists():
        return "list of packages not known"
    return f"packages sha256 {hashlib.sha256(listed.read_bytes()).hexdigest()[:16]}"


def built_on(root: Path) -> str:
    """The day (UTC) whose packages a built image has, such as `2026-11-22`: nothing renews it but
    `refresh`.
    """
    listed = root.with_name(root.name + ".packages")
    # The root's own time is of its files; when it took its name the kernel knows.
    built_s = listed.stat().st_mtime if listed.exists() else root.stat().st_ctime
    return f"{datetime.fromtimestamp(built_s, UTC):%Y-%m-%d}"


def in_use(root: Path) -> bool:
    """Whether a host of any deployment has this image mounted: as the lower layer of its root, or
    for its tools.
    """
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if f"/{root.name}" in table.read_text(errors="replace"):
                return True
        except OSError:
            continue  # the process has ended
    return False


def refresh(image: RootImage, say: Say, *, store: Path) -> Path:
    """Build an image anew from today's packages, in the place of the one that is there; the root
    folder.

    Until the new one is whole the old one stays. Raises UsageError where a host stands on it,
    CommandFailed, MissingMeans.
    """
    root = store / key(image)
    if not root.is_dir():
        return ensure(image, say, store=store)
    _may_build()
    with _lock(
        store / f"{key(image)}.lock",
        lambda: say(f"image {image.name}: another process builds it; waiting"),
    ) as lock:
        if in_use(root):
            raise UsageError(
                f"image {image.name}: hosts stand on it",
                advice="`weighbridge status` says which, `down` takes them away.",
            )
        return _build(image, say, store, lock)


def ensure(image: RootImage, say: Say, *, store: Path) -> Path:
    """The root folder of an image, built when it is not in the store; the list of its packages is
    beside it (`.packages`).

    An image whose packages are only unpacked has none installed, and so no list.

    A build takes its name when it is whole: one that is interrupted leaves only `.partial`, which
    the next one sweeps. Of two that want the same image one builds and the other waits. Raises
    CommandFailed with mmdebstrap's last lines, MissingMeans.
    """
    found = find(image, store)
    if found is not None:
        return found
    _may_build()
    store.mkdir(parents=True, exist_ok=True)
    with _lock(
        store / f"{key(image)}.lock",
        lambda: say(f"image {image.name}: another process builds it; waiting"),
    ) as lock:
        return find(image, store) or _build(image, say, store, lock)


def _may_build() -> None:
    if shutil.which("mmdebstrap") is None:
        raise MissingMeans(
            "mmdebstrap is missing", advice="run `weighbridge doctor` to see how to get it"
        )
    if os.geteuid() != 0:
        raise MissingMeans(
            "building a root image needs root", advice="run it as root, or through sudo"
        )


def _build(image: RootImage, say: Say, store: Path, lock: int) -> Path:
    root = store / key(image)
    partial = store / f"{key(image)}.partial"
    sweep(partial)
    started = time.monotonic()
    say(
        f"image {image.name}: building from Debian {image.suite}, {len(packages(image))} packages "
        "and what they depend on"
    )
    try:
        (partial / "tmp").mkdir(parents=True)
        _follow(argv(image, partial / "root"), image.name, say, scratch=partial / "tmp", lock=lock)
        listed = _packages_in(partial / "root")
        if root.exists():
            # Out of the way by one rename, and the new one in by the next: what is swept is never
            # under its name.
            root.rename(partial / "old")
        if listed:
            inside.write(store, f"{root.name}.packages", listed.encode())
        (partial / "root").rename(root)
    finally:
        sweep(partial)
    installed = f", {len(listed.splitlines())} packages" if listed else ""
    say(f"image {image.name}: built in {time.monotonic() - started:.0f} s{installed}")
    return root


def _packages_in(root: Path) -> str:
    """What is installed in an image, one `package=version` a line. Raises CommandFailed."""
    line = [
        "dpkg-query",
        f"--admindir={root}/var/lib/dpkg",
        "--show",
        f"--showformat={PACKAGES_FORMAT}",
    ]
    listed = subprocess.run(line, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise CommandFailed("this machine", line, listed.returncode, listed.stderr)
    return listed.stdout


def _follow(line: list[str], name: str, say: Say, *, scratch: Path, lock: int) -> None:
    """Run mmdebstrap and say every few seconds how far it is. Raises CommandFailed with its last
    lines.

    It ends with this process, also when that is killed, and holds the lock until it has: nobody
    sweeps what it still writes.
    """
    started = said = time.monotonic()
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    environment = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}
    # A session of its own: Ctrl-C reaches this process, which ends all of the session, not apt in
    # the middle of its work.
    with subprocess.Popen(
        [*ALONE, *line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=(lock,),
        env=environment,
    ) as process:
        try:
            for text in _lines(process, deadline=started + LONGEST_BUILD_S):
                now = time.monotonic()
                if text:
                    tail.append(text)
                if now - said >= SAY_EVERY_S:
                    said = now
                    say(
                        f"image {name}: {now - started:.0f} s, "
                        f"{tail[-1][:100] if tail else 'starting'}"
                    )
            code = process.wait(10)
        except BaseException:
            _end(process)
            raise
    if code:
        raise CommandFailed("this machine", line, code, "\n".join(tail))


def _lines(process: subprocess.Popen[bytes], *, deadline: float) -> Iterator[str]:
    """Lines a process prints, and an empty one every second; ends with its output.

    Raises CommandFailed at the deadline.
    """
    if process.stdout is None:
        raise ValueError("the process was started without a pipe")
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if time.monotonic() > deadline:
                raise CommandFailed(
                    "this machine", process.args if isinstance(process.args, list) else [], None, ""
                )
            if not selector.select(1.0):
                yield ""
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return
            # apt shows progress by carriage returns
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            yield from (text for one in lines if (text := one.decode(errors="replace").strip()))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End mmdebstrap with all it has started."""
    if process.poll() is None:
        process.kill()
        process.wait()


def sweep(partial: Path) -> None:
    """Remove what a build left."""
    if partial.exists():
        shutil.rmtree(partial)


def half_built(store: Path) -> tuple[Path, ...]:
    """What builds that were killed have left; builds that are under way are not among it."""
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
def _lock(path: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold a lock, whose descriptor this gives; `waiting` is called when another process has it."""
    with os.fdopen(open_lock(path), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
