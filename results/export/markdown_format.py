"""Markdown: a table as GitHub, GitLab and Pandoc read it, its caption above and its notes below."""

from __future__ import annotations

import re
from typing import Final

from weighbridge.common.escaping import escape_controls
from weighbridge.results.export.file import ExportFile
from weighbridge.results.export.paper import PaperTable

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")
_LINKING: Final = re.compile(r"@|:(?=//)|www(?=\.)", re.IGNORECASE)
"""After these GitHub, GitLab and Pandoc see a link or a mention."""
_BREAK: Final = "\N{ZERO WIDTH SPACE}"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")


def markdown_file(table: PaperTable) -> ExportFile:
    """A table, ready to paste."""
    heads = [
        f"{column.title} ({column.unit})" if column.unit else column.title
        for column in table.columns
    ]
    lines = [
        f"**{escape(table.caption)}**",
        "",
        _line(heads),
        f"|{'|'.join('---:' if column.numeric else ':---' for column in table.columns)}|",
        *(_line(cells) for group in table.groups for cells in group),
        "",
        *(f"- {escape(note)}" for note in table.notes),
    ]
    return ExportFile(name=f"{table.name}.md", content=("\n".join(lines) + "\n").encode())


def escape(text: str) -> str:
    """A text in one line, without anything that is Markdown, HTML, a link or a mention."""
    inert = _SPECIAL.sub(r"\\\1", escape_controls(_CONTROL.sub(" ", text)))
    return _LINKING.sub(rf"\g<0>{_BREAK}", inert)


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(escape(cell) for cell in cells)} |"
