"""Building a program of Rust with this machine's cargo, from its crate and nothing else."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from threading import Event
from typing import Final

from weighbridge.common.errors import MissingPrerequisite
from weighbridge.gateways.artefact import CargoProgram
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.followed import follow
from weighbridge.topologies.local_command import command

RECIPE: Final = 1
"""Part of a program's key: increase it when what is below changes what is built."""
_TIMEOUT_S: Final = 7200.0
"""Garage takes a quarter of an hour of CPU, of it minutes for a crate, which is begun anew."""
_TOOLS: Final = ("cargo", "rustc", "cc", "make")
"""C libraries that crates bring are built by the last two."""


def build(
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
        ["sh", "-ec", script(program, folder, kept, target)],
        f"program {program.name}",
        say,
        scratch=folder / "tmp",
        lock=lock,
        ending=ending,
        timeout_s=_TIMEOUT_S,
    )
    shutil.rmtree(kept)


def script(program: CargoProgram, folder: Path, kept: Path, target: str) -> str:
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
    """This machine's target, of which everything for the program is there."""
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
