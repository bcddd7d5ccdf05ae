from pathlib import Path

import pytest

from stub_run import Run

SYSTEM = Path(__file__).parent / "system"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes comes first: begun last, it would be waited for alone.

    Only `tests/system` is looked into for system tests, and it holds nothing else: raises
    UsageError for what is elsewhere.
    """
    for item in items:
        if item.path.is_relative_to(SYSTEM) != (item.get_closest_marker("system") is not None):
            raise pytest.UsageError(
                f"{item.nodeid}: system tests, and only those, are in tests/system and marked as "
                "such"
            )
    items.sort(
        key=lambda item: (
            item.get_closest_marker("long") is None and not item.path.name.startswith("test_fuzz_")
        )
    )
