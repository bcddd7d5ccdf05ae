"""Programs that tests take from the distribution, beside those that Weighbridge needs itself."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ABSENT = Path(sys.prefix) / ".setup-absent"
"""Where `make setup-test` keeps which packages the release does not have, after one other line."""


def packaged(program: str, package: str) -> str:
    """The path of a program. Skips the test where the release has no such package, as Ubuntu 24.04
    has no Chromium; fails where it has, since `make setup-test` installs it.
    """
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if path is not None:
        return path
    if ABSENT.is_file() and package in ABSENT.read_text().splitlines()[1:]:
        pytest.skip(f"this release has no package {package}")
    pytest.fail(f"{program} is needed: `make setup-test` installs {package}")
