from __future__ import annotations

import json
from pathlib import Path

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.tuning.setting_lines import setting_lines, short_names
from weighbridge.results.export.export import produce
from weighbridge.results.figures import show_percent
from weighbridge.results.record.store import RunStore


def test_lines_are_sorted_by_gain_and_a_shorter_p90_is_better_and_shown_as_less(
    tuned_data: RunData,
) -> None:
    result = tuned_data.tuned
    assert result is not None
    lines = setting_lines(result)
    gains = [line.gain for line in lines]
    known = [gain for gain in gains if gain is not None]
    assert known == sorted(known, reverse=True)
    assert gains[len(known) :] == [None] * (len(gains) - len(known))
    assert len(known) < len(gains)
    p90 = lines[0].changes[1]
    assert p90.change.startswith("\N{MINUS SIGN}")
    assert (p90.value or 0) > 1
    assert p90.tone == "better"


def test_names_are_shortened_only_if_they_stay_distinct() -> None:
    proxy = "options.proxy.app:proxy-server"
    shortened = {
        "radosgw.threads 512 → 64": "radosgw.threads 512 → 64",
        "proxy.threads 512 → 64": "proxy.threads 512 → 64",
        "options.client.rgw_cache unset → off": "rgw_cache unset → off",
        "radosgw.a 1 → 2, radosgw.b 3 → 4": "a 1 → 2, b 3 → 4",
        f"{proxy}.gets unset → on (with {proxy}.wait unset → 0.05)": (
            "gets unset → on (with wait unset → 0.05)"
        ),
    }
    assert short_names(list(shortened)) == shortened


def test_notes_have_the_table_of_settings_with_remarks(tuned_run: RunStore) -> None:
    _, made = produce(tuned_run.folder, "markdown", ["ledger"])
    (file,) = made.files
    text = file.content.decode().replace("\\", "")
    assert "max_concurrent_requests 1024 → 64" in text
    assert "the baseline fell by" in text
    assert "Confirmed on fresh deployments" in text
    assert "ended with 22" in text


def test_json_has_the_settings_and_every_trial_with_null_for_unknowns(tuned_run: RunStore) -> None:
    _, made = produce(tuned_run.folder, "json", ["ledger", "trials"])
    tables = json.loads(made.files[0].content)["tables"]
    failed = [line for line in tables["ledger"] if line["verdict"] == "failed"]
    assert failed
    assert all(line["ratio"] is None and line["notes"] for line in failed)
    assert {line["why"] for line in tables["trials"] if line["value"] is None} >= {
        "radosgw on gateway-1 ended with 22: invalid argument"
    }
    assert all(line["baseline_beside"] is None for line in tables["trials"] if line["baseline"])


@pytest.mark.parametrize("form", ["csv", "json", "markdown"])
def test_the_settings_table_of_a_run_that_is_not_a_tuning_is_refused(
    run: RunStore, form: str
) -> None:
    with pytest.raises(UsageError, match="not a tuning"):
        produce(Path(run.folder), form, ["ledger"])


def test_almost_minus_100_percent_is_not_shown_as_minus_100() -> None:
    shown = {0.004: "−99.6 %", 0.002: "−99.8 %", 0.0003: "−99.970 %", 0.006: "−99 %"}
    assert {ratio: show_percent(ratio) for ratio in shown} == shown
