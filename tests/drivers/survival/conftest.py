"""A store in memory, a host whose programs are processes, and what is often ordered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from survivor_store import SurvivorStore, survivor_store
from weighbridge.drivers.survival import WriteOrder
from weighbridge.topologies.fake import FakeHost

SEED = 11


@pytest.fixture
def store() -> Iterator[SurvivorStore]:
    with survivor_store() as one:
        yield one


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeHost]:
    one = FakeHost("client-1", "127.0.0.1", tmp_path / "client-1")
    yield one
    one.close()


@pytest.fixture
def ordered(store: SurvivorStore) -> Callable[..., WriteOrder]:
    def make(**given: Any) -> WriteOrder:
        usual: dict[str, Any] = {
            "endpoints": store.endpoints(),
            "prefix": "wb-cut",
            "sizes": (4096, 70_000),
            "workers": 4,
            "overwrites": 0.3,
            "deletes": 0.2,
            "seed": SEED,
            "timeout_s": 5.0,
            "drain_s": 5.0,
        }
        return WriteOrder.model_validate(usual | given)

    return make
