"""Whether the latest run is worse than those before it, for CI."""

from __future__ import annotations

import pytest

from series_rows import made_run, scattered
from weighbridge.common.errors import EXIT_DIFFERENCE, EXIT_FINE, EXIT_INVALID
from weighbridge.results.analysis.across_runs.runs_summary import RunsVerdict
from weighbridge.results.analysis.history.history import history_of, latest_verdict
from weighbridge.results.doubt import Doubt

BUSY = Doubt(what="machine busy", grade="mild", words="other programs used 12 %")


def verdict(*levels: tuple[int, float], **more: object) -> RunsVerdict:
    """On runs at these levels: so many, at this share of the first throughput."""
    shares = [share for count, share in levels for _ in range(count)]
    return latest_verdict(
        history_of(
            [
                made_run(day, {"rgw-beast": rate * share}, **more)  # type: ignore[arg-type]
                for day, (rate, share) in enumerate(
                    zip(scattered(len(shares), 5), shares, strict=True)
                )
            ]
        )
    )


def test_quiet_runs_an_improvement_and_one_slow_run_pass() -> None:
    assert verdict((20, 1.0)) == RunsVerdict(exit_code=EXIT_FINE)
    assert verdict((20, 1.0), (10, 1.4)).exit_code == EXIT_FINE
    assert verdict((20, 1.0), (1, 0.5)).exit_code == EXIT_FINE


@pytest.mark.parametrize("since", [2, 3, 10])
def test_a_lasting_worsening_fails_until_it_is_over(since: int) -> None:
    found = verdict((20, 1.0), (since, 0.7))
    assert found.exit_code == EXIT_DIFFERENCE
    assert found.answer == f"day-{19 + since:03} is worse than the runs before it: 2 of 2 figures."
    assert [one.partition(" of ")[0] for one in found.details] == ["throughput", "p90"]
    assert verdict((20, 1.0), (since, 0.7), (10, 1.0)).exit_code == EXIT_FINE


def test_what_cannot_be_judged_has_not_passed() -> None:
    few = verdict((6, 1.0))
    assert few.exit_code == EXIT_INVALID
    assert few.answer.endswith("cannot be judged: 2 of 2 figures.")
    assert few.details[0].endswith("6 comparable runs of the 7 that are needed")
    busy = verdict((20, 1.0), (10, 0.7), doubts=(BUSY,))
    assert busy.exit_code == EXIT_INVALID
    assert "machine busy" in busy.details[0]
    spoilt = verdict((20, 1.0), valid=False)
    assert spoilt.exit_code == EXIT_INVALID
    assert "not valid" in spoilt.details[0]


def test_a_run_that_begins_a_new_series_is_not_judged_by_the_old_one() -> None:
    runs = [made_run(day, {"rgw-beast": rate}) for day, rate in enumerate(scattered(20, 5))]
    runs += [made_run(20, {"rgw-beast": 500.0}, release="ceph-18")]
    found = latest_verdict(history_of(runs))
    assert found.exit_code == EXIT_INVALID
    assert "1 comparable run of the 7 that are needed" in found.details[0]
