from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stub_run import Run, fake_driver_settings
from tests.weighbridge.displays import Silent
from weighbridge.conductor import conductor
from weighbridge.conductor.conductor import Conductor
from weighbridge.results.record.store import RunStore
from weighbridge.topologies import deployment as deployments
from weighbridge.topologies.attestation import Attestation, AttestOptions
from weighbridge.topologies.ceilings import HostCeiling

CEILING = HostCeiling(
    host="gateway-1", kind="cpu", what="cpu", value=300.0, unit="events/s", promised=330.0
)


def conduct(run: Run, *, attest: bool) -> RunStore:
    store = run.store()
    Conductor(
        run.plan(),
        run.planned,
        store,
        Silent(),
        run.place,
        settings=fake_driver_settings(),
        attest=attest,
    ).run()
    return store


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[AttestOptions]:
    """What was measured of each deployment's hosts, with a made-up result."""
    asked: list[AttestOptions] = []

    def deploy(*arguments: Any, attest: AttestOptions, **named: Any) -> deployments.Deployment:
        made = deployments.deploy(*arguments, attest=attest, **named)
        assert made.attestation is None  # its hosts are pretended
        asked.append(attest)
        if attest:
            made.attestation = Attestation(
                ceilings=(CEILING,), tools={"fio": "fio-3.33"}, took_s=1.0
            )
        return made

    monkeypatch.setattr(conductor, "deploy", deploy)
    return asked


def test_hosts_are_measured_once_for_each_layout_and_recorded_with_the_tools(
    tmp_path: Path, asked: list[AttestOptions]
) -> None:
    store = conduct(Run(tmp_path, repeats=2), attest=True)
    kept = store.attested()
    assert sorted((one.layout, one.repeat) for one in kept) == [("rgw-a", 0), ("swift-b", 0)]
    assert len(asked) == 4
    assert {(one.host, one.kind, one.what, one.value, one.unit, one.promised) for one in kept} == {
        ("gateway-1", "cpu", "cpu", 300.0, "events/s", 330.0)
    }
    assert [sheet.facts for sheet in store.manifest.sheets if sheet.title == "attestation"] == [
        {"fio": "fio-3.33"}
    ]


def test_a_run_without_attestation_records_none(tmp_path: Path, asked: list[AttestOptions]) -> None:
    assert conduct(Run(tmp_path), attest=False).attested() == ()
    assert set(asked) == {AttestOptions()}
