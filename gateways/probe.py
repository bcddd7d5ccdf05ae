"""A probe: a program on a host that prints a daemon's counters every second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from weighbridge.common.host import Host
from weighbridge.common.structure import DaemonCounters


@dataclass(frozen=True)
class Probe:
    """A program to run on a host while a step is measured.

    The program prints one line of JSON at once and then one every second, until its stdin closes: a
    flat object of numbers by name, such as `{"qlen": 3, "req": 12345}`. Growing counters are
    printed as they are; the reader computes rates. A second in which the daemon does not answer has
    no line. Errors go to stderr.
    """

    host: Host
    name: str
    """The daemon, such as radosgw.gateway-1 or osd.0: unique in a deployment."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    counters: DaemonCounters | None = None
    """Which counters are shown for a step, over all daemons of this kind; all of them are kept."""


Reading = Literal["line", "section", "container", "transparent", "end"]
"""What a line is. A `section` ends where the next one begins; a `container` ends with its `end`.
The lines of a `transparent` container belong to the container around it.
"""


class FileGrammar:
    """Reads sections in brackets; the first word of a line is its key."""

    names: ClassVar[tuple[str, ...]] = ()
    """File names, or patterns such as `*-server.conf`."""
    where: ClassVar[str] = (
        "Where: in place of the lines that begin with the same words. Its daemon reads the file "
        "when it starts."
    )
    """Tells users where to put a fragment."""
    indent: ClassVar[str] = ""
    """Indentation of lines, for each container or section around them."""
    of_two: ClassVar[frozenset[str]] = frozenset()
    """First words that form a line's key only together with the second word."""

    def is_of(self, name: str) -> bool:
        return any(
            name.endswith(one[1:]) if one.startswith("*") else name == one for one in self.names
        )

    def reads(self, raw: str) -> Reading:
        """The kind of a line that is not empty, given with its indentation."""
        line = raw.strip()
        return "section" if line.startswith("[") and line.endswith("]") else "line"

    def about(self, line: str) -> str:
        """The key of a line: a line replaces another one with the same key."""
        words = line.split()
        return " ".join(words[: 1 + (words[0] in self.of_two)])

    def ending(self, head: str) -> str:
        """The line that ends the container that `head` begins; empty where there is none."""
        return ""

    def note(self, head: str) -> str:
        return ""


class IniGrammar(FileGrammar):
    """Options are `name = value`."""

    def about(self, line: str) -> str:
        return line.partition("=")[0].strip()


class OtherGrammar(FileGrammar):
    """The grammar of all other files."""

    of_two: ClassVar[frozenset[str]] = frozenset({"origin"})
