"""Building a program of Go in an image that has Debian's Go, from its module and nothing else."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from threading import Event
from typing import Final

from weighbridge.gateways.artefact import GoProgram
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.topologies.followed import follow

RECIPE: Final = 1
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


def build(
    program: GoProgram, folder: Path, root: Path, say: Say, *, lock: int, ending: Event | None
) -> None:
    """Build a program into `folder/out` with the Go of the image `root`, which stays as it is.

    Modules come as this machine's Go or environment says; Go checks them by the module's go.sum,
    and the module itself by `sum`. Raises CommandFailed, with `ending` as `followed.follow`.
    """
    for name in ("work", "upper", "root"):
        (folder / name).mkdir()
    follow(
        ["sh", "-ec", script(program, folder, root)],
        f"program {program.name}",
        say,
        scratch=folder / "tmp",
        lock=lock,
        ending=ending,
    )


def script(program: GoProgram, folder: Path, root: Path) -> str:
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
{_make(program)}
END
exec chroot {at}/root env -i {" ".join(_environment())} sh -e /build/make
"""


def _make(program: GoProgram) -> str:
    """What runs in the image."""
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
    """What configures this machine's downloads, and where Go keeps what it makes."""
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
