"""How Apache's file is read: containers within containers."""

from __future__ import annotations

import re
from typing import ClassVar

from weighbridge.gateways.file_grammar import FileGrammar, Reading

_BARE = re.compile(r"<IfDefine !WEIGHBRIDGE_\w+>")
"""A container that the suite itself asks Apache by: what is in it is meant for the container around
it.
"""


class ApacheGrammar(FileGrammar):
    """apache.conf."""

    names: ClassVar[tuple[str, ...]] = ("apache.conf",)
    where: ClassVar[str] = (
        "Where: what is in no container, at the end of the configuration, where the later line "
        "holds (but an MPM is loaded "
        "in place of the other); what is in one, in the container that is there, since of two "
        "virtual hosts of an address only the "
        "first is asked. ServerLimit, ThreadLimit and another MPM want a stop and a start, not a "
        "reload."
    )
    indent: ClassVar[str] = "  "
    of_two: ClassVar[frozenset[str]] = frozenset({"SetEnv", "BalancerMember", "CustomLog"})

    def reads(self, raw: str) -> Reading:
        """See FileGrammar."""
        line = raw.strip()
        if line.startswith("</"):
            return "end"
        if line.startswith("<"):
            return "transparent" if _BARE.fullmatch(line) else "container"
        return "line"

    def about(self, line: str) -> str:
        """One MPM comes in place of another, a module of any other kind beside the others."""
        words = line.split()
        if words[0] == "LoadModule":
            return "mpm" if words[1].startswith("mpm_") else words[1]
        return super().about(line)

    def ending(self, head: str) -> str:
        """See FileGrammar."""
        return f"</{head[1:].split(maxsplit=1)[0].rstrip('>')}>"


GRAMMAR = ApacheGrammar()
