"""Print the unit tests affected by changes since a commit (default: HEAD), one file per line, for
`make quick`.

A test is affected if it changed itself, or a module that it imports or a conftest.py above it did.
Slow tests (marked `long`) are left out unless they changed themselves: `make unit` runs them.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SYSTEM = ROOT / "tests" / "system"
SUPPORT = ROOT / "tests" / "support"


def changed(commit: str) -> set[Path]:
    """Python files that differ from the commit, or are unknown to git."""
    names = ""
    for command in (
        ("diff", "--name-only", "-z", commit),
        ("ls-files", "--others", "--exclude-standard", "-z"),
    ):
        git = ["git", "-C", str(ROOT), *command]
        names += subprocess.run(git, check=True, capture_output=True, text=True).stdout
    return {ROOT / name for name in names.split("\0") if name.endswith(".py")}


def module_of(path: Path) -> str:
    """The name by which tests import a file."""
    if path.is_relative_to(SUPPORT):
        return path.stem
    parts = path.relative_to(ROOT).with_suffix("").parts
    package = parts if parts[0] in ("weighbridge", "tests") else ("weighbridge", *parts)
    return ".".join(package[:-1] if package[-1] == "__init__" else package)


@functools.cache
def imports_of(path: Path) -> frozenset[str]:
    """The names of modules that a file imports; for `from a import b` both `a` and `a.b`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update((node.module, *(f"{node.module}.{one.name}" for one in node.names)))
    return frozenset(found)


def touched(files: set[Path]) -> Iterator[Path]:
    """The test files affected by a change of these files."""
    modules = {module_of(path) for path in files}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.is_relative_to(SYSTEM):
            continue
        fixtures_changed = any(folder / "conftest.py" in files for folder in path.parents)
        imports_changed = not modules.isdisjoint(imports_of(path))
        if path in files or (
            (imports_changed or fixtures_changed) and "pytest.mark.long" not in path.read_text()
        ):
            yield path


def main(commit: str = "HEAD") -> None:
    """Print the affected tests."""
    sys.stdout.writelines(f"{path.relative_to(ROOT)}\n" for path in touched(changed(commit)))


if __name__ == "__main__":
    main(*sys.argv[1:])
