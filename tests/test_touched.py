from __future__ import annotations

from tests import touched

UNIT = touched.ROOT / "tests"


def test_a_test_is_affected_by_a_module_that_it_imports() -> None:
    found = set(touched.touched({touched.ROOT / "common" / "quantities.py"}))
    assert UNIT / "common" / "test_quantities.py" in found
    assert UNIT / "common" / "test_paths.py" not in found


def test_a_test_is_affected_by_itself_and_by_fixtures_above_it() -> None:
    mine = UNIT / "results" / "record" / "test_store.py"
    assert set(touched.touched({mine})) == {mine}
    assert mine in set(touched.touched({UNIT / "results" / "conftest.py"}))


def test_a_slow_test_is_affected_by_itself_only() -> None:
    long = UNIT / "weighbridge" / "test_existing.py"
    assert long not in set(touched.touched({touched.ROOT / "gateways" / "existing" / "made.py"}))
    assert long in set(touched.touched({long}))


def test_support_files_are_imported_by_their_names() -> None:
    found = set(touched.touched({touched.SUPPORT / "fake_run.py"}))
    assert UNIT / "results" / "charts" / "test_gallery.py" in found
