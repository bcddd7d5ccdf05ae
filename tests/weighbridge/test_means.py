"""What a machine may lack and still do a run."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from weighbridge import means
from weighbridge.verbs.doctor import command


def test_doctor_names_perf_as_optional_and_does_not_count_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(means.shutil, "which", lambda _: None)
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(command, ["--hardware", "loopback"], standalone_mode=False)
    assert done.return_value == 0
    assert "perf (optional)" in done.output
    assert "apt install linux-perf" in done.output
    assert "this machine can raise loopback" in done.output
