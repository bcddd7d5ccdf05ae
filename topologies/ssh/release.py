"""Whether a real host has the programs of a layout's release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies.ssh.shell import Shell

INSTALL: Final = "`weighbridge doctor --hardware FILE` lists what to install"
"""Advice in errors about missing packages and programs."""

# One line for each installed package: `python3-swift 2.30.1-0+deb12u1`.
_LOOK: Final = """
if command -v dpkg-query >/dev/null; then
  echo packages
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n' 2>/dev/null |
    sed -n 's/^installed //p'
fi
"""


def installed(shell: Shell) -> dict[str, str] | None:
    """All installed packages' versions; None: they are not Debian's. Raises TargetError."""
    lines = shell.sh(_LOOK).stdout.splitlines()
    if not lines:
        return None
    pairs = (line.partition(" ") for line in lines[1:])
    return {name: version for name, _, version in pairs if version}


def faults(shell: Shell, image: RootImage, packages: Mapping[str, str] | None) -> tuple[str, ...]:
    """Why a layout of this release cannot run on a host, in sentences; empty: it can."""
    where = f"{shell.name} ({shell.address})"
    if packages is None:
        return (f"{where}: has no packages of Debian or Ubuntu",)
    release = image.name.partition("-")[2]
    found = []
    missing = [name for name in image.packages if name not in packages]
    if missing:
        found.append(f"{where}: packages are missing: {' '.join(missing)}. {INSTALL}")
    versions = {name: packages[name] for name in image.version_packages if name in packages}
    for name, version in versions.items():
        if not of_release(version, release):
            found.append(
                f"{where}: {name} is {version}, and the layout needs {image.name}: install that, "
                "or set `release` in the layout to the installed one"
            )
            break
    return tuple(found)


def of_release(version: str, release: str) -> bool:
    """Whether a version belongs to a release, as `16.2.15+ds-0` to `16`, `1:2.30.1-0` to `2.30`."""
    plain = re.sub(r"^\d+:", "", version)
    return re.match(re.escape(release) + r"(?![0-9])", plain) is not None
