"""Profiling never makes a step fail: what is missing is an event."""

from __future__ import annotations

from pathlib import Path

import pytest

from stub_run import Run
from weighbridge.conductor import profiling
from weighbridge.conductor.profiling import PerfSupport, Profiler, able
from weighbridge.results.record.profile import Chosen, read_profiles

ALLOWED = PerfSupport(event="cpu-clock", blocks=True, remarks=())


def test_hosts_whose_processes_cannot_be_seen_are_not_profiled_and_their_steps_are_valid(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, repeats=2)
    store = run.store()
    profiler = Profiler(Chosen(workload="small", workers=4), store, ALLOWED)
    run.into(store, profiler=profiler)
    assert all(step.valid for step in store.steps())
    profile_events = [event for event in store.events() if event.kind == "profile"]
    assert sorted(event.layout or "" for event in profile_events) == ["rgw-a", "swift-b"]
    assert all("not profiled" in event.text for event in profile_events)
    assert read_profiles(store.folder) == ()


def test_without_perf_the_reason_and_the_package_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiling.shutil, "which", lambda _: None)
    (why,) = able().remarks
    assert "there is no program perf (Debian: apt install linux-perf)" in why
    assert able().event is None
    assert not able().blocks


def test_the_message_of_a_perf_that_may_not_record_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "perf"
    refusing.write_text(
        "#!/bin/sh\necho 'Error: Access to performance monitoring is limited' >&2\nexit 255\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = able()
    assert found.event is None
    assert not found.blocks
    assert any("Access to performance monitoring is limited" in remark for remark in found.remarks)
    assert any(remark.startswith("no disk was traced") for remark in found.remarks)
