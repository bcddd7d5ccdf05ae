"""What a driver gets when it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Self, cast

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.conductor import opening
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.joining import listening
from weighbridge.drivers.kind import KINDS, LoadSite, OpenedDriver
from weighbridge.drivers.locust.kind import LocustRun
from weighbridge.drivers.protocol import Setup
from weighbridge.results.record.step import Pass
from weighbridge.suites import loader
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import load_hardware, shipped_hardware

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


JOINING = {"clients_join": "3", "token_file": "token"}


def test_clients_that_join_are_counted_for_the_plan() -> None:
    settings = opening.settings_of(["locust"], JOINING, lab=False)
    assert opening.joining(settings) == 3
    assert opening.joining(opening.settings_of(["locust", "fio"], {}, lab=False)) == 0


def test_clients_that_join_lab_hosts_are_refused_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="cannot reach lab hosts"):
        opening.settings_of(["locust"], JOINING, lab=True)


def test_an_option_of_a_driver_that_a_run_does_not_use_is_refused() -> None:
    with pytest.raises(UsageError, match="--clients-join is for the driver locust, which this run"):
        opening.settings_of(["fio"], JOINING, lab=False)


def test_a_name_of_a_client_of_the_hardware_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[object] = []

    class Port:
        def __init__(self, _settings: object, _token: object, taken: object, _say: object) -> None:
            seen.append(taken)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            seen.append("closed")

        def gathered(self) -> tuple[()]:
            seen.append("gathered")
            return ()

    monkeypatch.setattr(listening, "JoinPort", Port)
    given = {**JOINING, "token_file": str(tmp_path / "token")}
    settings = opening.settings_of(["locust"], given, lab=False)
    hardware = load_hardware(shipped_hardware()["this-machine"])
    with opening.for_run(settings, hardware, seen.append) as running:
        assert isinstance(running["locust"], LocustRun)
        assert seen == [("client-1",), "gathered"]
    assert seen[-1] == "closed"
