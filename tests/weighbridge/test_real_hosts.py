"""Verbs about real hosts, as far as no host has to answer for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from weighbridge.selection import fitting
from weighbridge.topologies.loader import load_hardware, shipped_hardware

USAGE, TARGET = 2, 3
NOWHERE = """\
name: nowhere
kind: ssh
ssh: {{known_hosts: {known}}}
hosts:
  client-1: {{address: 127.0.0.1, ssh: {{port: 1}}}}
"""


def weighbridge(*words: str, home: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "weighbridge", *words]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "WEIGHBRIDGE_HOME": str(home / "wb"), "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    return done.returncode, done.stdout + done.stderr


def test_layouts_that_hosts_are_looked_at_for_fit_them_and_are_of_one_release_a_gateway() -> None:
    found = fitting(load_hardware(shipped_hardware()["ssh-example"]))
    names = {one.layout.name for one in found}
    assert {"rgw-beast", "swift", "swift-haproxy"} <= names
    assert "existing" not in names
    releases = {(one.layout.gateway, one.layout.release) for one in found}
    assert len(releases) == len({gateway for gateway, _ in releases})


def test_what_is_only_of_real_hosts_is_refused_for_others_and_the_other_way_round(tmp_path: Path) -> None:
    code, said = weighbridge("doctor", "--hardware", "lab-small", "--install", home=tmp_path)
    assert (code, "are about real hosts" in said) == (USAGE, True)
    words = ("--hardware", "ssh-example", "--profile", "small-read", "--layouts", "rgw-beast,swift")
    code, said = weighbridge("compare", *words, home=tmp_path)
    assert (code, "--profile sees the processes of containers" in said) == (USAGE, True)


def test_hosts_that_do_not_answer_are_named_by_every_verb_that_asks_them(tmp_path: Path) -> None:
    (tmp_path / "known").touch()
    path = tmp_path / "nowhere.yaml"
    path.write_text(NOWHERE.format(known=tmp_path / "known"))
    for words, expected in (
        (("status",), TARGET),
        (("down",), TARGET),
        (("exec", "client-1", "true"), TARGET),
        (("doctor",), USAGE),
    ):
        verb, *rest = words
        code, said = weighbridge(verb, "--hardware", str(path), *rest, home=tmp_path)
        assert code == expected, said
        assert "client-1 (127.0.0.1 port 1)" in said
        assert "Traceback" not in said
