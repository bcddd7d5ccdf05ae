"""How much of everything the repository may have: budgets.toml, whose figures may only fall.

    python scripts/budgets.py            fails above a budget, and if one was raised
    python scripts/budgets.py --lower    writes today's figures where they are lower

Lines and files are those known to git, with a newline at the end of each line.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("common", "drivers", "gateways", "results", "suites", "topologies", "weighbridge")
PARTS = {
    "production": ROOMS,
    "results": ("results",),
    "gateways-topologies-common": ("gateways", "topologies", "common"),
    "drivers": ("drivers",),
    "weighbridge-suites": ("weighbridge", "suites"),
    "benchmarks-scripts": ("benchmarks", "scripts"),
    "tests": ("tests",),
}
"""The Python files of these folders."""

Budgets = Mapping[str, Mapping[str, float]]


def git(*words: str) -> str:
    """What git prints; nothing if it fails."""
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def today() -> Budgets:
    """The figures of the files as they are."""
    names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    files = [name for name in names if name and (ROOT / name).is_file()]
    python = {
        name: (ROOT / name).read_bytes() for name in sorted(set(files)) if name.endswith(".py")
    }
    found: dict[str, dict[str, float]] = {}
    for part, folders in PARTS.items():
        mine = [text for name, text in python.items() if name.partition("/")[0] in folders]
        found[part] = {"lines": sum(text.count(b"\n") for text in mine), "files": len(mine)}
    production = [text for name, text in python.items() if name.partition("/")[0] in ROOMS]
    found["production"]["expressions-per-statement-of-code"] = _density(production)
    rust = [name for name in set(files) if name.endswith(".rs") and not name.startswith("tests/")]
    found["rust"] = {"lines": sum((ROOT / name).read_bytes().count(b"\n") for name in rust)}
    found["architecture"] = {"bytes": (ROOT / "ARCHITECTURE.md").stat().st_size}
    return found


def _density(texts: Iterable[bytes]) -> float:
    """Expressions in each statement of code: neither imports nor docstrings are any."""
    expressions = statements = 0
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            expressions += isinstance(node, ast.expr)
            statements += isinstance(node, ast.stmt) and not _is_no_code(node)
    return round(expressions / statements, 2)


def _is_no_code(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, (ast.Import, ast.ImportFrom))


def faults(figures: Budgets, budgets: Budgets, older: Iterable[Budgets]) -> Iterator[str]:
    """A line for each figure above its budget, and each budget that was raised."""
    for part, name, budget in _each(budgets):
        figure = figures.get(part, {}).get(name)
        if figure is None:
            yield f"{part}.{name} is no figure"
        elif figure > budget:
            yield f"{part}.{name} is {figure:g}, and may be {budget:g}: lower the figure"
    for part, name, _ in _each(figures):
        if name not in budgets.get(part, {}):
            yield f"{part}.{name} has no budget"
    for old in older:
        for part, name, budget in _each(old):
            now = budgets.get(part, {}).get(name, budget)
            if now > budget:
                yield f"the budget of {part}.{name} was {budget:g} and is {now:g}: it may only fall"


def _each(budgets: Budgets) -> Iterator[tuple[str, str, float]]:
    for part, figures in budgets.items():
        for name, figure in figures.items():
            yield part, name, figure


def lowered(text: str, figures: Budgets) -> str:
    """The text of budgets.toml, with figures that are lower today."""
    part = ""
    lines = []
    for line in text.splitlines(keepends=True):
        if heading := re.match(r"\[(.+)\]", line):
            part = heading[1]
        elif entry := re.match(r"([\w-]+) = ([\d.]+)", line):
            figure = min(float(entry[2]), figures[part][entry[1]])
            lines.append(f"{entry[1]} = {round(figure, 2):.15g}{line[entry.end() :]}")
            continue
        lines.append(line)
    return "".join(lines)


def main() -> int:
    """Exit status."""
    file = ROOT / "budgets.toml"
    figures = today()
    if "--lower" in sys.argv[1:]:
        file.write_text(lowered(file.read_text(), figures))
    # Those of the last commits that changed them: a commit cannot raise what an older one lowered.
    commits = git("log", "-n", "10", "--format=%H", "--", file.name).split()
    older = [tomllib.loads(git("show", f"{commit}:{file.name}")) for commit in commits]
    found = list(dict.fromkeys(faults(figures, tomllib.loads(file.read_text()), older)))
    sys.stderr.writelines(f"budgets: {line}\n" for line in found)
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
