"""Changing settings of the front before radosgw, on stub hosts."""

import re
from pathlib import Path

import pytest

from tests.gateways.rgw.running_stage import RunningStage
from weighbridge.common.errors import ServiceFailed, UsageError

HAPROXY_CFG = "/etc/haproxy/haproxy.cfg"


def test_only_the_front_is_restarted_and_awaited_when_only_its_file_changed(
    tmp_path: Path,
) -> None:
    stage = RunningStage(tmp_path, front="haproxy")
    stage.change("restart", front="haproxy", haproxy={"balance": "leastconn"})
    assert stage.starts() == ["stop haproxy", "start haproxy"]
    assert "balance leastconn" in str(stage.gateway.files[HAPROXY_CFG])
    order = [
        place
        for place, (_, what) in enumerate(stage.events)
        if re.search(r"start haproxy|haproxy_counters.* up |verify", what)
    ]
    assert [
        "start haproxy" in stage.events[order[0]][1],
        "verify" in stage.events[order[-1]][1],
        len(order),
    ] == [True, True, 3]


def test_a_restarted_front_stops_before_radosgw_and_starts_after_it(tmp_path: Path) -> None:
    stage = RunningStage(tmp_path, front="haproxy")
    both = {"haproxy": {"balance": "leastconn"}, "radosgw": {"threads": 32}}
    stage.change("restart", front="haproxy", **both)
    assert stage.starts()[:2] == ["stop haproxy", "stop radosgw"]
    starts = [one for one in stage.starts() if one.startswith("start")]
    assert starts == ["start radosgw", "start haproxy"]
    # One that is not restarted is awaited.
    stage.change("restart", front="haproxy", haproxy=both["haproxy"], radosgw={"threads": 64})
    assert stage.starts() == ["stop radosgw", "start radosgw"]
    assert any(" up " in what and "haproxy_counters" in what for _, what in stage.events)


@pytest.mark.parametrize(
    ("new_processes", "starts"), [(20, []), (7, ["stop apache", "start apache"])]
)
def test_apache_is_restarted_if_a_graceful_restart_leaves_fewer_processes(
    tmp_path: Path, new_processes: int, starts: list[str]
) -> None:
    stage = RunningStage(tmp_path, front="apache")
    stage.gateway.log("apache.error.log").write_text("")
    stage.new_processes = new_processes
    (done,) = stage.change("reload", front="apache", apache={"mpm": {"max_request_workers": 2560}})
    assert stage.starts() == starts
    assert ("less than it starts with" in done) == bool(starts)
    assert "MaxRequestWorkers 2560" in stage.running.facts["apache mpm"]


def test_a_graceful_restart_without_a_new_generation_is_an_error(tmp_path: Path) -> None:
    stage = RunningStage(tmp_path, front="apache")
    stage.gateway.log("apache.error.log").write_text("")
    stage.new_processes, stage.generations = 20, [4]
    with pytest.raises(ServiceFailed, match="is still at generation 4"):
        stage.change("reload", front="apache", apache={"keep_alive": False})
    stage.change("nothing", front="apache")
    assert stage.starts() == ["stop apache", "start apache"]


def test_a_setting_that_apache_reads_only_at_start_is_refused_as_a_reload(tmp_path: Path) -> None:
    stage = RunningStage(tmp_path, front="apache")
    with pytest.raises(
        UsageError, match=r"apache\.mpm\.server_limit: this needs at least `restart`"
    ):
        stage.change("reload", front="apache", apache={"mpm": {"server_limit": 64}})
    stage.change("restart", front="apache", apache={"mpm": {"server_limit": 64}})
    assert stage.starts() == ["stop apache", "start apache"]
