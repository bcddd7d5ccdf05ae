"""Keys that end before a run would."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.run import refuse_ending_keys
from weighbridge.topologies.loader import Planned, load_hardware, load_layout, shipped_hardware

LAYOUT = """
name: mine
about: x
gateway: existing
release: any
place: {}
settings: {s3: {url: "http://127.0.0.1:9", credentials: environment}}
"""


def planned(folder: Path) -> Planned:
    (folder / "mine.yaml").write_text(LAYOUT)
    hardware = load_hardware(shipped_hardware()["this-machine"])
    return load_layout(folder / "mine.yaml", hardware)


def keys(lasting_s: float | None) -> Mapping[str, str]:
    given = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T"}
    if lasting_s is None:
        return given
    end = datetime.now(UTC) + timedelta(seconds=lasting_s)
    return {**given, "AWS_CREDENTIAL_EXPIRATION": end.isoformat()}


def test_a_run_that_outlives_its_keys_is_refused_with_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = planned(tmp_path)
    for name, value in keys(1800.4).items():
        monkeypatch.setenv(name, value)
    refuse_ending_keys([layout], 1700)
    with pytest.raises(UsageError) as error:
        refuse_ending_keys([layout], 7200)
    assert error.value.message.startswith("mine: its keys expire in 30:00")
    assert "the run needs an estimated 2:00:00" in error.value.message
    assert "credential_process" in (error.value.advice or "")


def test_keys_that_do_not_say_when_they_end_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = planned(tmp_path)
    monkeypatch.delenv("AWS_CREDENTIAL_EXPIRATION", raising=False)
    for name, value in keys(None).items():
        monkeypatch.setenv(name, value)
    refuse_ending_keys([layout], 1e6)
