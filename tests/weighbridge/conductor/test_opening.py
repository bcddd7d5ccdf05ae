"""What a driver is told when it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.conductor import opening
from weighbridge.drivers.order import Setup
from weighbridge.results.record.step import Pass
from weighbridge.suites import loader
from weighbridge.topologies.deployment import Deployment

TARGET = Endpoint(api="s3", url="http://127.0.0.1:1", user="u", key=SecretStr("k"))


@pytest.mark.parametrize("driver", ["locust", "cosbench"])
def test_a_driver_is_told_the_timeout_of_its_suite(driver: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[Setup] = []

    @contextmanager
    def opened(_clients: object, setup: Setup, *_more: object) -> Iterator[opening.Opened]:
        told.append(setup)
        yield cast("opening.Opened", None)

    monkeypatch.setattr(opening, "_by_locust", opened)
    monkeypatch.setattr(opening, "_by_cosbench", opened)
    monkeypatch.setattr(opening, "_target", lambda *_: (TARGET, None))
    suite = loader.load(loader.find("quick")).model_copy(update={"timeout": 90.0})
    deployment = cast("Deployment", SimpleNamespace(clients=(SimpleNamespace(name="client-1"),)))
    one = Pass(api="s3", workloads=suite.workloads, driver=driver)
    with opening.opened(deployment, suite, one, prefix="wb-one", log=tmp_path / "log"):
        pass
    assert [setup.request_timeout_s for setup in told] == [90.0]
