"""How HAProxy's file is read: sections begin where a line begins."""

from __future__ import annotations

from typing import ClassVar

from weighbridge.gateways.file_grammar import FileGrammar, Reading


class HaproxyGrammar(FileGrammar):
    """haproxy.cfg."""

    names: ClassVar[tuple[str, ...]] = ("haproxy.cfg",)
    where: ClassVar[str] = (
        "Where: in the sections of these names that are there, in place of lines that begin with "
        "the same words: HAProxy "
        "refuses a second section of a name. It reads the file when it starts, or is told to "
        "reload."
    )
    indent: ClassVar[str] = "    "
    of_two: ClassVar[frozenset[str]] = frozenset(
        {"timeout", "option", "no", "stats", "server", "http-check", "bind"}
    )

    def reads(self, raw: str) -> Reading:
        """See FileGrammar."""
        return "line" if raw[0].isspace() else "section"


GRAMMAR = HaproxyGrammar()
