"""Graceful restarts of Apache."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weighbridge.gateways.apache import front, reload_apache
from weighbridge.gateways.apache.front import CONF, Apache
from weighbridge.gateways.apache.settings import ApacheSettings
from weighbridge.gateways.front import Backend, Behind

ONE = [Backend("gateway-1-8000", "10.0.0.2", 8000)]
TWO = [*ONE, Backend("gateway-1-8001", "10.0.0.2", 8001)]


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
        argv = [
            sys.executable,
            "-I",
            str(Path(reload_apache.__file__)),
            file,
            str(pid_file),
            str(each),
            "2",
            str(within_s),
            "apache2",
        ]
        try:
            return subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
        finally:
            parent.stdin.close()


def test_a_graceful_restart_ends_when_new_processes_have_all_their_threads(tmp_path: Path) -> None:
    done = reloaded(tmp_path, "good", 3, 60)
    assert json.loads(done.stdout) == {"ended": 1, "new": 1}


def test_processes_without_all_their_threads_are_reported_at_the_timeout(tmp_path: Path) -> None:
    done = reloaded(tmp_path, "good", 9, 0)
    assert done.returncode == reload_apache.LEFT
    assert "old child processes are left, 0 of" in done.stderr


def test_a_file_that_apache_refuses_is_reported_in_its_words(tmp_path: Path) -> None:
    done = reloaded(tmp_path, "bad", 3, 60)
    assert (done.returncode, done.stderr) == (1, "Syntax error on line 7\n")
