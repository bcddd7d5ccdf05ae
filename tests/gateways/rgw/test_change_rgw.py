"""Changing settings of radosgw on stub hosts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.rgw.running_stage import CONF, RunningStage, rgw
from tests.gateways.stage import FAILED, NAMES
from weighbridge.common.errors import ServiceFailed, UsageError, VerificationFailed
from weighbridge.common.structure import Scope
from weighbridge.gateways.null.null import Null, NullSettings
from weighbridge.gateways.null.null import NullPlacement as NullPlace
from weighbridge.gateways.rgw.rgw import Rgw


@pytest.fixture
def stage(tmp_path: Path) -> RunningStage:
    return RunningStage(tmp_path)


def test_a_setting_of_radosgw_restarts_only_radosgw(stage: RunningStage) -> None:
    keyring, before = stage.gateway.files["/etc/ceph/keyring"], str(stage.gateway.files[CONF])
    done = stage.change("restart", radosgw={"threads": 32})
    assert done == ("restarted radosgw on gateway-1",)
    assert stage.starts() == ["stop radosgw", "start radosgw"]
    assert stage.gateway.files["/etc/ceph/keyring"] == keyring
    assert str(stage.gateway.files[CONF]) == before.replace(
        "rgw_thread_pool_size = 512", "rgw_thread_pool_size = 32"
    )
    assert stage.running.facts["rgw: rgw_thread_pool_size"] == "32"
    assert any("rgw_thread_pool_size = 32\n" in one.text for one in stage.running.rendered)
    again = stage.change("restart", radosgw={"threads": 32})
    assert again == ("nothing: it already runs with these settings",)
    assert stage.starts() == []


def test_an_option_that_radosgw_observes_is_applied_live_and_written_to_its_file(
    stage: RunningStage,
) -> None:
    stage.change("nothing", radosgw={"max_concurrent_requests": 77})
    assert stage.starts() == []
    assert stage.radosgw.given == {"rgw_max_concurrent_requests": "77"}
    assert all(
        "rgw_max_concurrent_requests = 77\n" in str(stage.hosts[name].files[CONF])
        for name in NAMES[1:]
    )
    assert stage.running.facts["rgw: rgw_max_concurrent_requests"] == "77"
    # So is one that it reads for each request.
    stage.change("nothing", radosgw={"max_concurrent_requests": 77, "get_window": 2**25})
    assert stage.radosgw.given["rgw_get_obj_window_size"] == "33554432"


def test_an_option_that_may_need_a_restart_is_refused_and_restored(stage: RunningStage) -> None:
    with pytest.raises(
        UsageError,
        match=r"(?s)change of rgw_thread_pool_size may require a restart.*scope `restart`",
    ):
        stage.change("nothing", radosgw={"threads": 32, "max_concurrent_requests": 77})
    assert stage.radosgw.given == {
        "rgw_thread_pool_size": "512",
        "rgw_max_concurrent_requests": "1024",
    }
    assert "rgw_thread_pool_size = 512\n" in str(stage.gateway.files[CONF])
    assert stage.change("nothing") == ("nothing: it already runs with these settings",)


def test_an_option_that_is_fixed_at_runtime_is_refused_before_anything_is_applied(
    stage: RunningStage,
) -> None:
    with pytest.raises(UsageError, match="cannot change rgw_frontends while it is running"):
        stage.change("nothing", radosgw={"tcp_nodelay": False, "max_concurrent_requests": 77})
    assert stage.radosgw.given == {}


def test_an_option_that_is_no_longer_set_returns_to_the_daemons_own_default(
    stage: RunningStage,
) -> None:
    wanted = {"client": {"objecter_timeout": "5"}}
    stage.change("restart", options=wanted)
    assert stage.radosgw.file["objecter_timeout"] == "5"
    stage.change("nothing")
    assert stage.radosgw.answer({"prefix": "config get", "var": "objecter_timeout"}) == json.dumps(
        {"objecter_timeout": "10"}
    )
    assert "objecter_timeout" not in str(stage.gateway.files[CONF])


def test_a_value_that_the_release_cannot_parse_is_refused_in_its_words(
    stage: RunningStage,
) -> None:
    with pytest.raises(UsageError, match=r"^parse error setting 'objecter_timeout' to 'none'$"):
        stage.change("nothing", options={"client": {"objecter_timeout": "none"}})
    assert stage.radosgw.given == {}


def test_an_option_of_the_start_returns_to_its_default_without_a_restart(tmp_path: Path) -> None:
    stage = RunningStage(tmp_path, options={"client": {"objecter_timeout": "5"}})
    stage.change("nothing")
    assert stage.radosgw.given == {"objecter_timeout": "10"}
    assert stage.starts() == []
    # A default that the daemon does not say needs a restart.
    stage.change("restart", options={"client": {"rgw_x": "5"}})
    with pytest.raises(UsageError, match=r"rgw_x, and does not say the default.*`restart`"):
        stage.change("nothing")
    assert stage.radosgw.given == {}


def test_a_daemon_that_ignores_an_option_is_an_error_and_restarted_next_time(
    stage: RunningStage,
) -> None:
    stage.radosgw.deaf = True
    with pytest.raises(
        ServiceFailed, match="runs with rgw_max_concurrent_requests '1024', not '77'"
    ):
        stage.change("nothing", radosgw={"max_concurrent_requests": 77})
    stage.change("nothing")
    assert stage.starts() == ["stop radosgw", "start radosgw"]


def test_a_setting_that_kills_radosgw_is_reported_with_its_log_and_can_be_reverted_in_any_scope(
    stage: RunningStage,
) -> None:
    stage.gateway.log("radosgw.out").write_text("ERROR: failed initializing frontend\n")
    stage.gateway.fatal = "rgw_thread_pool_size = 3\n"
    with pytest.raises(ServiceFailed, match=r"(?s)radosgw: died.*failed initializing frontend"):
        stage.change("restart", radosgw={"threads": 3})
    with pytest.raises(ServiceFailed, match="died"):
        stage.running.check()
    assert stage.running.facts["rgw: rgw_thread_pool_size"] == "512"
    stage.change("nothing")
    assert stage.starts() == ["stop radosgw", "start radosgw"]
    stage.running.check()
    assert stage.radosgw.file["rgw_thread_pool_size"] == "512"


def test_a_gateway_that_fails_verification_is_restarted_next_time(
    stage: RunningStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, stage.verified = stage.verified, FAILED
    monkeypatch.setattr("weighbridge.gateways.daemon._DIES_WITHIN_S", 0.0)
    with pytest.raises(VerificationFailed):
        stage.change("restart", radosgw={"threads": 32})
    stage.verified = good
    stage.change("nothing")
    assert stage.starts() == ["stop radosgw", "start radosgw"]


def test_a_dead_store_is_reported_before_anything_changes(stage: RunningStage) -> None:
    stage.hosts["store-2"].dead.add("osd.2")
    with pytest.raises(ServiceFailed, match=r"store-2: osd\.2: died"):
        stage.change("restart", radosgw={"threads": 32})
    assert stage.starts() == []


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"pools": {"data_pg_num": 128}}, "pools.data_pg_num"),
        ({"osd": {"scrub": True}}, "osd.scrub"),
        ({"radosgw": {"port": 8001}}, "radosgw.port"),
        ({"options": {"osd": {"osd_op_num_shards": 2}}}, "options.osd.osd_op_num_shards"),
        ({"options": {"global": {"ms_type": "async"}}}, "options.global.ms_type"),
        ({"options": {"client": {"keyring": "/elsewhere"}}}, "options.client.keyring"),
    ],
)
def test_settings_of_the_cluster_are_refused_by_name(
    stage: RunningStage, settings: dict[str, Any], what: str
) -> None:
    with pytest.raises(
        UsageError, match=rf"^{re.escape(what)} cannot be changed while it is running"
    ):
        stage.change("buckets", **settings)
    assert stage.events == []


def test_other_kinds_releases_and_placements_are_refused(stage: RunningStage) -> None:
    with pytest.raises(UsageError, match="no other kind, release or placement"):
        stage.running.change(rgw(release="ceph-18"), "restart", print)
    null = Null("weighbridge", NullPlace(target="gateway-1"), NullSettings())
    with pytest.raises(UsageError, match="no other kind, release or placement"):
        stage.running.change(null, "restart", print)
    with pytest.raises(UsageError, match="the scope `cluster` means a new deployment"):
        stage.change("cluster", radosgw={"threads": 32})


def test_a_scope_smaller_than_a_setting_needs_is_refused(stage: RunningStage) -> None:
    with pytest.raises(UsageError, match="index_shards: this needs at least `buckets`, not `resta"):
        stage.change("restart", radosgw={"index_shards": 3})
    with pytest.raises(UsageError, match="threads: this needs at least `restart`, not `reload`"):
        stage.change("reload", radosgw={"threads": 3})
    stage.change("buckets", radosgw={"index_shards": 3})
    assert stage.starts() == ["stop radosgw", "start radosgw"]


@pytest.mark.parametrize(
    ("key", "scope"),
    [
        ("radosgw.threads", "restart"),
        ("radosgw.frontend_options.request_timeout_ms", "restart"),
        ("radosgw.gc.min_wait", "restart"),
        ("radosgw.stripe_size", "buckets"),
        ("radosgw.rgw_obj_stripe_size", "buckets"),
        ("radosgw.rgw_gc_obj_min_wait", "restart"),
        ("radosgw.rgw_gc_obj_min_weight", "cluster"),
        ("radosgw.daemons", "cluster"),
        ("options.client.objecter_inflight_ops", "restart"),
        ("options.client.rgw_override_bucket_index_max_shards", "buckets"),
        ("options.osd.osd_op_num_shards", "cluster"),
        ("options.global.ms_async_op_threads", "cluster"),
        ("haproxy.balance", "restart"),
        ("haproxy.port", "cluster"),
        ("apache.mpm.max_request_workers", "reload"),
        ("apache.mpm.server_limit", "restart"),
        ("apache.mpm.start_servers", "restart"),
        ("apache.options.server.ListenBacklog", "restart"),
        ("apache.options.server.AsyncRequestWorkerFactor", "reload"),
        ("log", "cluster"),
        ("pools.replicas", "cluster"),
        ("unheard.of", "cluster"),
    ],
)
def test_each_setting_has_its_least_scope(key: str, scope: Scope) -> None:
    assert Rgw.scope(key) == scope


HAPROXY_CFG = "/etc/haproxy/haproxy.cfg"


def test_only_the_front_is_restarted_and_awaited_when_only_its_file_changed(tmp_path: Path) -> None:
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
    done = stage.change("reload", front="apache", apache={"mpm": {"max_request_workers": 2560}})
    assert stage.starts() == starts
    assert ("less than it starts with" in done[0]) == bool(starts)
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


def test_a_daemon_that_only_a_failed_change_had_is_ended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    http: dict[str, Any] = {"front": "apache", "apache": {"path": "http"}}
    stage = RunningStage(tmp_path, **http)
    stage.gateway.log("apache.error.log").write_text("")
    good, stage.verified = stage.verified, FAILED
    monkeypatch.setattr("weighbridge.gateways.daemon._DIES_WITHIN_S", 0.0)
    with pytest.raises(VerificationFailed):
        stage.change("restart", front="apache", apache={"path": "fastcgi"})
    started = [what for what in stage.starts() if what.startswith("start ")]
    assert started == ["start fastcgi-responder", "start apache"]
    stage.verified = good
    stage.change("nothing", **http)
    assert stage.starts() == ["stop apache", "stop fastcgi-responder", "start apache"]
    assert [one.service.name for one in stage.running.daemons()][-2:] == ["radosgw", "apache"]
