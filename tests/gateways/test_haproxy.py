"""HAProxy's configuration, its errors and its counters."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from tests.gateways.stub_host import StubHost, run_program
from weighbridge.common.errors import UsageError
from weighbridge.gateways import config_text
from weighbridge.gateways.apache.front import ApacheSettings
from weighbridge.gateways.front import Backend, Behind
from weighbridge.gateways.haproxy import haproxy_counters
from weighbridge.gateways.haproxy.front import PATH, Haproxy, HaproxySettings, faults
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.sizing import HostSize, Role
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.topologies.hardware import Hardware

BACKENDS = [
    Backend("gateway-1-8080", "10.0.0.1", 8080),
    Backend("gateway-1-8081", "10.0.0.1", 8081),
]

OLD = """[NOTICE] 324/060812 (778) : haproxy version is 2.2.9-2+deb11u6
[WARNING] 324/060812 (778) : parsing [/etc/haproxy/haproxy.cfg:1] : something mild
[ALERT] 324/060812 (778) : parsing [/etc/haproxy/haproxy.cfg:2] : unknown keyword 'balanc' in 'backend' section
[ALERT] 324/060812 (778) : Error(s) found in configuration file : /etc/haproxy/haproxy.cfg
[ALERT] 324/060812 (778) : Fatal errors found in configuration.
"""  # noqa: E501 - HAProxy's own line
NEW = """[NOTICE]   (799) : haproxy version is 2.6.12-1+deb12u4
[ALERT]    (799) : config : parsing [/etc/haproxy/haproxy.cfg:2] : unknown keyword 'balanc' in 'backend' section; did you mean 'balance' maybe ?
[ALERT]    (799) : config : proxy 'gateways' has no server available
[ALERT]    (799) : config : Error(s) found in configuration file : /etc/haproxy/haproxy.cfg
[ALERT]    (799) : config : Fatal errors found in configuration.
"""  # noqa: E501 - HAProxy's own line

STAT = (
    "# pxname,svname,qcur,scur,stot,bin,bout,hrsp_2xx,hrsp_5xx,status,ctime,\n"
    "clients,FRONTEND,,3,10,100,200,9,1,OPEN,,\n"
    "gateways,gateway-1-8080,2,1,4,40,80,4,0,UP 1/3,0,\n"
    "gateways,gateway-1-8081,0,0,6,60,120,5,1,DOWN,7,\n"
    "gateways,BACKEND,0,1,10,100,200,9,1,UP,3,\n\n"
)


def sections(settings: HaproxySettings) -> dict[str, list[str]]:
    text = Haproxy(settings, Behind(health_path="/healthcheck")).files("10.0.0.9", BACKENDS)[PATH]
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith(" "):
            found[line.split()[0]] = own = []
        elif line:
            own.append(line.strip())
    return found


SERVERS = ["server gateway-1-8080 10.0.0.1:8080", "server gateway-1-8081 10.0.0.1:8081"]
OWN = ["balance uri", "default-server fall 5", "http-check expect status 403"]


@pytest.mark.parametrize(
    ("settings", "section", "lines"),
    [
        ({}, "frontend", ["bind 10.0.0.9:80", "default_backend gateways"]),
        ({"port": 8000}, "frontend", ["bind 10.0.0.9:8000", "default_backend gateways"]),
        ({}, "backend", SERVERS),
        # After the suite's and before the servers.
        ({"options": {"backend": OWN}}, "backend", [*OWN, *SERVERS]),
    ],
)
def test_all_lines_of_a_section(
    settings: dict[str, object], section: str, lines: list[str]
) -> None:
    assert sections(HaproxySettings.model_validate(settings))[section] == lines


@pytest.mark.parametrize(
    ("settings", "section", "lines"),
    [
        ({}, "defaults", ["option httpchk GET /healthcheck", "http-check expect status 200"]),
        ({}, "defaults", ["default-server check inter 2000ms fall 3 rise 2"]),
        ({}, "defaults", ["timeout client 600000ms", "timeout server 600000ms"]),
        ({"timeouts": {"server": "1m"}}, "defaults", ["timeout server 60000ms"]),
        ({"balance": "leastconn"}, "defaults", ["balance leastconn", "timeout connect 5000ms"]),
        ({"http_reuse": "always"}, "defaults", ["http-reuse always"]),
        ({"http-reuse": "always"}, "defaults", ["http-reuse always"]),  # HAProxy's own name
        ({"health_path": "/alive"}, "defaults", ["option httpchk GET /alive"]),
        (
            {"health_interval": "500ms"},
            "defaults",
            ["default-server check inter 500ms fall 3 rise 2"],
        ),
        ({"maxconn": 100, "threads": 2}, "global", ["maxconn 100", "nbthread 2"]),
        ({"bufsize": "64KiB"}, "global", ["tune.bufsize 65536"]),
    ],
)
def test_settings_are_written(settings: dict[str, object], section: str, lines: list[str]) -> None:
    assert {*lines} <= {*sections(HaproxySettings.model_validate(settings))[section]}


def test_a_layouts_lines_come_last_in_either_form() -> None:
    given = {"defaults": ["balance source"], "backend": OWN, "global": "spread-checks 5"}
    written = sections(HaproxySettings.model_validate({"options": given}))
    # Where a backend has rules of its own, those of the defaults do not count; a second would.
    assert [line for line in written["defaults"] if line.startswith("http-check")] == []
    assert written["defaults"][-1] == "balance source"
    assert written["global"][-1] == "spread-checks 5"


ROWS = [
    {"svname": "gateway-1-8080", "status": "UP", "check_fall": "", "check_rise": ""},
    {"svname": "BACKEND", "status": "UP", "algo": "roundrobin"},
]


@pytest.mark.parametrize(
    ("section", "line", "told", "is_said"),
    [
        ("backend", "timeout server 1s", "haproxy timeouts", "client 600 s, server as the options"),
        ("backend", '"timeout" "server" 1s', "HAProxy retries", "server as the options say"),
        ("backend", "option httpchk HEAD /other", "HAProxy check", "HEAD /other) every 2 s, out"),
        ("backend", "http-check send meth HEAD", "haproxy health check", "meth HEAD) every 2 s: "),
        ("backend", "default-server no-check", "haproxy health check", "no-check): gateway-1-8080"),
        ("backend", "default-server no-check", "HAProxy check", "(default-server no-check)"),
        ("backend", "default-server  fall   7", "HAProxy check", "out after 7 failed"),
        ("defaults", "default-server\tfall\t8", "HAProxy check", "out after 8 failed"),
        ("defaults", "option httpclose", "haproxy reuse", "(option httpclose); 3 retries"),
        ("backend", "http-reuse never", "haproxy reuse", "(http-reuse never), keep-alive"),
        ("backend", "retries 0", "haproxy reuse", "(retries 0) retries to connect"),
        ("defaults", "retry-on 503", "HAProxy retries", "of requests as the options say (retry-on"),
        ("backend", "no option redispatch", "HAProxy retries", "(no option redispatch)"),
        ("global", "tune.bufsize 65536", "haproxy bufsize", "(tune.bufsize 65536)"),
        ("backend", "disabled", "haproxy balance", "disabled over none"),
        ("backend", "balance leastconn", "haproxy reuse", "http-reuse safe, keep-alive on both"),
    ],
)
def test_facts_say_what_the_options_override(
    tmp_path: Path, section: str, line: str, told: str, is_said: str
) -> None:
    rows = [] if line == "disabled" else ROWS
    info = {"Version": "2.6", "Nbthread": "1", "Maxconn": "4096"}
    said = json.dumps({"info": info, "rows": rows})
    host = StubHost("gateway-1", "10.0.0.1", tmp_path, [], lambda *_: said, {})
    settings = HaproxySettings.model_validate({"options": {section: line}})
    front = Haproxy(settings, Behind(health_path="/healthcheck"))
    facts = {**front.facts(host), **front.tolerance()}
    assert is_said in facts[told]
    assert ", out after" not in facts["HAProxy check"] or "no-check" not in line


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (
            "[WARNING] (7) : config : parsing [{}:2] : 'maxconn' ignored because backend",
            "'maxconn'",
        ),
        ("[WARNING] 3/060812 (7) : parsing [{}:2] : 'maxconn' ignored because x", "'maxconn' ign"),
        ("[ALERT]  (7) : config : parsing [{}:2] : 'maxconn' already specified.", "'maxconn' alr"),
        ("[WARNING] (7) : config : parsing [{}:2] : a rule placed after another one", ""),
    ],
)
def test_a_line_that_haproxy_accepts_and_ignores_is_refused(
    said: str, fault: str, tmp_path: Path
) -> None:
    def answer(argv: Sequence[str], _: str) -> str:
        return "line 1\n    maxconn 5\n" if argv[0] == "cat" else said.format(PATH)

    front = Haproxy(HaproxySettings(), Behind(health_path="/"))
    host = StubHost("gateway-1", "10.0.0.9", tmp_path, [], answer, {})
    if not fault:
        return front.check(host)
    with pytest.raises(UsageError, match=f"haproxy.cfg:2: `maxconn 5`: {fault}") as refused:
        front.check(host)
    assert "HAProxy ignores these lines" in str(refused.value.advice)
    return None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"options": {"backend": ["balance uri\nserver evil 10.0.0.66:80"]}}, "is not one line"),
        ({"options": {"backend": [""]}}, "is not one line"),
        ({"options": {"listen": ["x"]}}, "'global', 'defaults', 'frontend' or 'backend'"),
        ({"options": "option http-no-delay"}, "valid dictionary"),
        ({"balance": "uri\n server x"}, "should match pattern"),
        ({"health_path": "alive"}, "should match pattern"),
        ({"health_path": "/a b"}, "should match pattern"),
        ({"threads": 0}, "greater than or equal to 1"),
        ({"nbthread": 2, "threads": 2}, "nbthread is threads, and both are given"),
        ({"http_reuse": "sometimes"}, "'never', 'safe', 'aggressive' or 'always'"),
        ({"timeouts": {"server": "0s"}}, "greater than or equal to 0.001"),
        *(
            ({"options": {"backend": f"default-server {word} 30s"}}, f"`{word}`, but the setting")
            for word in ("inter", "fastinter", "downinter")
        ),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        HaproxySettings.model_validate(settings)


@pytest.mark.parametrize(("cpus", "threads", "maxconn"), [(96, 64, 98304), (2, 2, 4096)])
def test_threads_and_connections_follow_the_cpus_of_its_host(
    cpus: int, threads: int, maxconn: int
) -> None:
    sizes = Haproxy.by_size(Role(["balancer-1"], {"balancer-1": HostSize(cpus=cpus)}))
    assert {size.key: size.value for size in sizes} == {"threads": threads, "maxconn": maxconn}


def test_errors_are_shown_with_the_faulty_line() -> None:
    file = ["backend gateways", "    balanc leastconn"]
    (old,) = faults(OLD, file)
    assert old == "haproxy.cfg:2: `balanc leastconn`: unknown keyword 'balanc' in 'backend' section"
    first, second = faults(NEW, file)
    assert first.endswith("did you mean 'balance' maybe ?")
    assert second == "haproxy.cfg: proxy 'gateways' has no server available"
    assert faults("something else entirely\n", []) == ["something else entirely"]


@contextmanager
def haproxy(path: Path, answers: list[bytes]) -> Iterator[None]:
    def serve(wire: socket.socket) -> None:
        for answer in answers:
            connection, _ = wire.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as wire:
        wire.bind(str(path))
        wire.listen()
        thread = threading.Thread(target=serve, args=(wire,))
        thread.start()
        yield
        thread.join()


def test_counters_are_printed_by_server_and_haproxys_own_names(tmp_path: Path) -> None:
    with haproxy(tmp_path / "s", [STAT.encode()]):
        values = json.loads(run_program(haproxy_counters.__file__, str(tmp_path / "s")).stdout)
    assert values["frontend.scur"] == 3
    assert [values[f"gateway-1-8080.{name}"] for name in ("stot", "qcur", "up")] == [4, 2, 1]
    assert [values[f"gateway-1-8081.{name}"] for name in ("hrsp_5xx", "ctime", "up")] == [1, 7, 0]
    assert "frontend.qcur" not in values
    done = run_program(haproxy_counters.__file__, str(tmp_path / "missing"))
    assert (done.stdout, "missing" in done.stderr) == ("", True)


def test_an_answer_is_waited_for_as_long_as_the_caller_says(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as wire:
        wire.bind(str(path))
        wire.listen()
        with pytest.raises(TimeoutError):
            haproxy_counters.rows(str(path), timeout_s=0.05)


def served(*checked: tuple[str, str]) -> bytes:
    """`show stat` with a server for each status and last check."""
    rows = "".join(
        f"gateways,s{number},{status},{last},\n" for number, (status, last) in enumerate(checked)
    )
    head = "# pxname,svname,status,check_status,\nclients,FRONTEND,OPEN,,\n"
    return f"{head}{rows}gateways,BACKEND,UP,,\n\n".encode()


READY = served(("UP", "* L7OK"), ("UP", "L7OKC"), ("no check", ""))
NOT_YET = [
    served(("UP 1/3", "INI"), ("UP", "L7OK")),
    served(("UP", "* L7OK"), ("DOWN", "L4CON")),
    served(("UP", "")),
]


@pytest.mark.parametrize(
    ("answers", "within_s", "left"),
    [
        ([*NOT_YET, READY], 60, ""),
        ([served(("UP", "L7OK"), ("DOWN", "L7STS"))], -1, "s1 is DOWN, last check L7STS"),
    ],
)
def test_waiting_ends_when_each_backend_has_passed_its_checks_or_names_those_that_have_not(
    tmp_path: Path, answers: list[bytes], within_s: float, left: str
) -> None:
    argv = [sys.executable, "-I", haproxy_counters.__file__, str(tmp_path / "s"), "up"]
    with haproxy(tmp_path / "s", answers):
        done = subprocess.run([*argv, str(within_s)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (haproxy_counters.NOT_UP if left else 0, left)


BREAKS = (
    "a\nb = c",
    "a\rb = c",
    "a\r\nb = c",
    "a\n",
    "a\r",
    "\na",
    "a\x0bb",
    "a\x0cb",
    "a\x1eb",
    "a\x85b",
    "a\u2028b",
    "a\0",
    "a\x1b[2J",
)
JOINED = "a \\"
SECTIONS = (
    "app:proxy-server]\n[filter:evil",
    "a]",
    "[a",
    "a b",
    "a\rb",
    "",
    "a#b",
    "a;b",
    "a=b",
    "a\\",
)


def ssh(value: str) -> dict[str, object]:
    hosts = {"client-1": {"address": "10.0.0.1"}}
    return {"name": "h", "kind": "ssh", "hosts": hosts, "sysctl": {"vm.swappiness": value}}


ANY_TEXT: list[tuple[type[BaseModel], Callable[[str], dict[str, object]]]] = [
    (RgwSettings, lambda value: {"options": {"client": {"rgw_x": value}}}),
    (SwiftSettings, lambda value: {"options": {"proxy": {"app:proxy-server": {"x": value}}}}),
    (ApacheSettings, lambda value: {"options": {"host": {"SetEnv": value}}}),
    (HaproxySettings, lambda value: {"options": {"backend": [value]}}),
    (HaproxySettings, lambda value: {"options": {"backend": value}}),
    (HaproxySettings, lambda value: {"balance": value}),
    (Hardware, ssh),
]
HEALTH = (HaproxySettings, lambda value: {"health_path": f"/{value}"})


@pytest.mark.parametrize(("record", "given"), [*ANY_TEXT, HEALTH])
@pytest.mark.parametrize("value", [*BREAKS, JOINED])
def test_a_value_that_any_program_may_read_as_several_lines_is_refused(
    record: Any, given: Any, value: str
) -> None:
    with pytest.raises(ValidationError, match=r"is not one line|String should match pattern"):
        record.model_validate(given(value))


@pytest.mark.parametrize(("record", "given"), ANY_TEXT)
@pytest.mark.parametrize("value", ["a b", "a\tb", "%(x)s", "ä", "a = b", "C:\\x", "a # b"])
def test_any_value_of_one_line_is_accepted(record: Any, given: Any, value: str) -> None:
    record.model_validate(given(value))


PLAIN = ["user_weigh_er", "set log_level", "max connections", "a.b-c"]
NOT_PLAIN = ["a = 1\nb", "a=b", "a:b", "[a]", " a", "a ", "", "#a", ";a", "a\rb", "a\tb"]


@pytest.mark.parametrize(
    ("section", "key", "fault"),
    [
        *((section, "a", "a valid section name") for section in SECTIONS),
        *(("DEFAULT", key, "a valid option name") for key in NOT_PLAIN),
        *(("filter:tempauth", key, "") for key in PLAIN),
    ],
)
def test_sections_and_options_of_swift_have_plain_names(section: str, key: str, fault: str) -> None:
    given = {"options": {"proxy": {section: {key: True}}}}
    if not fault:
        assert SwiftSettings.model_validate(given).options["proxy"][section] == {key: True}
        return
    with pytest.raises(ValidationError, match=f"is not {fault}"):
        SwiftSettings.model_validate(given)


anything = st.text(max_size=12) | st.sampled_from([*BREAKS, JOINED, *SECTIONS])


@hypothesis.given(section=anything, key=anything, value=anything)
def test_an_ini_file_has_exactly_the_given_sections_and_options_or_is_refused(
    section: str, key: str, value: str
) -> None:
    try:
        text = config_text.ini_text({"first": {"a": 1}, section: {key: value}, "last": {"z": 1}})
    except ValueError:
        return
    assert len(text.splitlines()) == len(text.split("\n")) - 1 == 8
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        "[first]",
        f"[{section}]",
        "[last]",
    ]
    assert text.splitlines()[4] == f"{key} = {value}"


def test_sections_and_options_keep_their_order_and_booleans_are_words() -> None:
    sections = {"b": {"z": 1, "a": "two", "on": True, "off": False}, "a": {}}
    text = config_text.ini_text(sections, head={"uid": "swift"})
    assert text == "uid = swift\n\n[b]\nz = 1\na = two\non = true\noff = false\n\n[a]\n"


def test_every_occurrence_of_every_secret_is_masked() -> None:
    text = "key = a+b, again a+b; other = c"
    assert config_text.masked(text, ["a+b", "c"]) == "key = ***, again ***; other = ***"
    assert config_text.masked("nothing", []) == "nothing"
