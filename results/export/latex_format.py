r"""LaTeX: a table with booktabs, its caption above and its notes below.

It needs \usepackage{booktabs} and no other package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from weighbridge.common.escaping import escape_controls
from weighbridge.results.export.file import ExportFile
from weighbridge.results.export.paper import PaperTable

_LETTERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        # What TeX's fonts lack as letters:
        "–": "--",
        "’": "'",
        "×": r"$\times$",
        "∞": r"$\infty$",
        "†": r"$\dagger$",
        "‡": r"$\ddagger$",
        "§": r"\S{}",
        "°": r"$^{\circ}$",
        "±": r"$\pm$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "µ": r"$\mu$",
        "μ": r"$\mu$",
        "…": r"\ldots{}",
    }
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")
_ENDED: Final = r" \\"


def latex_file(table: PaperTable) -> ExportFile:
    """A table, ready to paste."""
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    heads = [
        f"{column.title} ({column.unit})" if column.unit else column.title
        for column in table.columns
    ]
    body: list[str] = []
    for number, group in enumerate(table.groups):
        body += [r"\midrule"] * (number > 0)
        body += [_line(cells) for cells in group]
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escape(table.caption)}}}",
        f"\\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        _line(heads),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip\footnotesize\raggedright",
        *(f"{escape(note)}\\par" for note in table.notes),
        r"\end{table}",
    ]
    return ExportFile(name=f"{table.name}.tex", content=("\n".join(lines) + "\n").encode())


def escape(text: str) -> str:
    """A text in one line, without anything that TeX would take for a command."""
    return "".join(
        _LETTERS.get(letter, letter) for letter in escape_controls(_CONTROL.sub(" ", text))
    )


def _line(cells: Iterable[str]) -> str:
    # A cell that begins with [ or * would be taken for an argument of the line break before it: it
    # is put in braces.
    shown = (f"{{{cell}}}" if cell.startswith(("[", "*")) else cell for cell in map(escape, cells))
    return " & ".join(shown) + _ENDED
