from pathlib import Path

import pytest

from weighbridge.testing import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes comes first: begun last, it would be waited for alone."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
