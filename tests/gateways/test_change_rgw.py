"""Changing an RGW on hosts that start nothing: what is given, ended and started, in which order,
and what is found wrong.
"""

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from stub_host import PORTS, StubHost
from test_bring_up import MON, NAMES, STORES

from weighbridge.common.errors import ServiceFailed, UsageError, VerificationFailed
from weighbridge.common.host import Host, Service
from weighbridge.common.scope import Scope, differing
from weighbridge.gateways.gateway import Standing
from weighbridge.gateways.null.null import Null, NullSettings
from weighbridge.gateways.null.null import NullPlacement as NullPlace
from weighbridge.gateways.rgw.options import effective, read_as
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwPlacement, RgwSettings

CONF = "/etc/ceph/ceph.conf"
HAPROXY = "/etc/haproxy/haproxy.cfg"
INFO = {"Version": "2.6.12", "Nbthread": "1", "Maxconn": "4096"}
ROWS = [
    {"svname": "a", "status": "UP", "algo": ""},
    {"svname": "BACKEND", "status": "UP", "algo": "roundrobin"},
]
STATUS = {
    "ServerVersion": "Apache/2.4.71 (Debian)",
    "ServerMPM": "worker",
    "BusyWorkers": "1",
    "IdleWorkers": "9",
}
DEFAULTS = {
    "objecter_inflight_ops": "24576",
    "objecter_timeout": "10",
    "rgw_max_concurrent_requests": "1024",
}
FIXED = {"rgw_frontends"}
OBSERVED = {"rgw_max_concurrent_requests", "objecter_timeout"}
"""What these radosgw are told of while they run."""


class Radosgw:
    """A radosgw as its admin socket shows it: what its file said when it started, and what it was
    given since.
    """

    def __init__(self, name: str, conf: str) -> None:
        self.file = effective(conf, name)
        self.given: dict[str, str] = {}
        self.deaf = False

    def answer(self, command: Mapping[str, Any]) -> str:
        what, name = command["prefix"], command.get("var", "")
        if what == "config set":
            if name in FIXED:
                return "ERROR: (1) Operation not permitted"
            if not self.deaf:
                self.given[name] = command["val"][0]
            return json.dumps(
                {
                    "success": ""
                    if name in OBSERVED
                    else f"{name} = '' (not observed, change may require restart) "
                }
            )
        if what == "config help":
            return json.dumps({"option": {"can_update_at_runtime": name not in FIXED, "flags": []}})
        if what == "config diff":
            levels: dict[str, dict[str, str]] = {
                name: {"default": "", "file": value} for name, value in self.file.items()
            }
            return json.dumps({"diff": levels})
        return json.dumps({name: {**DEFAULTS, **self.file, **self.given}.get(name, "1")})


class Gateway(StubHost):
    """A host whose radosgw read their file when they start."""

    _events: list[tuple[str, str]]
    daemons: dict[str, Radosgw]
    fatal = ""
    """What kills a radosgw that reads it in its file."""

    def start(self, services: Sequence[Service]) -> None:
        super().start(services)
        self.dead -= {service.name for service in services}
        for service in services:
            if service.argv[0] == "radosgw":
                conf = str(self.files[CONF])
                self.daemons[service.argv[-1]] = Radosgw(service.argv[-1], conf)
                if self.fatal and self.fatal in conf:
                    self.dead.add(service.name)

    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        self._events.append((self.name, f"stop {service}"))
        super().stop(service, timeout_s=timeout_s)


class Stage:
    """Stub hosts, what was asked of them, and a gateway that stands on them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.events: list[tuple[str, str]] = []
        self.came = 0
        self.generations = list(range(9))
        self.verified: dict[str, Any] = {
            "checks": [{"api": "s3", "operation": "PUT", "status": 200, "took_ms": 1.0}]
        }
        programs = {
            "weighbridge.gateways.ports": PORTS,
            "ask_mon": MON.format(log=str(folder / "mon"), refused={}),
        }
        self.stubs = {
            name: Gateway(
                name, f"10.0.0.{index}", folder, self.events, self.answers(name), programs
            )
            for index, name in enumerate(NAMES)
        }
        for stub in self.stubs.values():
            stub.daemons = {}
        self.hosts: dict[str, Host] = dict(self.stubs)
        self.standing: Standing = rgw(**settings).bring_up(
            self.hosts, self.hosts["client-1"], print
        )
        self.events.clear()

    @property
    def gateway(self) -> Gateway:
        return self.stubs["gateway-1"]

    @property
    def radosgw(self) -> Radosgw:
        return next(iter(self.gateway.daemons.values()))

    def answers(self, name: str) -> Any:
        def answer(argv: Sequence[str], stdin: str) -> str:
            line = " ".join(argv)
            if "weighbridge.gateways.verify" in line:
                return json.dumps(self.verified)
            if "haproxy_counters" in line:
                return json.dumps({"info": INFO, "rows": ROWS})
            if "apache_counters" in line:
                return json.dumps({**STATUS, "ParentServerMPMGeneration": self.generation()})
            if "reload_apache" in line:
                return json.dumps({"ended": 20, "came": self.came})
            if "ask_daemon" in line:
                return json.dumps(
                    [self.ask(name, path, command) for path, command in json.loads(stdin)]
                )
            if "ceph-conf" in line:
                # As the release's parser has it: what was given, which in these tests is written as
                # it would be.
                words = shlex.split(argv[-1])
                said = [
                    word.partition("=")[2]
                    for word in words
                    if word.startswith("--") and "=" in word
                ]
                return "".join(f"{value}\n\x1e0\x1f" for value in said)
            return "[]" if "gc list" in line else "0"

        return answer

    def generation(self) -> int:
        return self.generations.pop(0) if len(self.generations) > 1 else self.generations[0]

    def ask(self, host: str, path: str, command: Mapping[str, Any]) -> str:
        daemon = self.stubs[host].daemons.get(Path(path).stem)
        return (
            daemon.answer(command)
            if daemon is not None
            else json.dumps({command.get("var", ""): "1"})
        )

    def change(self, scope: Scope, **settings: Any) -> tuple[str, ...]:
        self.events.clear()
        return self.standing.change(rgw(**settings), scope, print)

    def starts(self) -> list[str]:
        """What was ended and started, in order."""
        return [f"{what}" for _, what in self.events if re.match("(start|stop) ", what)]


def rgw(front: str | None = None, release: str = "ceph-16", **settings: Any) -> Rgw:
    place = RgwPlacement.model_validate(
        {
            "mon": "store-1",
            "osd": STORES,
            "radosgw": ("gateway-1",),
            **({front: "gateway-1"} if front else {}),
        }
    )
    return Rgw(release, place, RgwSettings.model_validate(settings))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_setting_of_radosgw_restarts_it_alone_with_its_keys_and_cluster(stage: Stage) -> None:
    keyring, before = stage.gateway.files["/etc/ceph/keyring"], str(stage.gateway.files[CONF])
    done = stage.change("restart", radosgw={"threads": 32})
    assert done == ("radosgw.gateway-1 stopped and started",)
    assert stage.starts() == ["stop radosgw", "start radosgw"]
    assert stage.gateway.files["/etc/ceph/keyring"] == keyring
    assert str(stage.gateway.files[CONF]) == before.replace(
        "rgw_thread_pool_size = 512", "rgw_thread_pool_size = 32"
    )
    assert stage.standing.facts["rgw: rgw_thread_pool_size"] == "32"
    assert any("rgw_thread_pool_size = 32\n" in one.text for one in stage.standing.rendered)


def test_what_runs_as_wanted_already_is_left_alone(stage: Stage) -> None:
    assert stage.change("restart") == ("nothing: it runs with these settings already",)
    assert stage.starts() == []


def test_an_option_that_radosgw_takes_is_given_to_it_and_kept_for_its_next_start(
    stage: Stage,
) -> None:
    stage.change("nothing", radosgw={"max_concurrent_requests": 77})
    assert stage.starts() == []
    assert stage.radosgw.given == {"rgw_max_concurrent_requests": "77"}
    assert all(
        "rgw_max_concurrent_requests = 77\n" in str(stage.stubs[name].files[CONF])
        for name in NAMES[1:]
    )
    assert stage.standing.facts["rgw: rgw_max_concurrent_requests"] == "77"


def test_what_radosgw_looks_up_for_each_request_is_given_though_nothing_in_it_is_told(
    stage: Stage,
) -> None:
    stage.change("nothing", radosgw={"get_window": 2**25})
    assert stage.radosgw.given == {"rgw_get_obj_window_size": "33554432"}


def test_an_option_that_may_want_a_restart_is_refused_and_taken_back(stage: Stage) -> None:
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
    assert stage.change("nothing") == ("nothing: it runs with these settings already",)


def test_an_option_that_the_daemon_says_is_fixed_is_refused_before_anything_is_given(
    stage: Stage,
) -> None:
    with pytest.raises(UsageError, match="says that it cannot take rgw_frontends while it runs"):
        stage.change("nothing", radosgw={"tcp_nodelay": False, "max_concurrent_requests": 77})
    assert stage.radosgw.given == {}


def test_an_option_that_is_no_longer_said_goes_back_to_what_the_daemon_had_not_to_what_ceph_documents(
    stage: Stage,
) -> None:
    wanted = {"client": {"objecter_timeout": "5"}}
    stage.change("restart", options=wanted)
    assert stage.radosgw.file["objecter_timeout"] == "5"
    stage.change("nothing")
    assert stage.radosgw.answer({"prefix": "config get", "var": "objecter_timeout"}) == json.dumps(
        {"objecter_timeout": "10"}
    )
    assert "objecter_timeout" not in str(stage.gateway.files[CONF])


def test_an_option_whose_default_is_not_known_wants_a_restart(tmp_path: Path) -> None:
    stage = Stage(tmp_path, options={"client": {"objecter_timeout": "5"}})
    with pytest.raises(
        UsageError,
        match="started with objecter_timeout, and what it would run with otherwise is not known: "
        "`restart`",
    ):
        stage.change("nothing")
    stage.change("restart")
    assert "objecter_timeout" not in stage.radosgw.file


def test_a_daemon_that_does_not_run_with_what_it_was_given_is_an_error_and_is_started_anew_next(
    stage: Stage,
) -> None:
    stage.radosgw.deaf = True
    with pytest.raises(
        ServiceFailed, match="runs with rgw_max_concurrent_requests '1024', not '77'"
    ):
        stage.change("nothing", radosgw={"max_concurrent_requests": 77})
    stage.change("nothing")
    assert stage.starts() == ["stop radosgw", "start radosgw"]


def test_a_setting_that_kills_radosgw_is_told_with_its_log_and_taken_back_in_any_scope(
    stage: Stage,
) -> None:
    stage.gateway.log("radosgw.out").write_text("ERROR: failed initializing frontend\n")
    stage.gateway.fatal = "rgw_thread_pool_size = 3\n"
    with pytest.raises(ServiceFailed, match=r"(?s)radosgw: died.*failed initializing frontend"):
        stage.change("restart", radosgw={"threads": 3})
    with pytest.raises(ServiceFailed, match="died"):
        stage.standing.check()
    assert stage.standing.facts["rgw: rgw_thread_pool_size"] == "512"
    stage.change("nothing")
    assert stage.starts() == ["stop radosgw", "start radosgw"]
    stage.standing.check()
    assert stage.radosgw.file["rgw_thread_pool_size"] == "512"


def test_a_gateway_that_answers_wrongly_afterwards_is_started_anew_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = stage.verified
    stage.verified = {
        "failed": {
            "api": "s3",
            "operation": "GET",
            "url": "u",
            "what": "w",
            "status": 500,
            "body": "",
        }
    }
    monkeypatch.setattr("weighbridge.gateways.daemon._DIES_WITHIN_S", 0.0)
    with pytest.raises(VerificationFailed):
        stage.change("restart", radosgw={"threads": 32})
    stage.verified = good
    stage.change("nothing")
    assert stage.starts() == ["stop radosgw", "start radosgw"]


def test_a_store_that_died_is_told_before_anything_is_changed(stage: Stage) -> None:
    stage.stubs["store-2"].dead.add("osd.2")
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
def test_what_is_the_clusters_own_is_refused_with_its_name(
    stage: Stage, settings: dict[str, Any], what: str
) -> None:
    with pytest.raises(
        UsageError, match=rf"^{re.escape(what)} cannot change while the cluster stands"
    ):
        stage.change("buckets", **settings)
    assert stage.events == []


def test_other_kinds_releases_and_places_are_refused(stage: Stage) -> None:
    with pytest.raises(UsageError, match="keeps its kind, release and placement"):
        stage.standing.change(rgw(release="ceph-18"), "restart", print)
    null = Null("weighbridge", NullPlace(target="gateway-1"), NullSettings())
    with pytest.raises(UsageError, match="cannot become a null one"):
        stage.standing.change(null, "restart", print)
    with pytest.raises(UsageError, match="a new one is stood up"):
        stage.change("cluster", radosgw={"threads": 32})


def test_less_than_a_setting_needs_is_refused(stage: Stage) -> None:
    with pytest.raises(
        UsageError,
        match=r"radosgw\.index_shards: `buckets` is the least that must be done anew, not `restart`",
    ):
        stage.change("restart", radosgw={"index_shards": 3})
    with pytest.raises(
        UsageError,
        match=r"radosgw\.threads: `restart` is the least that must be done anew, not `reload`",
    ):
        stage.change("reload", radosgw={"threads": 3})
    stage.change("buckets", radosgw={"index_shards": 3})
    assert stage.starts() == ["stop radosgw", "start radosgw"]


def test_a_front_is_restarted_alone_when_its_file_alone_changed_and_waited_for(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, front="haproxy")
    stage.change("restart", front="haproxy", haproxy={"balance": "leastconn"})
    assert stage.starts() == ["stop haproxy", "start haproxy"]
    assert "balance leastconn" in str(stage.gateway.files[HAPROXY])
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


def test_a_front_that_starts_anew_too_is_ended_before_radosgw_and_started_after_it(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, front="haproxy")
    stage.change(
        "restart", front="haproxy", haproxy={"balance": "leastconn"}, radosgw={"threads": 32}
    )
    assert [one for one in stage.starts() if one.startswith("start")] == [
        "start radosgw",
        "start haproxy",
    ]
    assert stage.starts()[:2] == ["stop haproxy", "stop radosgw"]


def test_a_front_that_stays_is_waited_for_after_its_radosgw_were_away(tmp_path: Path) -> None:
    stage = Stage(tmp_path, front="haproxy")
    stage.change("restart", front="haproxy", radosgw={"threads": 32, "daemons": 1})
    assert stage.starts() == ["stop radosgw", "start radosgw"]
    assert any(" up " in what and "haproxy_counters" in what for _, what in stage.events)


@pytest.mark.parametrize(("came", "starts"), [(20, []), (7, ["stop apache", "start apache"])])
def test_apache_is_restarted_gracefully_and_started_anew_when_it_comes_back_with_fewer_processes(
    tmp_path: Path, came: int, starts: list[str]
) -> None:
    stage = Stage(tmp_path, front="apache")
    stage.gateway.log("apache.error.log").write_text("")
    stage.came = came
    (done,) = stage.change("reload", front="apache", apache={"mpm": {"max_request_workers": 2560}})
    assert stage.starts() == starts
    assert ("less than it starts with" in done) == bool(starts)
    assert "MaxRequestWorkers 2560" in stage.standing.facts["apache mpm"]


def test_a_graceful_restart_that_apache_did_not_make_is_an_error(tmp_path: Path) -> None:
    stage = Stage(tmp_path, front="apache")
    stage.gateway.log("apache.error.log").write_text("")
    stage.came, stage.generations = 20, [4]
    with pytest.raises(ServiceFailed, match="is still at generation 4"):
        stage.change("reload", front="apache", apache={"keep_alive": False})
    stage.change("nothing", front="apache")
    assert stage.starts() == ["stop apache", "start apache"]


def test_what_apache_takes_only_when_it_starts_is_refused_as_a_reload(tmp_path: Path) -> None:
    stage = Stage(tmp_path, front="apache")
    with pytest.raises(UsageError, match=r"apache\.mpm\.server_limit: `restart` is the least"):
        stage.change("reload", front="apache", apache={"mpm": {"server_limit": 64}})
    stage.change("restart", front="apache", apache={"mpm": {"server_limit": 64}})
    assert stage.starts() == ["stop apache", "start apache"]


def test_a_daemons_own_section_holds_before_its_kinds_and_that_before_global() -> None:
    conf = (
        "[global]\na = 1\nb = 1\nc = 1\n\n[client]\nb = 2\nc = 2\n\n[client.rgw.x]\nc = "
        "3\n\n[osd]\na = 9\n"
    )
    assert effective(conf, "client.rgw.x") == {"a": "1", "b": "2", "c": "3"}


def test_a_value_that_the_release_cannot_read_is_refused_in_its_words(tmp_path: Path) -> None:
    said = "33554432\n\x1e0\x1fparse error setting 'rgw_x' to 'y'\n7\n\x1e0\x1f"
    host = StubHost("gateway-1", "10.0.0.1", tmp_path, [], lambda _, __: said, {})
    with pytest.raises(UsageError, match=r"^parse error setting 'rgw_x' to 'y'$"):
        read_as(host, "client.rgw.x", {"rgw_get_obj_window_size": "32M", "rgw_x": "y"})


@pytest.mark.parametrize(
    ("key", "scope"),
    [
        ("radosgw.threads", "restart"),
        ("radosgw.frontend_options.request_timeout_ms", "restart"),
        ("radosgw.gc.min_wait", "restart"),
        ("radosgw.stripe_size", "buckets"),
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
def test_each_setting_has_the_least_that_it_needs(key: str, scope: Scope) -> None:
    assert Rgw.scope(key) == scope


def test_settings_that_differ_are_told_by_their_keys_those_that_are_missing_too() -> None:
    one = RgwSettings.model_validate(
        {"options": {"client": {"rgw_x": 1}}, "radosgw": {"threads": 3}}
    )
    assert differing(one, RgwSettings()) == ("radosgw.threads", "options.client.rgw_x")
