"""What Swift's sample files give as defaults, as a program on a host that has it.

stdout is JSON: values by option by section by server. A sample has each option with its default
behind a comment sign; one that is not commented out, or that is `set` so that it holds against the
section before, counts as well.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

SAMPLES = Path("/usr/share/doc/swift/examples")
SERVERS = ("proxy", "account", "container", "object")

_SECTION = re.compile(r"^#?\s*\[([^\]]+)\]\s*$")
# With one blank at most behind the sign: prose of the comments is indented by more, or has no word
# alone before the `=`.
_OPTION = re.compile(r"^(?:#\s?)?(?:set\s+)?([a-z_]\w*)\s*=\s*(.*?)\s*$")


def defaults(text: str) -> dict[str, dict[str, str]]:
    """Values by name by section of one sample file; of a name that stands twice in a section the
    first.
    """
    found: dict[str, dict[str, str]] = {}
    section = "DEFAULT"
    for line in text.splitlines():
        head, option = _SECTION.match(line), _OPTION.match(line)
        if head:
            section = head.group(1)
        elif option:
            found.setdefault(section, {}).setdefault(option.group(1), option.group(2))
    return found


def main() -> None:
    """Print them."""
    told = {}
    for server in SERVERS:
        path = SAMPLES / f"{server}-server.conf"
        if not path.is_file():
            sys.exit(f"{path}: Swift's package has no such sample file on this host")
        told[server] = defaults(path.read_text(encoding="utf-8"))
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
