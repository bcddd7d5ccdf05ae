"""Sample files of Swift's servers, on a host that has its packages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

PLACES = (
    "/usr/share/doc/swift/examples/{0}-server.conf",
    "/usr/share/doc/swift-{0}/{0}-server.conf-sample",
)
"""Where Debian's and Ubuntu's packages have the sample file of a server."""


def sample_of(server: str, places: Sequence[str] = PLACES) -> str:
    """The text of a server's sample file. Exits if there is none."""
    paths = [Path(place.format(server)) for place in places]
    there = next((path for path in paths if path.is_file()), None)
    if there is None:
        sys.exit(f"no sample file of Swift's {server} server: {' or '.join(map(str, paths))}")
    return there.read_text(encoding="utf-8")
