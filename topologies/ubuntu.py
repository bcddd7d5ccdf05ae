"""What images of Ubuntu need beside those of Debian: the keys of its archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from weighbridge.common.errors import MissingPrerequisite
from weighbridge.gateways.gateway import RootImage

KEYS: Final = RootImage(
    name="ubuntu-keys",
    suite="trixie",
    packages=("ubuntu-keyring",),
    options=("--variant=extract",),
)
"""Debian verifies its own package of Ubuntu's keys, which Debian 12 does not have."""
_KEYRING: Final = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
_SUITES: Final = Path("/usr/share/distro-info/ubuntu.csv")


def options(
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
    keyring = own if own.exists() else obtain(KEYS) / _KEYRING.relative_to("/")
    return ["--components=main,universe", f"--keyring={keyring}"]
