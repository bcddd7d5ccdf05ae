"""The lock files name all that is installed, by version and checksums, and no download address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
OWN = "weighbridge["
WANTED = (
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(
        words
        for name, extra in EXTRAS.items()
        if name not in {"all", "docs", "history", "test"}
        for words in extra
    ),
)
RUN, TEST = ROOT / "requirements.lock", ROOT / "requirements-test.lock"
DOCS = ROOT / "requirements-docs.lock"


def locked(path: Path) -> dict[str, list[tuple[Requirement, list[str]]]]:
    """Each package's requirements in a lock file (one per group of Pythons or platforms), with
    checksums.
    """
    found: dict[str, list[tuple[Requirement, list[str]]]] = {}
    for entry in path.read_text().replace(" \\\n", " ").splitlines():
        words, *sums = re.split(r"\s+--hash=", entry)
        one = Requirement(words)
        found.setdefault(canonicalize_name(one.name), []).append((one, sums))
    return found


@pytest.mark.parametrize("path", [RUN, TEST, DOCS], ids=["run", "test", "docs"])
def test_every_package_has_one_version_and_sums_of_its_files(path: Path) -> None:
    for entries in locked(path).values():
        for one, sums in entries:
            assert re.fullmatch(r"==[\w.]+", str(one.specifier)), one
            assert sums
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in sums), one
            assert one.url is None


@pytest.mark.parametrize("path", [RUN, TEST, DOCS], ids=["run", "test", "docs"])
def test_no_address_is_in_a_lock_file(path: Path) -> None:
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links|file:|@", path.read_text())


def test_requirements_of_the_project_are_locked_within_their_ranges() -> None:
    own = [words for words in EXTRAS["test"] if not words.startswith(OWN)]
    extra = [*EXTRAS["history"], *own]
    for path, wanted in ((RUN, WANTED), (TEST, (*WANTED, *extra)), (DOCS, EXTRAS["docs"])):
        known = locked(path)
        for words in wanted:
            one = Requirement(words)
            versions = [
                next(iter(entry.specifier)).version
                for entry, _ in known[canonicalize_name(one.name)]
            ]
            assert versions
            assert all(version in one.specifier for version in versions), (
                path.name,
                words,
                versions,
            )


def test_tests_run_with_the_versions_that_users_get() -> None:
    tested = locked(TEST)
    for name, entries in locked(RUN).items():
        # The conditions there differ by what else requires a package.
        assert [(str(one.specifier), sums) for one, sums in entries] == [
            (str(one.specifier), sums) for one, sums in tested[name]
        ]
