"""How configuration files of a kind are read, so that what differs between two of them can be
pasted.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Reading = Literal["line", "section", "container", "transparent", "end"]
"""What a line is: one of a section or container; the beginning of a section, which ends where the
next begins; the beginning of a container; that of one whose lines are meant for the container
around it; or the end of a container.
"""


class FileGrammar:
    """The base reads sections in brackets, and takes a line to be about its first word."""

    names: ClassVar[tuple[str, ...]] = ()
    """Names of the files, or what follows the `*` of one that begins with it: `*-server.conf`."""
    where: ClassVar[str] = (
        "Where: in place of the lines that begin with the same words. Its daemon reads the file "
        "when it starts."
    )
    """Tells people where a piece goes."""
    indent: ClassVar[str] = ""
    """Before lines, for each container or section around them."""
    of_two: ClassVar[frozenset[str]] = frozenset()
    """Words that say what a line is about only together with the next one."""

    def is_of(self, name: str) -> bool:
        """Whether a file of this name is read so."""
        return any(
            name.endswith(one[1:]) if one.startswith("*") else name == one for one in self.names
        )

    def reads(self, raw: str) -> Reading:
        """What a line that is not empty is, with the blanks before it."""
        line = raw.strip()
        return "section" if line.startswith("[") and line.endswith("]") else "line"

    def about(self, line: str) -> str:
        """What a line is about: one that comes in place of another is about the same."""
        words = line.split()
        return " ".join(words[: 1 + (words[0] in self.of_two)])

    def ending(self, head: str) -> str:
        """The line that ends what began with this one; empty where none does."""
        return ""

    def note(self, head: str) -> str:
        """What people are told of a section or container beside its lines."""
        return ""


class IniGrammar(FileGrammar):
    """Options are `name = value`."""

    def about(self, line: str) -> str:
        """The option's name."""
        return line.partition("=")[0].strip()


class OtherGrammar(FileGrammar):
    """Of files that nobody declares."""

    of_two: ClassVar[frozenset[str]] = frozenset({"origin"})
