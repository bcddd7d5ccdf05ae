"""Apache's configuration, what is refused of it, and what is made of its words."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from weighbridge.common.errors import CommandFailed, MissingMeans, UsageError
from weighbridge.gateways.apache import apache as module
from weighbridge.gateways.apache import reload_apache, scopes
from weighbridge.gateways.apache.apache import Apache
from weighbridge.gateways.apache.apache_counters import counters
from weighbridge.gateways.apache.config import CONF, RESPONDER_CONF
from weighbridge.gateways.apache.settings import ApacheSettings, MpmSettings
from weighbridge.gateways.front import Backend, Behind

sys.path.insert(0, str(Path(__file__).parent))
from stub_host import StubHost

ONE = [Backend("gateway-1-8000", "10.0.0.2", 8000)]
TWO = [*ONE, Backend("gateway-1-8001", "10.0.0.2", 8001)]

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


def test_a_proxy_passes_targets_and_hosts_as_they_come_and_adds_no_field() -> None:
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


def test_fastcgi_goes_to_the_responder_without_nocanon_and_with_authorization_and_lengths() -> None:
    settings = ApacheSettings(path="fastcgi")
    lines = text(settings)
    socket = "unix:/run/weighbridge-responder.sock|fcgi://localhost/"
    assert f'ProxyPass "/" "{socket}" retry=0 timeout=600 enablereuse=on flushpackets=on' in lines
    assert lines[lines.index("CGIPassAuth On") - 1] == '<Location "/">'
    assert "SetEnv ap_trust_cgilike_cl 1" in lines
    responder = Apache(settings, Behind()).files("10.0.0.2", TWO)[RESPONDER_CONF]
    assert (
        "listen /run/weighbridge-responder.sock\norigin 10.0.0.2:8000\norigin "
        "10.0.0.2:8001\nstats 10.0.0.2:9980\n" in responder
    )


def test_a_responder_on_a_port_is_found_there() -> None:
    settings = ApacheSettings.model_validate(
        {"path": "fastcgi", "responder": {"socket": "tcp", "port": 9001}}
    )
    assert any('"fcgi://127.0.0.1:9001/"' in line for line in text(settings))
    assert (
        Apache(settings, Behind())
        .files("10.0.0.2", ONE)[RESPONDER_CONF]
        .startswith("listen 127.0.0.1:9001\n")
    )


def test_radosgw_with_fastcgi_is_asked_directly_and_no_responder_is_started(tmp_path: Path) -> None:
    front = Apache(ApacheSettings(path="fastcgi"), Behind(fastcgi=True))
    assert list(front.files("10.0.0.2", ONE)) == [CONF]
    assert any('"fcgi://10.0.0.2:8000/"' in line for line in text(front.settings, native=True))
    assert [daemon.service.name for daemon in front.daemons(host_that(tmp_path))] == ["apache"]


def test_several_backends_are_balanced_by_apache_or_taken_in_turns_by_the_responder() -> None:
    lines = text(ApacheSettings(path="http", balance="bybusyness"), TWO)
    assert 'ProxyPass "/" "balancer://gateways/" nocanon' in lines
    assert 'BalancerMember "http://10.0.0.2:8001" retry=0 timeout=600 ttl=30' in lines
    assert "ProxySet lbmethod=bybusyness" in lines
    assert not [line for line in text(ApacheSettings(path="fastcgi"), TWO) if "balancer" in line]
    assert any(
        "fcgi://10.0.0.2:8001" in line
        for line in text(ApacheSettings(path="fastcgi"), TWO, native=True)
    )


def test_the_processes_of_the_2014_study_are_the_default() -> None:
    lines = text(ApacheSettings())
    figures = [
        "StartServers 20",
        "MinSpareThreads 30",
        "ThreadsPerChild 128",
        "MaxRequestWorkers 4096",
    ]
    assert {*figures, "MaxConnectionsPerChild 10000", "LimitRequestBody 0"} <= set(lines)
    # The other three of its figures can be said, as they were.
    study = {"mpm": {"server_limit": 4096, "thread_limit": 200, "max_spare_threads": 100}}
    assert {"ServerLimit 4096", "ThreadLimit 200", "MaxSpareThreads 100"} <= set(
        text(ApacheSettings.model_validate(study))
    )


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
def test_figures_that_apache_would_change_in_silence_are_refused(
    figures: dict[str, int], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        MpmSettings.model_validate(figures)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"server": {"MaxClients": 5}}, "MaxClients is said by `mpm: max_request_workers`"),
        ({"host": {"SetEnv": "a b\nProxyPass /x http://y/"}}, "not one line"),
        ({"host": {"SetEnv": "a \\"}}, "not one line"),
        ({"server": {"Set Env": "a"}}, "pattern"),
        ({"vhost": {"SetEnv": "a"}}, "'server', 'host' or 'location'"),
    ],
)
def test_options_that_would_contradict_or_break_out_are_refused(
    options: dict[str, dict[str, object]], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        ApacheSettings.model_validate({"options": options})


def test_options_come_last_in_their_section_and_can_be_left_out_by_a_name() -> None:
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


def test_unknown_directives_are_all_told_with_the_closest_known_ones(tmp_path: Path) -> None:
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


def test_what_apache_objects_to_is_told_with_the_line_it_objects_to(tmp_path: Path) -> None:
    words = f"AH00526: Syntax error on line 2 of {CONF}:\nKeepAlive must be On or Off\n"
    with pytest.raises(
        UsageError, match=r"apache\.conf:2: `line two`: KeepAlive must be On or Off"
    ):
        Apache(ApacheSettings(), Behind()).check(host_that(tmp_path, words))
    with pytest.raises(UsageError, match="something else"):
        Apache(ApacheSettings(), Behind()).check(host_that(tmp_path, "something else"))
    Apache(ApacheSettings(), Behind()).check(host_that(tmp_path))


def test_the_responder_starts_first_and_one_that_is_not_built_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "responder"
    monkeypatch.setattr(module, "RESPONDER", program)
    front = Apache(ApacheSettings(path="fastcgi"), Behind())
    host = host_that(tmp_path)
    for ask in (front.check, front.daemons):
        with pytest.raises(MissingMeans, match="the FastCGI responder is not built"):
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


def test_the_path_that_is_weighed_is_named_in_words(tmp_path: Path) -> None:
    said = {
        "ServerVersion": "Apache/2.4.71 (Debian)",
        "ServerMPM": "worker",
        "BusyWorkers": "1",
        "IdleWorkers": "127",
    }
    host = StubHost("gateway-1", "10.0.0.2", tmp_path, [], lambda argv, stdin: json.dumps(said), {})
    assert Apache(ApacheSettings(path="http"), Behind()).facts(host)["path"] == (
        "clients -> Apache 2.4.71 on gateway-1, mod_proxy_http -> HTTP front end of radosgw"
    )
    facts = Apache(ApacheSettings(path="fastcgi"), Behind()).facts(host)
    assert (
        "FastCGI responder of Weighbridge -> HTTP front end of radosgw, since this radosgw has no "
        "FastCGI" in facts["path"]
    )
    assert "ThreadsPerChild 128" in facts["apache mpm"]
    assert "when it came up 128 threads were there" in facts["apache mpm"]
    native = Apache(ApacheSettings(path="fastcgi"), Behind(fastcgi=True)).facts(host)["path"]
    assert native.endswith("mod_proxy_fcgi -> FastCGI front end of radosgw")


def test_the_words_of_server_status_become_numbers_and_what_it_does_not_say_is_left_out() -> None:
    told = counters(
        {
            "BusyWorkers": "3",
            "IdleWorkers": "125",
            "Total Accesses": "1234",
            "Scoreboard": "__WWK.....",
            "ServerMPM": "worker",
        }
    )
    assert (told["workers_busy"], told["workers_idle"], told["requests"]) == (3, 125, 1234)
    assert (told["workers_waiting"], told["workers_sending"], told["workers_keepalive"]) == (
        2,
        2,
        1,
    )
    assert "sent_kib" not in told


def conf(**settings: object) -> str:
    return Apache(ApacheSettings.model_validate(settings), Behind()).files("10.0.0.2", TWO)[CONF]


@pytest.mark.parametrize(
    "settings",
    [
        {"mpm": {"max_request_workers": 256, "start_servers": 2}},
        {"keep_alive": False, "extended_status": False},
        {"access_log": True},
        {"options": {"server": {"LogLevel": "error"}}},
    ],
)
def test_a_graceful_restart_takes_what_child_processes_read(settings: dict[str, object]) -> None:
    before = {"mpm": {"start_servers": 2}} if "mpm" in settings else {}
    assert scopes.graceful(conf(**before), conf(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"mpm": {"server_limit": 64}},
        {"mpm": {"kind": "event"}},
        {"mpm": {"start_servers": 2}},
        {"balance": "bybusyness"},
        {"reuse": False},
        {"options": {"server": {"ListenBacklog": 4096}}},
        {"keep_alive": False, "modules": ["headers"]},
    ],
)
def test_apache_is_started_anew_for_what_a_graceful_restart_leaves_as_it_was(
    settings: dict[str, object],
) -> None:
    assert not scopes.graceful(conf(), conf(**settings))


def test_a_responder_that_changes_is_no_reload_of_apache() -> None:
    files = [
        Apache(ApacheSettings(path="fastcgi", timeout=wait), Behind()).files("10.0.0.2", ONE)
        for wait in (600.0, 300.0)
    ]
    assert not Apache(ApacheSettings(path="fastcgi"), Behind()).reloads(*files)
    assert Apache.scope("timeout") == "restart"


FATHER = """
import os, signal, subprocess, sys, threading, time
def child(threads):
    start = "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    code = f"import threading, time; [{start} for _ in range({threads})]; print('up', flush=True); time.sleep(600)"
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
    """What the program for hosts says of a parent with one child process of three threads more than
    its first.
    """
    pid_file, program = folder / "pid", folder / "apache2"
    program.write_text(APACHE2)
    program.chmod(0o755)
    father = [sys.executable, "-c", FATHER, str(pid_file)]
    with subprocess.Popen(father, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        parent.stdout.readline()
        env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PID_FILE": str(pid_file)}
        argv = [
            sys.executable,
            "-I",
            str(Path(reload_apache.__file__)),
            file,
            str(pid_file),
            str(each),
            "2",
            str(within_s),
        ]
        try:
            return subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
        finally:
            parent.stdin.close()


def test_a_graceful_restart_is_over_when_others_with_all_their_threads_have_taken_the_place_of_the_old(
    tmp_path: Path,
) -> None:
    done = reloaded(tmp_path, "good", 3, 60)
    assert json.loads(done.stdout) == {"ended": 1, "came": 1}


def test_a_graceful_restart_that_leaves_processes_without_their_threads_is_told(
    tmp_path: Path,
) -> None:
    done = reloaded(tmp_path, "good", 9, 0)
    assert done.returncode == reload_apache.LEFT
    assert "old child processes are left, 0 of" in done.stderr


def test_a_file_that_apache_refuses_at_a_graceful_restart_is_told_in_its_words(
    tmp_path: Path,
) -> None:
    done = reloaded(tmp_path, "bad", 3, 60)
    assert (done.returncode, done.stderr) == (1, "Syntax error on line 7\n")
