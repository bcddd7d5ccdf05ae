"""The unit tests nearest to what differs from a commit (default: HEAD), for `make quick`.

    python tests/touched.py [--run] [COMMIT]

prints the test files, or runs them. A test is affected by each file that it imports or names, by
what those import or name, and so on; by a conftest.py above it; and by what COVERS says. The
nearest are chosen, 10 to MAX_FILES of them: `make unit` runs all. Tests marked `long` or `test_all`
run only where their file itself was changed.
"""

from __future__ import annotations

import functools
import heapq
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, zip_longest
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parent.parent
ROOMS: Final = ("common", "drivers", "gateways", "results", "suites", "topologies", "weighbridge")
MAX_FILES: Final = 20
"""Half a minute on two cores: a test file takes 1.5 seconds of CPU time on average."""
NEAR: Final = 2
"""Steps from a file to a test that is always chosen, as long as there is room."""
MAX_FAR_FILES: Final = 10
"""Tests further away are added until there are so many."""

COVERS: Final = (
    ("drivers/engine/*", "tests/drivers/test_engine*.py"),
    ("gateways/apache/responder/*", "tests/gateways/apache/test_*.py"),
    ("topologies/lab/vdisk/*", "tests/topologies/test_lab_host.py"),
    ("results/templates/*", "tests/results/show/test_*.py"),
    ("results/fonts/*", "tests/results/show/test_*.py"),
    ("results/published/*", "tests/suites/test_stud*.py"),
    ("suites/*.yaml", "tests/suites/test_*.py"),
    ("topologies/*.yaml", "tests/topologies/test_*.py"),
    ("scripts/*", "tests/test_docs.py"),
    ("benchmarks/*", "tests/drivers/test_engine*.py"),
    ("docs/*", "tests/test_docs.py"),
    ("*.md", "tests/test_docs.py"),
    ("Makefile", "tests/test_stages.py"),
    (".ci/*", "tests/test_stages.py"),
    ("pyproject.toml", "tests/weighbridge/test_requirements.py"),
)
"""What no test imports or names, and the tests of it; `*` also stands for folders."""

NO_TESTS: Final = 5
"""Pytest's exit status where all tests chosen are slow ones."""

_TEST = re.compile(r"tests/(?!system/).*\btest_\w+\.py")
_SLOW = re.compile(r"^pytestmark\b.*\b(long|test_all)\b", re.MULTILINE)
_WORDS = re.compile(r"[\w.-]+\.(?:j2|html|js)\b")
# Patterns find all that a syntax tree has of these, and a little more, in a sixth of the time.
_IMPORTS = re.compile(
    r"^[ \t]*(?:from (\.*)([\w.]*) import (\([^)]*\)|.+)|import (.+))", re.MULTILINE
)
_MADE = re.compile(r"""\bf"(weighbridge(?:\.\w+)+\.)\{""")
_TEXTS = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def git(*words: str) -> list[str]:
    """Paths that git prints."""
    command = ["git", "-C", str(ROOT), *words, "-z"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [name for name in done.stdout.split("\0") if name]


def changed(commit: str) -> set[str]:
    """Files that differ from the commit, or are unknown to git."""
    return {*git("diff", "--name-only", commit), *git("ls-files", "--others", "--exclude-standard")}


def module_of(path: str) -> str:
    """The name by which others import a file."""
    if path.startswith("tests/support/"):
        path = path.removeprefix("tests/support/")
    elif not path.startswith(("weighbridge/", "tests/")):
        path = f"weighbridge/{path}"
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Tree:
    """The files of the repository, and which of them imports or names which others."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = [path for path in paths if (ROOT / path).is_file()]
        self.modules = {module_of(path): path for path in self.paths if path.endswith(".py")}
        self.named: dict[str, list[str]] = defaultdict(list)
        self.short: dict[str, list[str]] = defaultdict(list)
        """Templates and programs by their names without the last suffix, as production has them."""
        for path in self.paths:
            name = path.rpartition("/")[2]
            if path.startswith(("docs/", "tests/data/")) or name == "__init__.py":
                continue
            self.named[name].append(path)
            if name.endswith(".j2") or (name.endswith(".py") and "_" in name):
                self.short[name.rpartition(".")[0]].append(path)

    @functools.cached_property
    def tests(self) -> list[str]:
        """Files of unit tests that are not all slow."""
        return [
            path
            for path in self.paths
            if path.startswith("tests/")
            and _TEST.fullmatch(path)
            and not _SLOW.search((ROOT / path).read_text())
        ]

    @functools.cached_property
    def users(self) -> Mapping[str, set[str]]:
        """For each file, those that import or name it."""
        found: dict[str, set[str]] = defaultdict(set)
        for path in self.paths:
            if not path.startswith(("docs/", "tests/data/", "tests/system/")):
                for used in self._used_by(path):
                    found[used].add(path)
        return found

    def _used_by(self, path: str) -> Iterator[str]:
        if path.endswith(".j2"):
            for word in _WORDS.findall((ROOT / path).read_text()):
                yield from self.named.get(word, ())
        if not path.endswith(".py"):
            return
        text = (ROOT / path).read_text()
        for dots, base, names, modules in _IMPORTS.findall(text):
            yield from self._modules(re.findall(r"[\w.]+", modules))
            above = module_of(path).split(".")[: -len(dots)] if dots else []
            package = ".".join([*above, base]).rstrip(".")
            if names:
                words = re.findall(r"\w+", names)
                yield from self._modules((package, *(f"{package}.{word}" for word in words)))
        for package in _MADE.findall(text):  # a module by a name that is made
            yield from (one for name, one in self.modules.items() if name.startswith(package))
        for text_of_code in _TEXTS.findall(text):
            # A program that is started by its module's name, or a file that is read or started.
            yield from self._modules((text_of_code.partition(":")[0],))
            yield from self._named_near(path, text_of_code.rpartition("/")[2])

    def _modules(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            if name in self.modules:
                yield self.modules[name]
            native = f"{name.removeprefix('weighbridge.').replace('.', '/')}.pyi"
            if name.endswith("._native") and (ROOT / native).is_file():
                yield native

    def _named_near(self, user: str, name: str) -> Iterable[str]:
        """Files with a name: those of the same folder or room, if there are any."""
        short = [] if user.startswith("tests/") else self.short.get(name, [])
        found = [*self.named.get(name, ()), *short]
        near = max((_common(user, path) for path in found), default=0)
        return [path for path in found if _common(user, path) == near and path != user]

    @functools.cached_property
    def _reached(self) -> set[str]:
        """All files that affect a test by what it imports or names."""
        used: dict[str, set[str]] = defaultdict(set)
        for path, users in self.users.items():
            for user in users:
                used[user].add(path)
        found: set[str] = set()
        waiting = list(self.tests)
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += used[one]
        return found

    def affects_a_test(self, path: str) -> bool:
        """Whether a test imports or names a file, or what imports or names it, and so on."""
        return path in self._reached

    def ranked(self, path: str) -> list[str]:
        """The tests affected by a change of a file, the nearest first; few of those far away."""
        distances = self._distances(path)
        mirror = mirrored(path)
        name = f"test_{PurePosixPath(path).stem}.py"

        def rank(test: str) -> tuple[bool, int, int, str]:
            same = test.startswith(mirror) and test.endswith(f"/{name}")
            steps = distances.get(test, NEAR)
            if _is_covered(path, test):
                steps = min(steps, NEAR)
            return not same, steps, -_common(test, f"{mirror}/"), test

        found = {
            test
            for test in self.tests
            if test in distances or not rank(test)[0] or _is_covered(path, test)
        }
        while not found and mirror:  # the tests of its folder, or of the one above
            found = {test for test in self.tests if test.rpartition("/")[0] == mirror} or {
                test for test in self.tests if test.startswith(f"{mirror}/")
            }
            mirror = mirror.rpartition("/")[0]
        ranked = sorted(found, key=rank)
        near = sum(rank(test)[1] <= NEAR or not rank(test)[0] for test in ranked)
        return ranked[: max(near, MAX_FAR_FILES)]

    def _distances(self, path: str) -> Mapping[str, int]:
        """The files affected by a file, each with the number of steps on the shortest way."""
        found: dict[str, int] = {}
        waiting = [(0, path)]
        while waiting:
            distance, one = heapq.heappop(waiting)
            if one in found:
                continue
            found[one] = distance
            users = self.users.get(one, set())
            if one.endswith("conftest.py"):
                folder = one.rpartition("/")[0] + "/"
                users = users | {test for test in self.tests if test.startswith(folder)}
            for user in users:
                heapq.heappush(waiting, (distance + 1, user))
        return found


def mirrored(path: str) -> str:
    """The folder of tests that mirrors the folder of a file."""
    folder = path.rpartition("/")[0]
    return folder if folder.startswith("tests") else f"tests/{folder}".rstrip("/")


def _is_covered(path: str, test: str) -> bool:
    return any(fnmatchcase(path, files) and fnmatchcase(test, tests) for files, tests in COVERS)


def _common(one: str, other: str) -> int:
    """How many folders two paths have in common, from the top."""
    count = 0
    for mine, its in zip(one.split("/")[:-1], other.split("/")[:-1], strict=False):
        if mine != its:
            break
        count += 1
    return count


def touched(files: Iterable[str], tree: Tree | None = None) -> list[str]:
    """The test files nearest to changed files: of each file one at least, and MAX_FILES in all."""
    tree = tree or Tree(git("ls-files", "--cached", "--others", "--exclude-standard"))
    lists = [tree.ranked(path) for path in sorted(files)]
    first = dict.fromkeys(found[0] for found in lists if found)
    rest = (test for test in chain.from_iterable(zip_longest(*lists)) if test)
    chosen = list(dict.fromkeys((*first, *rest)))
    return chosen[: max(MAX_FILES, len(first))]


def main(arguments: Sequence[str]) -> int:
    """Exit status."""
    run = "--run" in arguments
    files = changed(next((word for word in arguments if word != "--run"), "HEAD"))
    tests = touched(files)
    if not run:
        sys.stdout.writelines(f"{path}\n" for path in tests)
        return 0
    own = [path for path in sorted(files) if _TEST.fullmatch(path) and (ROOT / path).exists()]
    others = [path for path in tests if path not in own]
    pytest = [str(Path(sys.executable).with_name("pytest")), "-q", "-n", "2", "--dist", "loadfile"]
    commands = []
    if others:
        commands.append([*pytest, "-m", "not long and not test_all", *others])
    if own:
        commands.append([*pytest, *own])
    if any(path.endswith(".rs") for path in files):
        commands.append(["cargo", "test", "--quiet", "--workspace"])
    ends = [subprocess.run(command, cwd=ROOT, check=False).returncode for command in commands]
    return max((0 if end == NO_TESTS else end for end in ends), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
