"""Programs that tests take from the distribution, beside those that Weighbridge needs itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest


def packaged(program: str, package: str) -> str:
    """The path of a program. Skips the test where the release has no such package, as Ubuntu 24.04
    has no Chromium; fails where it has, since `make setup-test` installs it.
    """
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if path is not None:
        return path
    if shutil.which("apt-cache") is not None:
        policy = subprocess.run(
            ("apt-cache", "policy", package),
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        if not re.search(r"Candidate: (?!\(none\))", policy.stdout):
            pytest.skip(f"this release has no package {package}")
    pytest.fail(f"{program} is needed: `make setup-test` installs {package}")
