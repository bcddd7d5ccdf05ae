"""What RGW's daemons and programs are asked, before a cluster starts and while it runs, and fronts
before several radosgw.
"""

import json
import socketserver
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TextIO

import pytest

from http_stub import served
from tests.gateways.rgw.planned_rgw import STORES, Spot, conf, rgw
from tests.gateways.stage import Stage
from tests.gateways.stub_host import StubHost, run_program
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Backend, Behind, Front, front_of
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw import ask_daemon, facts, monitor, plan
from weighbridge.gateways.rgw import rgw as rgw_module
from weighbridge.gateways.rgw.monitor import OSD, RADOSGW, effective
from weighbridge.gateways.rgw.rgw import Rgw

PROGRAM = ask_daemon.__file__
GROUPS = {
    "rgw": {"req": 7, "qlen": 0, "put_initial_lat": {"avgcount": 2, "sum": 0.5, "avgtime": 0.25}},
    "rgw_op": {"get_obj_ops": 4},
}


class Admin(socketserver.StreamRequestHandler):
    """A stub of an admin socket."""

    def handle(self) -> None:
        asked = b""
        while not asked.endswith(b"\0"):
            asked += self.rfile.read(1)
        command = json.loads(asked[:-1])
        assert command["prefix"] == "perf dump"
        group = command["logger"]
        text = json.dumps({group: GROUPS[group]} if group in GROUPS else {}).encode()
        self.wfile.write(len(text).to_bytes(4, "big") + text)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "asok")
    with served(socketserver.ThreadingUnixStreamServer(path, Admin)):
        yield path


def test_a_latency_is_printed_as_sum_and_count_and_missing_counters_are_left_out(
    daemon: str,
) -> None:
    wanted = ask_daemon.parse(
        ["req=rgw.req", "lat=rgw.put_initial_lat", "none=rgw.nothing", "gone=other.req"]
    )
    assert ask_daemon.counters(daemon, wanted) == {"req": 7, "lat_sum_s": 0.5, "lat_count": 2.0}


def test_a_counter_is_found_where_the_release_has_it(daemon: str) -> None:
    wanted = ask_daemon.parse(
        ["get=rgw.get,rgw_op.get_obj_ops", "qlen=rgw.qlen,rgw_op.get_obj_ops"]
    )
    assert ask_daemon.counters(daemon, wanted) == {"get": 4, "qlen": 0}


def test_lines_come_at_once_and_every_second_until_stdin_closes(daemon: str) -> None:
    argv = [sys.executable, "-I", PROGRAM, daemon, *RADOSGW]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.wait(10) == 0
    latency = {"put_initial_lat_sum_s": 0.5, "put_initial_lat_count": 2.0}
    assert lines == [{"req": 7, "qlen": 0, "get": 4, **latency}] * 2


def test_a_second_without_an_answer_has_no_line_but_a_reason_on_stderr(tmp_path: Path) -> None:
    done = run_program(PROGRAM, str(tmp_path / "missing"), "req=rgw.req")
    assert done.stdout == ""
    assert "missing: [Errno 2]" in done.stderr


@pytest.mark.parametrize("counters", [RADOSGW, OSD])
def test_no_two_counters_have_the_same_name(counters: tuple[str, ...]) -> None:
    names = [one.partition("=")[0] for one in counters]
    assert names
    assert len(set(names)) == len(names)


def test_a_cluster_is_asked_from_another_mons_host_when_the_first_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Session:
        def __init__(self, host: Spot, _watch: object) -> None:
            self.host = host

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def status(self) -> dict[str, object]:
            if self.host.name in dead:
                raise CommandFailed(self.host.name, ["ask_mon"], 1, "it is gone")
            return {"osdmap": {"num_up_osds": 3}, "pgmap": {"num_pgs": 0}}

    class UpSpot(Spot):
        def is_up(self) -> bool:
            return self.name not in dead

    dead: set[str] = set()
    monkeypatch.setattr(facts, "Monitor", Session)
    hosts = [UpSpot(name, "") for name in STORES]
    with facts.asking(hosts, 3) as asked:  # type: ignore[arg-type]
        assert asked().whole
        dead |= {"store-1", "store-2"}
        assert asked().whole
        dead |= {"store-3"}
        with pytest.raises(CommandFailed, match="it is gone"):
            asked()


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("x" * 100, "a line of more than 64"),
        ("", "was silent for"),
        ("once upon a time\n", "no answers: once"),
        ('[[0, "quorum"]]\n', "no answers: "),
        ("[]\n", r"no answers: \[\]"),
    ],
)
def test_a_session_with_the_monitors_says_what_it_did_in_place_of_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, said: str
) -> None:
    def stub(order: TextIO, found: TextIO) -> int:
        order.readline()
        found.write(printed)
        found.flush()
        order.read()
        return 0

    monkeypatch.setattr(monitor, "_LONGEST_ANSWER_BYTES", 64)
    monkeypatch.setattr(monitor, "_ANSWER_WITHIN_S", 0.2)
    host = StubHost("store-1", "10.0.0.1", tmp_path, [], lambda _a, _b: "", {"ask_mon": stub})
    with monitor.Monitor(host, lambda: None) as mon, pytest.raises(CommandFailed, match=said):
        mon.ask({"prefix": "status"})


FILE = "/etc/front.conf"


class PlainFront(Front):
    """A front with two daemons that does nothing."""

    label = "Plain front"
    port = 80
    refuses = ""
    wants_fastcgi = False

    def __init__(self) -> None:
        """No settings."""

    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        return {
            FILE: "".join(f"{address} {one.name} {one.address}:{one.port}\n" for one in backends)
        }

    def check(self, host: Host) -> None:
        if self.refuses:
            raise UsageError(self.refuses)

    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        return (
            Daemon(host, Service("relay", ("true",))),
            Daemon(host, Service("front", ("true",)), self.port),
        )

    def facts(self, host: Host) -> dict[str, str]:
        return {"path": "through the front"}

    def probes(self, host: Host) -> tuple[Probe, ...]:
        return (Probe(host, "front", ("true",)),)

    def await_backends(self, host: Host) -> None:
        pass


class Fronted(Stage):
    """A layout with a front on stub hosts; `natives` is each `native` argument for the front."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, radosgw: str = "no FastCGI"
    ) -> None:
        super().__init__(folder)
        self.front = PlainFront()
        self.natives: list[bool] = []
        self.radosgw = radosgw

        def front(place: Any, settings: Any, behind: Behind) -> Front:
            real = front_of(place, settings, behind)
            self.front.wants_fastcgi = real is not None and real.wants_fastcgi
            self.natives.append(behind.fastcgi)
            return self.front

        for module in (rgw_module, plan):
            monkeypatch.setattr(module, "front_of", front)

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        if "FCGX_" in " ".join(argv):
            return "yes\n" if self.radosgw == "FastCGI" else "no\n"
        return super().answer(argv, stdin)

    def gateway(self, settings: dict[str, object], front: str = "haproxy") -> Rgw:
        return rgw(settings, **{front: "gateway-1"})

    def up(self, settings: dict[str, object], front: str = "haproxy") -> RunningGateway:
        return self.gateway(settings, front).bring_up(self.hosts, self.hosts["client-1"], print)


@pytest.fixture
def fronted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fronted:
    return Fronted(tmp_path, monkeypatch)


def test_one_radosgw_creates_the_zone_before_the_others_start_and_the_front_starts_last(
    fronted: Fronted,
) -> None:
    fronted.up({"radosgw": {"daemons": 3}})
    when = fronted.when
    order = [
        when(f"start {name}")[0]
        for name in ("radosgw.0", "radosgw.1", "radosgw.2", "relay", "front")
    ]
    assert order == sorted(order)
    assert order[-1] < when("weighbridge.gateways.verify")[0]
    services = fronted.hosts["gateway-1"].services
    assert services["radosgw.2"].argv == ("radosgw", "-f", "-n", "client.rgw.gateway-1.2")


def test_endpoints_facts_probes_and_files_include_the_fronts(fronted: Fronted) -> None:
    running = fronted.up({"radosgw": {"daemons": 2}})
    address = fronted.hosts["gateway-1"].address
    assert [one.url for one in running.endpoints] == [
        f"http://{address}/auth/v1.0",
        f"http://{address}",
    ]
    assert running.facts["path"] == "through the front"
    names = [probe.name for probe in running.probes()]
    assert names[:2] == ["radosgw.gateway-1.0", "radosgw.gateway-1.1"]
    assert names[-1] == "front"
    written = fronted.hosts["gateway-1"].files[FILE]
    assert (
        written
        == f"{address} gateway-1-8000 {address}:8000\n{address} gateway-1-8001 {address}:8001\n"
    )
    assert [one.host for one in running.rendered if one.path == FILE] == ["gateway-1"]


def test_a_front_that_died_is_noticed(fronted: Fronted) -> None:
    running = fronted.up({})
    fronted.hosts["gateway-1"].dead.add("front")
    with pytest.raises(Exception, match="gateway-1: front: died"):
        running.check()


@pytest.mark.parametrize(
    ("radosgw", "fact", "frontends"),
    [
        ("no FastCGI", "none in this release's program", "beast endpoint={0}:8000"),
        (
            "FastCGI",
            "yes: Plain front speaks to it directly",
            "fastcgi socket_port=8000 socket_host={0}",
        ),
    ],
)
def test_a_radosgw_with_fastcgi_is_used_directly_and_others_answer_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, radosgw: str, fact: str, frontends: str
) -> None:
    fronted = Fronted(tmp_path, monkeypatch, radosgw=radosgw)
    running = fronted.up({"apache": {"path": "fastcgi"}}, "apache")
    assert fronted.natives[-1] == (radosgw == "FastCGI")
    assert running.facts["FastCGI of radosgw"] == fact
    host = fronted.hosts["gateway-1"]
    conf = str(host.files["/etc/ceph/ceph.conf"])
    assert f"rgw_frontends = {frontends.format(host.address)}" in conf
    assert ("rgw_print_continue = false" in conf) == (radosgw == "FastCGI")


def test_fastcgi_is_not_looked_for_where_apache_speaks_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fronted = Fronted(tmp_path, monkeypatch, radosgw="FastCGI")
    fronted.up({"apache": {"path": "http"}}, "apache")
    assert not any(fronted.natives)
    assert not fronted.when("FCGX_")


def test_faults_of_ceph_and_the_front_are_reported_together(fronted: Fronted) -> None:
    fronted.front.refuses = "line 3: no such word"
    gateway = fronted.gateway({"options": {"osd": {"osd_unheard_of": 1}}})
    with pytest.raises(
        UsageError, match=r"(?s)no option 'osd_unheard_of' in \[osd\].*line 3: no such word"
    ):
        gateway.preflight(fronted.hosts, print)
    assert not fronted.when("start")
    assert FILE in fronted.hosts["gateway-1"].files


WRONG = (
    "parse error setting 'osd_max_scrubs' to 'none' (strict_si_cast: unit prefix not recognized)"
)


class Parser(Stage):
    """Hosts whose release knows this suite's options and a few more; `asked` are values of them."""

    def __init__(self, folder: Path, lacks: str = "") -> None:
        super().__init__(folder)
        names = {name for own in conf({}).values() for name in own} - {lacks}
        self.known = "".join(f"{name} = 1\n" for name in (*names, "osd_op_num_shards"))
        self.asked: list[str] = []

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        if "--show-config-value" not in argv[-1]:
            return super().answer(argv, stdin)
        lines = [line for line in argv[-1].split("\n") if line]
        self.asked += lines
        refused = [f"{WRONG}\n\nunable to parse option\nUSAGE\n"]
        texts = [refused[0] if "=none" in line else "1\n" for line in lines]
        return "".join(f"{text}\x1e0\x1f" for text in texts)


@pytest.mark.parametrize(
    ("release", "lacks", "given", "faults"),
    [
        ("ceph-16", "", {}, []),
        (
            "ceph-16",
            "",
            {"mon": {"osd_max_scrub": 1}, "osd": {"qqq": 1}},
            [
                "ceph-16 has no option 'osd_max_scrub' in [mon] (did you mean 'osd_max_scrubs'?)",
                "ceph-16 has no option 'qqq' in [osd]",
            ],
        ),
        ("ceph-16", "rgw_enable_ops_log", {}, ["no option 'rgw_enable_ops_log' in [client]"]),
        # With another one's settings only unknown options of the layout are refused.
        ("ceph-17", "rgw_enable_ops_log", {"osd": {"rrr": 1}}, ["no option 'rrr' in [osd]"]),
        # In the words of Ceph, without its usage.
        ("ceph-16", "", {"osd": {"osd_max_scrubs": "none"}}, [f"ceph-16: {WRONG}"]),
    ],
)
def test_options_that_a_release_refuses_are_told_before_anything_starts(
    tmp_path: Path, release: str, lacks: str, given: dict[str, Any], faults: list[str]
) -> None:
    stage, said = Parser(tmp_path, lacks), list[str]()
    planned = rgw({"options": given}, release)
    if faults:
        with pytest.raises(UsageError) as caught:
            planned.preflight(stage.hosts, said.append)
        lines = caught.value.message.splitlines()
        assert len(lines) == len(faults)
        assert all(fault in line for fault, line in zip(faults, lines, strict=True))
    else:
        planned.preflight(stage.hosts, said.append)
    assert not stage.started()
    ignored = [f"{release} has no option {lacks!r}" for _ in said]
    assert all(words in line for words, line in zip(ignored, said, strict=True))


@pytest.mark.parametrize(
    ("value", "word"),
    [("$(touch x)", "'--{}=$(touch x)'"), ("; reboot", "'--{}=; reboot'"), (True, "--{}=true")],
)
def test_a_value_is_passed_as_an_argument_never_as_a_command(
    tmp_path: Path, value: object, word: str
) -> None:
    stage = Parser(tmp_path)
    rgw({"options": {"client": {"rgw_frontends": value}}}).preflight(stage.hosts, print)
    assert word.format("rgw_frontends") in stage.asked[0]


def test_a_daemons_section_overrides_its_kinds_which_overrides_global() -> None:
    conf = (
        "[global]\na = 1\nb = 1\nc = 1\n\n[client]\nb = 2\nc = 2\n\n[client.rgw.x]\nc = "
        "3\n\n[osd]\na = 9\n"
    )
    assert effective(conf, "client.rgw.x") == {"a": "1", "b": "2", "c": "3"}
