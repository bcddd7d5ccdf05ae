"""Verbs about real hosts, without any real host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.weighbridge import command_line
from weighbridge.cli import status
from weighbridge.common.errors import TargetError
from weighbridge.documents import StatusDocument
from weighbridge.environment import place
from weighbridge.screen.deployments import dead_here
from weighbridge.selection import fitting
from weighbridge.topologies.deployment import RECORD, DeploymentRecord
from weighbridge.topologies.loader import load_hardware, shipped_hardware
from weighbridge.topologies.ssh import claim, leftovers
from weighbridge.topologies.ssh.leftovers import ClaimedDeployment, HostDaemon, LeftoverReport

USAGE, TARGET = 2, 3
NOWHERE = """\
name: nowhere
kind: ssh
ssh: {{known_hosts: {known}}}
hosts:
  client-1: {{address: 127.0.0.1, ssh: {{port: 1}}}}
"""


def weighbridge(*words: str, home: Path) -> tuple[int, str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "WEIGHBRIDGE_HOME": f"{home}/wb"}
    done = command_line.run(*words, env={**env, "COLUMNS": "200"})
    return done.returncode, done.stdout + done.stderr


def test_layouts_that_doctor_checks_fit_the_hosts_and_have_one_release_per_gateway() -> None:
    found = fitting(load_hardware(shipped_hardware()["ssh-example"]))
    names = {one.layout.name for one in found}
    assert {"rgw-beast", "swift", "swift-haproxy"} <= names
    assert "existing" not in names
    releases = {(one.layout.gateway, one.layout.release) for one in found}
    assert len(releases) == len({gateway for gateway, _ in releases})


def test_options_for_real_hosts_are_refused_for_others_and_vice_versa(
    tmp_path: Path,
) -> None:
    code, said = weighbridge("doctor", "--hardware", "lab-cpu", "--layouts", "swift", home=tmp_path)
    assert (code, "is for real hosts" in said) == (USAGE, True)
    words = ("--hardware", "ssh-example", "--perf", "small-read", "--layouts", "rgw-beast,swift")
    code, said = weighbridge("compare", *words, home=tmp_path)
    assert (code, "--perf works on containers of this machine" in said) == (USAGE, True)


def test_hosts_that_do_not_answer_are_named_by_every_verb(tmp_path: Path) -> None:
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


# dead daemons in `status`
# --------------------------------------------------------------------------------------------

LABEL = "rgw-beast-abc123"
CHANGED = "  it is incomplete: `weighbridge down --hardware FILE`, and `up` again"
HOSTS = ("client-1", "gateway-1", "store-1", "store-2")
Asked = Callable[..., tuple[list[str], Exception | None]]


def record(*hosts: str, kind: str = "ssh") -> DeploymentRecord:
    addresses = {name: f"192.0.2.{index}" for index, name in enumerate(hosts)}
    given = {
        "label": LABEL,
        "layout": "rgw-beast",
        "hardware": "real",
        "kind": kind,
        "since": "2026-01-01T00:00:00+00:00",
    }
    return DeploymentRecord.model_validate(
        {**given, "hosts": addresses, "clients": ["client-1"], "endpoints": ()}
    )


def daemon(host: str, service: str, *, alive: bool = True, of: str = LABEL) -> HostDaemon:
    return HostDaemon(
        host=host,
        deployment=of,
        service=service,
        alive=alive,
        log=f"/opt/weighbridge/log/{service}.out",
    )


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The verb on hosts with these answers: its lines about the deployment, and its error."""
    monkeypatch.setenv("WEIGHBRIDGE_HOME", str(tmp_path / "wb"))
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "real.yaml"
    lines = [f"  {name}: {{address: 192.0.2.{index}}}" for index, name in enumerate(HOSTS)]
    path.write_text("\n".join(["name: real", "kind: ssh", "hosts:", *lines, ""]))

    def ask(
        *daemons: HostDaemon,
        on: tuple[str, ...] = HOSTS,
        failed: tuple[str, ...] = (),
        known: DeploymentRecord | None = None,
    ) -> tuple[list[str], Exception | None]:
        if known is not None:
            folder = place().deployments / LABEL
            folder.mkdir(parents=True)
            (folder / RECORD).write_text(known.model_dump_json())
        claimed = claim.new_claim(LABEL, "/opt/weighbridge", since="2026-01-01T00:00:00+00:00")
        errors = {name: TargetError(f"{name}: cannot be reached") for name in failed}

        def find(hardware: object, *, include_suites: bool, daemons: bool) -> LeftoverReport:
            assert (include_suites, daemons) == (True, True)
            return there

        there = LeftoverReport(
            deployments=(ClaimedDeployment(claimed, on),), failed=errors, daemons=daemons
        )
        monkeypatch.setattr(leftovers, "find", find)
        done = CliRunner().invoke(status.command, ["--hardware", str(path)], standalone_mode=False)
        error = done.exception
        assert error is None or isinstance(error, TargetError), done.output
        words = ["--hardware", str(path), "--json"]
        said = CliRunner().invoke(status.command, words, standalone_mode=False)
        document = StatusDocument.model_validate_json(said.stdout)
        (one,) = document.deployments
        assert {(each.host, each.service) for each in one.dead} == {
            (each.host, each.service)
            for each in daemons
            if not each.alive and each.deployment == LABEL
        }
        assert document.silent.keys() == errors.keys()
        assert said.return_value == document.exit_code == (3 if errors else 0)
        head, *rest = done.output.splitlines()
        assert head.startswith(f"{LABEL} on {', '.join(on)} since ")
        return [
            line
            for line in rest
            if line.startswith(("  dead", "  it is incomplete", "  not known"))
        ], error

    return ask


def test_no_death_is_reported_if_all_daemons_are_running(asked: Asked) -> None:
    other = daemon("store-1", "osd.9", alive=False, of="swift-def456")
    assert asked(
        daemon("gateway-1", "radosgw"), daemon("store-1", "osd.0"), other, known=record(*HOSTS)
    ) == ([], None)


def test_a_dead_daemon_on_a_real_host_is_named_with_its_log(asked: Asked) -> None:
    found = asked(
        daemon("gateway-1", "radosgw", alive=False),
        daemon("store-1", "osd.0"),
        known=record(*HOSTS),
    )
    dead = "  dead: radosgw on gateway-1; its log: gateway-1:/opt/weighbridge/log/radosgw.out"
    assert found == ([dead, CHANGED], None)


def test_if_nothing_is_running_only_that_is_reported(asked: Asked) -> None:
    dead = [daemon("gateway-1", "radosgw", alive=False), daemon("store-1", "osd.0", alive=False)]
    assert asked(*dead) == (
        ["  dead: none of it is running; `weighbridge down --hardware FILE` removes what is left"],
        None,
    )


def test_daemons_on_a_host_that_does_not_answer_are_neither_running_nor_dead(asked: Asked) -> None:
    dead = daemon("gateway-1", "radosgw", alive=False)
    lines, error = asked(dead, on=HOSTS[:3], failed=("store-2",), known=record(*HOSTS))
    assert [line[:16] for line in lines] == [
        "  dead: radosgw ",
        "  it is incomple",
        "  not known: wha",
    ]
    assert lines[2] == "  not known: what is running on store-2"
    assert isinstance(error, TargetError)
    assert "store-2: cannot be reached" in error.message


def test_a_host_that_does_not_answer_may_be_one_of_a_deployment_that_this_machine_does_not_know(
    asked: Asked,
) -> None:
    lines, error = asked(daemon("gateway-1", "radosgw"), on=HOSTS[:3], failed=("store-2",))
    assert lines == ["  not known: what is running on store-2"]
    assert error is not None


def test_a_silent_host_outside_a_deployment_casts_no_doubt_on_it(asked: Asked) -> None:
    lines, error = asked(
        daemon("gateway-1", "radosgw"), on=HOSTS[:3], failed=("store-2",), known=record(*HOSTS[:3])
    )
    assert lines == []
    assert error is not None


def test_hosts_that_lost_a_deployment_or_are_not_in_the_file_are_named(asked: Asked) -> None:
    lines, error = asked(
        daemon("gateway-1", "radosgw"), on=HOSTS[:3], known=record(*HOSTS, "store-9")
    )
    assert lines == [
        "  dead: all of it on store-2, where nothing of it is left",
        CHANGED,
        "  not known: what is running on store-9 (no host of hardware real)",
    ]
    assert error is None


def test_without_the_file_of_real_hosts_the_command_to_ask_them_is_printed() -> None:
    assert dead_here(record(*HOSTS), place()) == [
        "  for its daemons: weighbridge status --hardware FILE"
    ]
    assert dead_here(record(*HOSTS, kind="fake"), place()) == []
