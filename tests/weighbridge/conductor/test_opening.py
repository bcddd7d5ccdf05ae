"""What a driver gets when it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.conductor import opening
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.kind import KINDS, LoadSite, OpenedDriver
from weighbridge.drivers.protocol import Setup
from weighbridge.results.record.step import Pass
from weighbridge.suites import loader
from weighbridge.topologies.deployment import Deployment

TARGET = Endpoint(api="s3", url="http://127.0.0.1:1", user="u", key=SecretStr("k"))
SITE = CosbenchSite(controller="http://127.0.0.1:9/controller", archive="/nowhere")


@pytest.mark.parametrize(("driver", "kind"), [("locust", Setup), ("cosbench", CosbenchSetup)])
def test_a_driver_gets_the_timeout_of_its_suite(
    driver: str, kind: type[Setup], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sites: list[LoadSite] = []

    @contextmanager
    def opened(_kind: object, site: LoadSite) -> Iterator[OpenedDriver]:
        sites.append(site)
        yield cast("OpenedDriver", None)

    monkeypatch.setattr(type(KINDS[driver]), "opened", opened)
    monkeypatch.setattr(opening, "_target", lambda *_: (TARGET, None))
    suite = loader.load(loader.find("quick")).model_copy(update={"timeout": 90.0})
    deployment = cast(
        "Deployment",
        SimpleNamespace(
            clients=(SimpleNamespace(name="client-1"),), layout=SimpleNamespace(name="one")
        ),
    )
    one = Pass(api="s3", workloads=suite.workloads, driver=driver)
    with opening.opened(deployment, suite, one, prefix="wb-one", log=tmp_path / "log"):
        pass
    (site,) = sites
    assert (
        site.setup(kind, **({"site": SITE} if kind is CosbenchSetup else {})).request_timeout_s
        == 90.0
    )


def test_an_option_of_a_driver_that_a_run_does_not_use_is_refused() -> None:
    given = {"cosbench": "http://127.0.0.1:19088/controller"}
    with pytest.raises(UsageError, match="--cosbench is for the driver cosbench, which this run"):
        opening.settings_of(["fio"], given, lab=False)
