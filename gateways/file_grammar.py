"""How configuration files of a kind are parsed, to extract the differences between two of them."""

from __future__ import annotations

from typing import ClassVar, Literal

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
        """Whether this grammar parses files of this name."""
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
        """A remark for users about a section or container."""
        return ""


class IniGrammar(FileGrammar):
    """Options are `name = value`."""

    def about(self, line: str) -> str:
        return line.partition("=")[0].strip()


class OtherGrammar(FileGrammar):
    """The grammar of all other files."""

    of_two: ClassVar[frozenset[str]] = frozenset({"origin"})
