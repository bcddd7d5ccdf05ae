"""Apache's configuration, its errors, facts and counters."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.gateways.stub_host import StubHost
from weighbridge.common.errors import CommandFailed, MissingPrerequisite, UsageError
from weighbridge.gateways.apache import apache_host, front
from weighbridge.gateways.apache import front as module
from weighbridge.gateways.apache.apache_host import counters
from weighbridge.gateways.apache.front import (
    CONF,
    RESPONDER_CONF,
    Apache,
    ApacheSettings,
    MpmSettings,
)
from weighbridge.gateways.front import Backend, Behind

ONE = [Backend("gateway-1-8000", "10.0.0.2", 8000)]
TWO = [*ONE, Backend("gateway-1-8001", "10.0.0.2", 8001)]

TCP = {"socket": "tcp", "port": 9001}

KNOWN = """<Directory (core.c)
\tContainer for directives affecting resources located in the specified directories
ListenBacklog (mpm_common.c)
\tMaximum length of the queue of pending connections, as used by listen(2)
SetEnv (mod_env.c)
\tan environment variable name and optional value to pass to CGI.
"""


def text(
    settings: ApacheSettings, backends: Sequence[Backend] = ONE, *, native: bool = False
) -> list[str]:
    return [
        line.strip()
        for line in Apache(settings, Behind(fastcgi=native))
        .files("10.0.0.2", backends)[CONF]
        .splitlines()
    ]


def host_that(
    folder: Path, refused: str = "", events: list[tuple[str, str]] | None = None
) -> StubHost:
    def answer(argv: Sequence[str], stdin: str) -> str:
        if "-L" in argv:
            return KNOWN
        if "-t" in argv and refused:
            raise CommandFailed("gateway-1", argv, 1, refused)
        return "line one\nline two\nline three\n" if argv[0] == "cat" else ""

    return StubHost("gateway-1", "10.0.0.2", folder, [] if events is None else events, answer, {})


def test_the_proxy_passes_targets_and_hosts_unchanged_and_adds_no_header() -> None:
    lines = text(ApacheSettings(path="http"))
    assert 'ProxyPass "/" "http://10.0.0.2:8000/" nocanon retry=0 timeout=600 ttl=30' in lines
    assert {
        "ProxyPreserveHost On",
        "ProxyAddHeaders Off",
        "AllowEncodedSlashes NoDecode",
        "MergeSlashes Off",
    } <= set(lines)
    assert 'LoadModule proxy_http_module "/usr/lib/apache2/modules/mod_proxy_http.so"' in lines
    assert not [line for line in lines if "fcgi" in line or "CGIPassAuth" in line]


def test_fastcgi_goes_to_the_responder_without_nocanon_but_with_authorization_and_lengths() -> None:
    settings = ApacheSettings(path="fastcgi")
    lines = text(settings)
    socket = "unix:/run/weighbridge-responder.sock|fcgi://localhost/"
    assert f'ProxyPass "/" "{socket}" retry=0 timeout=600 enablereuse=on flushpackets=on' in lines
    assert lines[lines.index("CGIPassAuth On") - 1] == '<Location "/">'
    assert "SetEnv ap_trust_cgilike_cl 1" in lines
    origins = "origin 10.0.0.2:8000\norigin 10.0.0.2:8001\nstats 10.0.0.2:9980\n"
    assert Apache(settings, Behind()).files("10.0.0.2", TWO)[RESPONDER_CONF] == (
        f"listen /run/weighbridge-responder.sock\n{origins}keep 1024\ntimeout-s 600\n"
    )
    tcp = ApacheSettings.model_validate({"path": "fastcgi", "responder": TCP})
    assert any('"fcgi://127.0.0.1:9001/"' in line for line in text(tcp))
    responder = Apache(tcp, Behind()).files("10.0.0.2", ONE)[RESPONDER_CONF]
    assert responder.startswith("listen 127.0.0.1:9001\n")


def test_radosgw_with_fastcgi_needs_no_responder(tmp_path: Path) -> None:
    front = Apache(ApacheSettings(path="fastcgi"), Behind(fastcgi=True))
    assert list(front.files("10.0.0.2", ONE)) == [CONF]
    assert any('"fcgi://10.0.0.2:8000/"' in line for line in text(front.settings, native=True))
    assert [daemon.service.name for daemon in front.daemons(host_that(tmp_path))] == ["apache"]


def test_apache_balances_several_backends_unless_the_responder_does() -> None:
    lines = text(ApacheSettings(path="http", balance="bybusyness"), TWO)
    assert 'ProxyPass "/" "balancer://gateways/" nocanon' in lines
    assert 'BalancerMember "http://10.0.0.2:8001" retry=0 timeout=600 ttl=30' in lines
    assert "ProxySet lbmethod=bybusyness" in lines
    assert not [line for line in text(ApacheSettings(path="fastcgi"), TWO) if "balancer" in line]
    assert any(
        "fcgi://10.0.0.2:8001" in line
        for line in text(ApacheSettings(path="fastcgi"), TWO, native=True)
    )


def test_the_processes_of_the_2014_study_are_the_default_and_its_other_figures_can_be_set() -> None:
    others = {"mpm": {"server_limit": 4096, "thread_limit": 200}, "MaxSpareThreads": 100}
    lines = set(text(ApacheSettings.model_validate(others)))
    assert {"StartServers 20", "MinSpareThreads 30", "ThreadsPerChild 128"} <= lines
    assert {"MaxRequestWorkers 4096", "MaxConnectionsPerChild 10000"} <= lines
    assert {"ServerLimit 4096", "ThreadLimit 200", "MaxSpareThreads 100"} <= lines


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (
            {"threads_per_child": 256, "max_request_workers": 512, "start_servers": 1},
            "above thread_limit 128",
        ),
        ({"max_request_workers": 4000}, "not a multiple of threads_per_child 128"),
        ({"server_limit": 16}, "server_limit 16 x threads_per_child 128 = 2048"),
        ({"max_request_workers": 1280}, "start_servers 20 x threads_per_child 128"),
        ({"min_spare_threads": 200, "max_spare_threads": 100}, "above max_spare_threads"),
    ],
)
def test_figures_that_apache_would_silently_change_are_refused(
    figures: dict[str, int], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        MpmSettings.model_validate(figures)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"server": {"MaxClients": 5}}, "MaxClients is set by `mpm: max_request_workers`"),
        ({"host": {"SetEnv": "a b\nProxyPass /x http://y/"}}, "not one line"),
        ({"host": {"SetEnv": "a \\"}}, "not one line"),
        ({"server": {"Set Env": "a"}}, "pattern"),
        ({"vhost": {"SetEnv": "a"}}, "'server', 'host' or 'location'"),
    ],
)
def test_options_that_contradict_settings_or_inject_lines_are_refused(
    options: dict[str, dict[str, object]], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        ApacheSettings.model_validate({"options": options})


def test_options_come_last_in_their_section_in_a_container_that_can_be_disabled() -> None:
    options = {
        "server": {"ListenBacklog": 4096},
        "host": {"SetEnv": "a b"},
        "location": {"UseCanonicalName": True},
    }
    lines = text(ApacheSettings.model_validate({"options": options}))
    for directive in ("ListenBacklog 4096", "SetEnv a b", "UseCanonicalName On"):
        at = lines.index(directive)
        assert (lines[at - 1], lines[at + 1]) == ("<IfDefine !WEIGHBRIDGE_BARE>", "</IfDefine>")
    assert (
        lines.index("ListenBacklog 4096")
        < lines.index("<VirtualHost *:80>")
        < lines.index("UseCanonicalName On")
    )


def test_all_unknown_directives_are_reported_with_the_closest_known_ones(tmp_path: Path) -> None:
    options = {
        "server": {"ListenBacklogs": 5, "listenbacklog": 6},
        "location": {"Setenv": "a b", "SetEnw": "a b", "Frobnicate": 1},
    }
    front = Apache(ApacheSettings.model_validate({"options": options}), Behind())
    with pytest.raises(UsageError) as refused:
        front.check(host_that(tmp_path))
    assert refused.value.message.splitlines() == [
        (
            "Apache has no directive 'ListenBacklogs' in [server] of options (did you mean "
            "'ListenBacklog'?)"
        ),
        "Apache has no directive 'SetEnw' in [location] of options (did you mean 'SetEnv'?)",
        "Apache has no directive 'Frobnicate' in [location] of options",
    ]


def test_apaches_errors_are_reported_with_the_faulty_line(tmp_path: Path) -> None:
    words = f"AH00526: Syntax error on line 2 of {CONF}:\nKeepAlive must be On or Off\n"
    with pytest.raises(
        UsageError, match=r"apache\.conf:2: `line two`: KeepAlive must be On or Off"
    ):
        Apache(ApacheSettings(), Behind()).check(host_that(tmp_path, words))
    with pytest.raises(UsageError, match="something else"):
        Apache(ApacheSettings(), Behind()).check(host_that(tmp_path, "something else"))
    Apache(ApacheSettings(), Behind()).check(host_that(tmp_path))


def test_the_responder_starts_first_and_must_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "responder"
    monkeypatch.setattr(module, "RESPONDER", program)
    front = Apache(ApacheSettings(path="fastcgi"), Behind())
    host = host_that(tmp_path)
    for ask in (front.check, front.daemons):
        with pytest.raises(MissingPrerequisite, match="the FastCGI responder is not built"):
            ask(host)
    program.write_bytes(b"\x7fELF")
    responder, apache = front.daemons(host)
    assert host.files[responder.service.argv[0]] == b"\x7fELF"
    assert (responder.port, apache.port) == (9980, 80)


def test_the_responder_needs_no_library_of_its_host() -> None:
    program = module.RESPONDER.read_bytes()
    start, size, count = (
        int.from_bytes(program[at : at + width], "little")
        for at, width in ((32, 8), (54, 2), (56, 2))
    )
    kinds = [
        int.from_bytes(program[at : at + 4], "little")
        for at in range(start, start + size * count, size)
    ]
    loaded, interpreted = 1, 3
    assert program[:4] == b"\x7fELF"
    assert loaded in kinds
    assert interpreted not in kinds


def test_facts_name_the_path_of_a_request(tmp_path: Path) -> None:
    status = {
        "ServerVersion": "Apache/2.4.71 (Debian)",
        "ServerMPM": "worker",
        "BusyWorkers": "1",
        "IdleWorkers": "127",
    }
    host = StubHost("gateway-1", "10.0.0.2", tmp_path, [], lambda *_: json.dumps(status), {})
    assert Apache(ApacheSettings(path="http"), Behind()).facts(host)["path"] == (
        "clients -> Apache 2.4.71 on gateway-1, mod_proxy_http -> HTTP front end of radosgw"
    )
    facts = Apache(ApacheSettings(path="fastcgi"), Behind()).facts(host)
    assert (
        "FastCGI responder of Weighbridge -> HTTP front end of radosgw, since this radosgw has no "
        "FastCGI" in facts["path"]
    )
    assert "ThreadsPerChild 128" in facts["apache mpm"]
    assert "128 threads at start" in facts["apache mpm"]
    native = Apache(ApacheSettings(path="fastcgi"), Behind(fastcgi=True)).facts(host)["path"]
    assert native.endswith("mod_proxy_fcgi -> FastCGI front end of radosgw")


def test_fields_of_server_status_become_numbers_and_missing_ones_are_left_out() -> None:
    fields = {"BusyWorkers": "3", "IdleWorkers": "125", "Total Accesses": "1234"}
    values = counters({**fields, "Scoreboard": "__WWK.....", "ServerMPM": "worker"})
    assert (values["workers_busy"], values["workers_idle"], values["requests"]) == (3, 125, 1234)
    states = [values[f"workers_{state}"] for state in ("waiting", "sending", "keepalive")]
    assert states == [2, 2, 1]
    assert "sent_kib" not in values


def conf(**settings: object) -> str:
    return Apache(ApacheSettings.model_validate(settings), Behind()).files("10.0.0.2", TWO)[CONF]


FEW: dict[str, object] = {"mpm": {"start_servers": 2}}


@pytest.mark.parametrize(
    ("before", "after", "enough"),
    [
        (FEW, {"mpm": {"max_request_workers": 256, "start_servers": 2}}, True),
        ({}, {"keep_alive": False, "extended_status": False}, True),
        ({}, {"access_log": True}, True),
        ({}, {"options": {"server": {"LogLevel": "error"}}}, True),
        ({}, {"mpm": {"server_limit": 64}}, False),
        ({}, {"mpm": {"kind": "event"}}, False),
        ({}, FEW, False),
        ({}, {"balance": "bybusyness"}, False),
        ({}, {"reuse": False}, False),
        ({}, {"options": {"server": {"ListenBacklog": 4096}}}, False),
        ({}, {"keep_alive": False, "modules": ["headers"]}, False),
    ],
)
def test_a_graceful_restart_is_enough_for_what_child_processes_read(
    before: dict[str, object], after: dict[str, object], enough: bool
) -> None:
    assert front.graceful(conf(**before), conf(**after)) == enough


def test_a_changed_responder_needs_a_restart() -> None:
    files = [
        Apache(ApacheSettings(path="fastcgi", timeout=wait), Behind()).files("10.0.0.2", ONE)
        for wait in (600.0, 300.0)
    ]
    assert not Apache(ApacheSettings(path="fastcgi"), Behind()).reloads(*files)
    assert Apache.scope("timeout") == "restart"


PARENT = """
import os, signal, subprocess, sys, threading, time
def child(threads):
    start = "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    rest = "print('up', flush=True); time.sleep(600)"
    code = f"import threading, time; [{start} for _ in range({threads})]; {rest}"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process
old = child(3)
def again(number, frame):
    global old
    old.kill(); old.wait()
    old = child(3)
signal.signal(signal.SIGUSR1, again)
open(sys.argv[1], "w").write(str(os.getpid()))
print("ready", flush=True)
while sys.stdin.readline(): pass
old.kill()
"""
"""Does with one child process what Apache does at a graceful restart."""

APACHE2 = """#!/bin/sh
[ "$2" = good ] || { echo "Syntax error on line 7"; exit 1; }
kill -USR1 "$(cat "$PID_FILE")"
"""


def reloaded(
    folder: Path, file: str, each: int, within_s: float
) -> subprocess.CompletedProcess[str]:
    """The program's result for a parent whose child processes have four threads each."""
    pid_file, program = folder / "pid", folder / "apache2"
    program.write_text(APACHE2)
    program.chmod(0o755)
    command = [sys.executable, "-c", PARENT, str(pid_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        parent.stdout.readline()
        env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PID_FILE": str(pid_file)}
        nowhere = ["", "0", "", "", "", "", "reload"]
        argv = [sys.executable, "-I", apache_host.__file__, *nowhere, file, str(pid_file)]
        try:
            return subprocess.run(
                [*argv, str(each), "2", str(within_s), "apache2"],
                capture_output=True,
                text=True,
                check=False,
                env=env,
            )
        finally:
            parent.stdin.close()


@pytest.mark.parametrize(
    ("file", "each", "within_s", "code", "said"),
    [
        ("good", 3, 60, 0, r'\{"ended": 1, "new": 1\}\n'),
        # Without all their threads at the timeout.
        ("good", 9, 0, apache_host.LEFT, ".*old child processes are left, 0 of.*"),
        ("bad", 3, 60, 1, "Syntax error on line 7\n"),
    ],
)
def test_a_graceful_restart_ends_when_new_processes_have_all_their_threads(
    tmp_path: Path, file: str, each: int, within_s: float, code: int, said: str
) -> None:
    done = reloaded(tmp_path, file, each, within_s)
    assert done.returncode == code
    assert re.fullmatch(said, done.stdout + done.stderr)
