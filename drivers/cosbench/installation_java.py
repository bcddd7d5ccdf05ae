"""The Java that runs COSBench: found, its version, and the flags that COSBench of 2018 needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from weighbridge.common.errors import MissingPrerequisite
from weighbridge.common.record import Record

OPENED = ("java.base/java.net", "java.base/java.lang", "java.base/java.util")
"""Packages that Equinox and Spring of that time access by reflection, closed since Java 9."""

BOOT_CLASSES = "osgi/libs/com.springsource.javax.xml.bind-2.2.0.jar"
"""JAXB, which Java lacks since 11. Without it the s3 storage does nothing, and COSBench reports
FINISHED.
"""


class Java(Record):
    """A java command and its release (8 for 1.8)."""

    path: str
    release: int

    def flags(self, folder: Path, profile: Path) -> tuple[str, ...]:
        """The flags that COSBench in `folder` needs with this release.

        `profile` is Equinox's own description of Java 6.
        """
        if self.release <= 8:
            return ()
        return (
            *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
            # Equinox 3.7 knows Java up to 1.7 and would resolve no bundle on later ones.
            f"-Dosgi.java.profile={profile.as_uri()}",
            "-Dosgi.parentClassloader=ext",
            f"-Xbootclasspath/a:{folder / BOOT_CLASSES}",
        )


def find() -> Java:
    """The java of $JAVA_HOME, or else of PATH.

    Raises MissingPrerequisite when there is none, or when its release is unknown.
    """
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        where = f"below JAVA_HOME ({home})" if home else "in PATH"
        raise MissingPrerequisite(
            f"COSBench needs Java, and there is no java {where}",
            advice="apt-get install default-jre-headless",
        )
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPrerequisite(
            f"{path} -version: {error}", advice="Set JAVA_HOME to another one."
        ) from error
    output = done.stderr + done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if done.returncode or found is None:
        raise MissingPrerequisite(
            f"{path} -version does not print its release: {output[:300].strip()}",
            advice="Set JAVA_HOME to another one.",
        )
    return Java(path=path, release=int(found[1]))
