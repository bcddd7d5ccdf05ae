"""The options that a release of Swift knows, as a program on a host that has it.

stdout is JSON: `samples`, names by section by server from the package's sample files; `uses`, the
`use` of each of their sections by server; and `read`, names by server that its code reads from its
configuration. Swift is not imported: that takes a second.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDERS = {
    "proxy": ("proxy",),
    "account": ("account",),
    "container": ("container",),
    "object": ("obj",),
}
"""Folders of each server's own code; every server also reads the common code's options."""
PLACES = (
    "/usr/share/doc/swift/examples/{0}-server.conf",
    "/usr/share/doc/swift-{0}/{0}-server.conf-sample",
)
"""Where Debian's and Ubuntu's packages have the sample file of a server."""

_SECTION = re.compile(r"^#?\s*\[([^\]]+)\]\s*$")
_OPTION = re.compile(r"^[#\s]*(?:set\s+)?([A-Za-z_][\w.-]*)\s*=\s*(\S*)")
_READ = re.compile(
    r"""\b\w*(?:conf|options|config)\w*(?:\.(?:get|pop|setdefault)\(|\[)\s*['"]([a-z][a-z0-9_]*)['"]"""
)


def sample_of(server: str, places: Sequence[str] = PLACES) -> str:
    """The text of a server's sample file. Exits if there is none."""
    paths = [Path(place.format(server)) for place in places]
    there = next((path for path in paths if path.is_file()), None)
    if there is None:
        sys.exit(f"no sample file of Swift's {server} server: {' or '.join(map(str, paths))}")
    return there.read_text(encoding="utf-8")


def sample(text: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Option names by section, and the `use` of each section."""
    names: dict[str, list[str]] = {}
    uses: dict[str, str] = {}
    section = "DEFAULT"
    for line in text.splitlines():
        head = _SECTION.match(line)
        option = _OPTION.match(line)
        if head:
            section = head.group(1)
            names.setdefault(section, [])
        elif option:
            names.setdefault(section, []).append(option.group(1))
            if option.group(1) == "use":
                uses.setdefault(section, option.group(2))
    return names, uses


def read(folder: Path) -> set[str]:
    """Names that the code in a folder reads from a configuration."""
    return {
        name
        for path in folder.rglob("*.py")
        for name in _READ.findall(path.read_text(encoding="utf-8"))
    }


def main() -> None:
    """Print the known options as JSON."""
    spec = importlib.util.find_spec("swift")
    if spec is None or spec.origin is None:
        sys.exit("Swift is not installed on this host")
    root = Path(spec.origin).parent
    common = read(root / "common")
    samples = {server: sample(sample_of(server)) for server in FOLDERS}
    known = {
        "samples": {server: names for server, (names, _) in samples.items()},
        "uses": {server: uses for server, (_, uses) in samples.items()},
        "read": {
            server: sorted(common.union(*(read(root / folder) for folder in folders)))
            for server, folders in FOLDERS.items()
        },
    }
    json.dump(known, sys.stdout)


if __name__ == "__main__":
    main()
