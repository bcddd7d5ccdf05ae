from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import threaded_driver
from stub_run import Run
from weighbridge.topologies.fake import FakeHost

# A busy machine must not make tests fail; before any module with `@given` is imported.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SYSTEM = Path(__file__).parent / "system"


@pytest.fixture(scope="session", autouse=True)
def fake_drivers_are_threads() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeHost, "spawn", threaded_driver.spawn)
        yield


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first, so that nothing waits for one at the end.

    Raises UsageError for a system test outside of `tests/system`, or any other test in it.
    """
    for item in items:
        if item.path.is_relative_to(SYSTEM) != (item.get_closest_marker("system") is not None):
            raise pytest.UsageError(
                f"{item.nodeid}: system tests, and only those, belong in tests/system and are "
                "marked `system`"
            )
    items.sort(
        key=lambda item: (
            item.get_closest_marker("long") is None and not item.path.name.startswith("test_fuzz_")
        )
    )
