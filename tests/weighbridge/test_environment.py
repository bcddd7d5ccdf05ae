"""What a run requires of this machine, and what it can do without."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.weighbridge.command_line import existing, s3_at
from weighbridge import environment
from weighbridge.cli.doctor import command
from weighbridge.common.errors import EXIT_USAGE, UsageError
from weighbridge.environment import require
from weighbridge.run import refuse_ending_keys
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned, load_hardware, load_layout, shipped_hardware


def test_doctor_names_perf_as_optional_and_does_not_count_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment.shutil, "which", lambda _: None)
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(command, ["--hardware", "loopback"], standalone_mode=False)
    assert done.return_value == 0
    assert "perf (optional)" in done.output
    assert "apt install linux-perf" in done.output
    assert "this machine can run loopback" in done.output


HOSTS = Hardware.model_validate({"name": "pretended", "kind": "fake", "hosts": {"client-1": {}}})


@pytest.mark.parametrize("which", ["home", "state"])
def test_a_folder_that_cannot_be_written_is_refused_with_its_variable(
    tmp_path: Path, which: str
) -> None:
    (tmp_path / "file").touch()
    folders = {
        "home": tmp_path / "home",
        "state": tmp_path / "state",
        which: tmp_path / "file" / "below",
    }
    with pytest.raises(UsageError) as refused:
        require(HOSTS, StateFolders(**folders))
    assert (
        f"cannot write to {tmp_path}/file/below, the folder for hosts and images: Not a directory"
        in str(refused.value)
    )
    assert f"Set WEIGHBRIDGE_{which.upper()}" in str(refused.value)
    assert refused.value.exit_code == EXIT_USAGE


def test_writable_folders_are_made_and_left_empty(tmp_path: Path) -> None:
    require(HOSTS, StateFolders(home=tmp_path / "a" / "home", state=tmp_path / "state"))
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "a",
        "a/home",
        "state",
    ]


def test_how_long_a_run_waits_for_a_quiet_machine_is_a_time_or_refused_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEIGHBRIDGE_PATIENCE", raising=False)
    assert environment.patience_s() == 60
    for given, seconds in (("0s", 0), ("10m", 600)):
        monkeypatch.setenv("WEIGHBRIDGE_PATIENCE", given)
        assert environment.patience_s() == seconds
    monkeypatch.setenv("WEIGHBRIDGE_PATIENCE", "soon")
    with pytest.raises(UsageError, match=r"\$WEIGHBRIDGE_PATIENCE is 'soon'"):
        require(HOSTS, StateFolders(home=tmp_path / "home", state=tmp_path / "state"))


def planned(folder: Path) -> Planned:
    (folder / "mine.yaml").write_text(existing("mine", s3=s3_at("http://127.0.0.1:9")))
    hardware = load_hardware(shipped_hardware()["this-machine"])
    return load_layout(folder / "mine.yaml", hardware)


def test_a_run_that_outlives_its_keys_is_refused_with_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = planned(tmp_path)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.setenv(f"AWS_{name}", "A")
    monkeypatch.delenv("AWS_CREDENTIAL_EXPIRATION", raising=False)
    refuse_ending_keys([layout], 1e6)  # they do not say when they end
    end = datetime.now(UTC) + timedelta(seconds=1800.4)
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", end.isoformat())
    refuse_ending_keys([layout], 1700)
    with pytest.raises(UsageError) as error:
        refuse_ending_keys([layout], 7200)
    assert error.value.message.startswith("mine: its keys expire in 30:00")
    assert "the run needs an estimated 2:00:00" in error.value.message
    assert "credential_process" in (error.value.advice or "")
