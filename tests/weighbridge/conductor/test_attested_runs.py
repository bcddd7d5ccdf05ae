from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stub_run import Run, Seen
from weighbridge.conductor import conductor
from weighbridge.results.analysis.sameness import host_doubts
from weighbridge.topologies import deployment as deployments
from weighbridge.topologies.attestation import Attestation, AttestOptions
from weighbridge.topologies.ceilings import HostCeiling

CEILING = HostCeiling(
    host="gateway-1", kind="cpu", what="cpu", value=300.0, unit="events/s", promised=330.0
)


@pytest.fixture
def values() -> dict[tuple[str, int], float]:
    """What the CPU gives instead of 300 events/s, by layout and how often that was attested."""
    return {}


@pytest.fixture
def asked(
    monkeypatch: pytest.MonkeyPatch, values: dict[tuple[str, int], float]
) -> list[AttestOptions]:
    """What was measured of each deployment's hosts, with a made-up result."""
    asked: list[AttestOptions] = []
    times: Counter[str] = Counter()

    def deploy(*arguments: Any, attest: AttestOptions, **named: Any) -> deployments.Deployment:
        made = deployments.deploy(*arguments, attest=attest, **named)
        assert made.attestation is None  # its hosts are pretended
        asked.append(attest)
        if attest:
            name = made.layout.name
            value = values.get((name, times[name]), CEILING.value)
            times[name] += 1
            made.attestation = Attestation(
                ceilings=(CEILING.model_copy(update={"value": value}),),
                tools={"fio": "fio-3.33"},
                took_s=1.0,
            )
        return made

    monkeypatch.setattr(conductor, "deploy", deploy)
    return asked


def test_hosts_are_measured_once_for_each_layout_and_recorded_with_the_tools(
    tmp_path: Path, asked: list[AttestOptions]
) -> None:
    store = Run(tmp_path, repeats=2).conduct(attest=True)
    kept = store.attested()
    assert sorted((one.layout, one.repeat) for one in kept) == [("rgw-a", 0), ("swift-b", 0)]
    assert len(asked) == 4
    assert {(one.host, one.kind, one.what, one.value, one.unit, one.promised) for one in kept} == {
        ("gateway-1", "cpu", "cpu", 300.0, "events/s", 330.0)
    }
    assert [sheet.facts for sheet in store.manifest.sheets if sheet.title == "attestation"] == [
        {"fio": "fio-3.33"}
    ]


@pytest.mark.parametrize("lasting", [False, True])
def test_hosts_that_seem_to_differ_are_attested_at_later_visits_until_the_median_decides(
    lasting: bool, tmp_path: Path, asked: list[AttestOptions], values: dict[tuple[str, int], float]
) -> None:
    odd = range(3 if lasting else 1)
    values.update({("rgw-a", time): 100.0 for time in odd})
    heard = Seen()
    store = Run(tmp_path, repeats=4).conduct(attest=True, display=heard)
    kept = store.attested()
    assert sorted((one.layout, one.repeat) for one in kept) == [
        (layout, repeat) for layout in ("rgw-a", "swift-b") for repeat in range(3)
    ]
    said = [text for text in heard.said if text.startswith("hosts differ so far: ")]
    assert said[0].endswith("; to be attested again: rgw-a, swift-b")
    assert (
        "cpu of gateway-1 gave 100 events/s under rgw-a and 300 events/s under swift-b" in said[0]
    )
    assert bool(host_doubts(kept)) == lasting
    assert ("to be attested again" in said[-1]) != lasting


def test_a_run_without_attestation_records_none(tmp_path: Path, asked: list[AttestOptions]) -> None:
    assert Run(tmp_path).conduct(attest=False).attested() == ()
    assert set(asked) == {AttestOptions()}
