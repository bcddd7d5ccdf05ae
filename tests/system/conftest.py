"""A separate place for each of the workers that run tests at the same time."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.common.host import Host
from weighbridge.environment import place
from weighbridge.topologies.lab import LabHosts, ending

sys.path.insert(0, str(Path(__file__).parent))  # the helpers of all files here
from small_lab import labelled, raised


@pytest.fixture(scope="session", autouse=True)
def own_place(worker_id: str) -> Iterator[None]:
    """One deployment runs in a place at a time: each worker has its own, apart from the user's,
    with the images of all.
    """
    shared = place()
    home, state = (Path(f"{folder}-{worker_id}") for folder in (shared.home, shared.state))
    _remove(home, state)  # what tests that were killed have left
    home.mkdir(parents=True)
    shared.images.mkdir(parents=True, exist_ok=True)
    (home / "images").symlink_to(shared.images)
    with pytest.MonkeyPatch.context() as patch:
        for name, folder in (("WEIGHBRIDGE_HOME", home), ("WEIGHBRIDGE_STATE", state)):
            patch.setenv(name, os.fspath(folder))
        patch.setenv("WEIGHBRIDGE_PATIENCE", "0s")  # other tests run meanwhile: it is not quiet
        try:
            yield
        finally:
            # Also where the tests were interrupted: what runs here cannot be found once these
            # folders are gone.
            _remove(home, state)


def _remove(home: Path, state: Path) -> None:
    """Remove a worker's place and all that runs in it.

    Raises UsageError while a conductor is at work there.
    """
    for label in {one.deployment for one in ending.find_leftovers(state=state)}:
        ending.remove_leftovers(label, state=state)
    (home / "images").unlink(
        missing_ok=True
    )  # before anything below the folder is removed: what it leads to is everybody's
    for folder in (home, state):
        if folder.exists():
            shutil.rmtree(folder)


@pytest.fixture(scope="module", autouse=True)
def nothing_left(own_place: None) -> Iterator[None]:
    """What the tests of a file leave running is removed, and is a failure of that file: those after
    it must not suffer for it.
    """
    where = place()
    before = {one.deployment for one in ending.find_leftovers(state=where.state)}
    yield
    left = [one for one in ending.find_leftovers(state=where.state) if one.deployment not in before]
    for label in {one.deployment for one in left}:
        ending.remove_leftovers(label, state=where.state)
    assert not left, f"left running, and removed now: {', '.join(map(str, left))}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    home = tmp_path_factory.mktemp("lab")
    with raised(labelled("shared"), home / "deployment", home / "state") as hosts:
        yield hosts


@pytest.fixture
def client(lab: LabHosts) -> Host:
    return lab.hosts["client-1"]


@pytest.fixture
def gateway(lab: LabHosts) -> Host:
    return lab.hosts["gateway-1"]


@pytest.fixture
def store(lab: LabHosts) -> Host:
    return lab.hosts["store-1"]
