"""The Java that COSBench is run by: found, asked for its version, and told what COSBench of 2018
needs of a newer one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from weighbridge.common.errors import MissingMeans
from weighbridge.common.record import Record

OPENED = ("java.base/java.net", "java.base/java.lang", "java.base/java.util")
"""What Equinox and Spring of that time reach into by reflection, which Java 9 and later close."""

BOOT_CLASSES = "osgi/libs/com.springsource.javax.xml.bind-2.2.0.jar"
"""JAXB left Java with release 11.

Without it the s3 storage does nothing at all, and COSBench reports FINISHED.
"""


class Java(Record):
    """A java command and its release (8 for 1.8)."""

    path: str
    release: int

    def flags(self, folder: Path, profile: Path) -> tuple[str, ...]:
        """What COSBench below `folder` needs of this release.

        `profile` is Equinox's own description of Java 6.
        """
        if self.release <= 8:
            return ()
        return (
            *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
            # Equinox 3.7 knows Java up to 1.7 and would resolve no bundle on a later one.
            f"-Dosgi.java.profile={profile.as_uri()}",
            "-Dosgi.parentClassloader=ext",
            f"-Xbootclasspath/a:{folder / BOOT_CLASSES}",
        )


def find() -> Java:
    """The Java of $JAVA_HOME, else of PATH.

    Raises MissingMeans when there is none, or when it does not say its release.
    """
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        where = f"below JAVA_HOME ({home})" if home else "in PATH"
        raise MissingMeans(
            f"COSBench needs Java, and there is no java {where}",
            advice="apt-get install default-jre-headless",
        )
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingMeans(
            f"{path} -version: {error}", advice="Name another by JAVA_HOME."
        ) from error
    said = done.stderr + done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if done.returncode or found is None:
        raise MissingMeans(
            f"{path} -version does not tell its release: {said[:300].strip()}",
            advice="Name another by JAVA_HOME.",
        )
    return Java(path=path, release=int(found[1]))
