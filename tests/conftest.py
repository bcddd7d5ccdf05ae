import gc
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import threaded_driver
from stub_run import Run
from weighbridge.topologies.fake import FakeHost

# A thousand modules and as many programs: each is compiled once, whatever the environment says.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Nothing of what is collected ends before the session.
gc.disable()

# A busy machine must not make tests fail; before any module with `@given` is imported.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SYSTEM = Path(__file__).parent / "system"
LEFT_OPEN = 6
"""Exit status of a session that leaves sockets or files open; pytest has 0 to 5."""

_left_open: list[str] = []
"""In this process, and in the workers that have ended."""


@pytest.fixture(scope="session", autouse=True)
def programs_of_fake_hosts_are_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeHost, "run", threaded_driver.run)
        patch.setattr(FakeHost, "spawn", threaded_driver.spawn)
        yield


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    """An SSH server on loopback, whose keys are in the folder of the test."""
    from ssh_server import Server  # noqa: PLC0415 - few tests need asyncssh

    found = Server(tmp_path)
    yield found
    found.close()


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


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(10_000)  # tests make much that lives as long as they do
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What the last tests have left open fails the session: no test runs that it could fail."""

    def record(fault: Any) -> None:
        if isinstance(fault.exc_value, ResourceWarning):
            _left_open.append(str(fault.exc_value))
        else:
            before(fault)

    gc.unfreeze()
    before, sys.unraisablehook = sys.unraisablehook, record
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            gc.collect()
    finally:
        sys.unraisablehook = before
    output = getattr(session.config, "workeroutput", None)  # a worker's of xdist
    if output is not None:
        output["left_open"] = _left_open
    elif _left_open:
        session.exitstatus = LEFT_OPEN


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _left_open.extend(getattr(node, "workeroutput", {}).get("left_open", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for one in _left_open:
        terminalreporter.write_line(f"left open by a test: {one}", red=True)
