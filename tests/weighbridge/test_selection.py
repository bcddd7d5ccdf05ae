from pathlib import Path

import pytest

from stub_run import Run
from weighbridge import selection
from weighbridge.common.errors import UsageError


def test_what_the_programs_of_all_layouts_refuse_is_reported_at_once_and_nothing_stays(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    for name, gateway in run.gateways.items():
        gateway.unknown_option = f"{name}_threads"
    with pytest.raises(UsageError) as error:
        selection.check(run.planned, run.hardware, run.place, print)
    assert "rgw-a: no option 'rgw-a_threads'" in str(error.value)
    assert "swift-b: no option 'swift-b_threads'" in str(error.value)
    assert not list(run.place.deployments.iterdir())


def test_checking_starts_no_daemon(tmp_path: Path) -> None:
    run = Run(tmp_path)
    selection.check(run.planned, run.hardware, run.place, print)
    assert [gateway.did for gateway in run.gateways.values()] == [["preflight"], ["preflight"]]
