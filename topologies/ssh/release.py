"""Whether a real host has the programs of a layout's release."""

from __future__ import annotations

import re
from typing import Final

from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies.ssh.shell import Shell

INSTALL: Final = "`weighbridge doctor --hardware FILE --install` installs them"
"""Advice in errors about missing packages and programs."""

# One line for each installed package: `python3-swift 2.30.1-0+deb12u1`.
_LOOK: Final = """
if command -v dpkg-query >/dev/null; then
  echo debian
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n' 2>/dev/null |
    sed -n 's/^installed //p'
elif command -v rpm >/dev/null; then
  echo rpm
  rpm -qa --queryformat '%{NAME} %{VERSION}-%{RELEASE}\\n'
fi
"""


def installed(shell: Shell) -> tuple[str, dict[str, str]]:
    """`debian`, `rpm` or nothing, and all installed packages' versions. Raises TargetError."""
    kind, *lines = shell.sh(_LOOK).stdout.splitlines() or [""]
    pairs = (line.partition(" ") for line in lines)
    return kind, {name: version for name, _, version in pairs if version}


def faults(shell: Shell, image: RootImage, kind: str, packages: dict[str, str]) -> tuple[str, ...]:
    """Why a layout of this release cannot run on a host, in sentences; empty: it can.

    The list of packages has Debian's names; on other systems only the version is checked.
    """
    where = f"{shell.name} ({shell.address})"
    release = image.name.partition("-")[2]
    found = []
    if kind == "debian":
        missing = [name for name in image.packages if name not in packages]
        if missing:
            found.append(f"{where}: packages are missing: {' '.join(missing)}. {INSTALL}")
    versions = {name: packages[name] for name in image.version_packages if name in packages}
    if image.version_packages and not versions and kind != "debian":
        found.append(
            f"{where}: none of the packages {', '.join(image.version_packages)} is installed there"
        )
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
