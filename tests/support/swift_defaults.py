"""Defaults in Swift's sample files, as a program on a host that has them.

stdout is JSON: values by option by section by server. A sample lists each option with its default
as a comment; uncommented options, and those with `set` (to override [DEFAULT]), count as well.
"""

from __future__ import annotations

import json
import re
import sys

from weighbridge.gateways.swift.swift_host import sample_of

SERVERS = ("proxy", "account", "container", "object")

_SECTION = re.compile(r"^#?\s*\[([^\]]+)\]\s*$")
# At most one space after the comment sign: prose is indented more, or has no single word before
# `=`.
_OPTION = re.compile(r"^(?:#\s?)?(?:set\s+)?([a-z_]\w*)\s*=\s*(.*?)\s*$")


def defaults(text: str) -> dict[str, dict[str, str]]:
    """Values by name by section of a sample file; the first one of a repeated name."""
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
    found = {server: defaults(sample_of(server)) for server in SERVERS}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
