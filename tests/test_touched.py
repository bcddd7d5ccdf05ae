from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tests import touched
from tests.touched import Tree

PRODUCTION = tuple(f"{one}/" for one in (*touched.ROOMS, "scripts", "benchmarks", ".ci"))

pytestmark = pytest.mark.long  # all files are parsed: some seconds


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(touched.git("ls-files"))


def test_a_test_that_imports_a_module_and_mirrors_it_comes_first(tree: Tree) -> None:
    assert tree.ranked("common/quantities.py")[0] == "tests/common/test_quantities.py"


def test_no_file_of_production_selects_no_test(tree: Tree) -> None:
    files = [path for path in tree.paths if path.startswith(PRODUCTION)]
    assert len(files) > 100
    assert not [path for path in files if not tree.affects_a_test(path) and not tree.ranked(path)]


def test_a_rule_for_files_that_no_test_names_has_both(tree: Tree) -> None:
    for files, tests in touched.COVERS:
        assert any(fnmatchcase(path, files) for path in tree.paths), files
        assert any(fnmatchcase(test, tests) for test in tree.tests), tests


def test_a_module_is_reached_through_others(tree: Tree) -> None:
    (host,) = (path for path in tree.paths if path == "topologies/fake.py")
    direct = {test for test in tree.tests if test in tree.users[host]}
    assert direct < set(tree.ranked(host))


def test_templates_and_the_engine_are_reached(tree: Tree) -> None:
    for path in tree.paths:
        if path.startswith("results/templates/"):
            assert any(test.startswith("tests/results/show/") for test in tree.ranked(path)), path
        if path.startswith("drivers/engine/src/"):
            assert tree.ranked(path)[0].startswith("tests/drivers/"), path


def test_a_changed_test_and_one_of_each_changed_file_are_chosen_within_the_bound(
    tree: Tree,
) -> None:
    test = "tests/common/test_safe_files.py"
    chosen = touched.touched([test, "common/errors.py", "results/templates/page.js"], tree)
    assert test in chosen
    assert any(path.startswith("tests/results/show/") for path in chosen)
    assert len(chosen) <= touched.MAX_FILES


def test_slow_files_are_not_chosen(tree: Tree) -> None:
    assert "tests/test_touched.py" not in tree.tests
