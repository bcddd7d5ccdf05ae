"""`status`, `down` and other verbs about what is running here and on real hosts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from stub_run import Run
from tests.weighbridge import command_line
from tests.weighbridge.command_line import weighbridge
from weighbridge.cli.deployments import status_verb
from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.errors import TargetError
from weighbridge.documents import StatusDocument
from weighbridge.environment import place
from weighbridge.running import dead_here, describe
from weighbridge.selection import fitting
from weighbridge.topologies.deployment import RECORD, DeploymentRecord
from weighbridge.topologies.hosts import CONDUCTOR, Daemon, own_folder
from weighbridge.topologies.lab.host import keep_daemons
from weighbridge.topologies.lab.program import LabProcess
from weighbridge.topologies.loader import load_hardware, shipped_hardware
from weighbridge.topologies.ssh import claim, leftovers
from weighbridge.topologies.ssh.leftovers import ClaimedDeployment, LeftoverReport


def test_status_says_when_nothing_is_running(tmp_path: Path) -> None:
    done = weighbridge("status", folder=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "nothing is running")


@pytest.mark.parametrize(
    ("kind", "alive", "shown"),
    [("existing", False, False), ("existing", True, True), ("lab", False, True)],
)
def test_a_killed_run_of_endpoints_is_not_running(
    tmp_path: Path, kind: str, alive: bool, shown: bool
) -> None:
    folder = tmp_path / "home/deployments/a-1"
    own_folder(folder)
    if not alive:
        owner = json.loads((folder / CONDUCTOR).read_text())
        (folder / CONDUCTOR).write_text(json.dumps({**owner, "started": 1}))
    record = DeploymentRecord(
        label="a-1",
        layout="a",
        hardware="h",
        kind=kind,
        since="today",
        hosts={"client-1": "127.0.0.1"},
        clients=("client-1",),
        endpoints=(),
    )
    (folder / "deployment.json").write_text(record.model_dump_json())
    for words in (["status"], ["status", "--json"]):
        done = weighbridge(*words, folder=tmp_path)
        assert ("a-1" in done.stdout) == shown, done.stderr


def test_status_names_dead_daemons(
    run: Run, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., tuple[str, str]]
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_HOME", str(run.place.home))
    monkeypatch.setenv("COLUMNS", "300")
    folder = run.place.deployments / "rgw-a-1"
    bundle = folder / "bundles" / "gateway-1"
    bundle.mkdir(parents=True)
    record = DeploymentRecord(
        label="rgw-a-1",
        layout="rgw-a",
        hardware="lab-cpu",
        since="today",
        hosts={"gateway-1": "10.0.0.1"},
        clients=("client-1",),
        endpoints=(Endpoint(api="s3", url="http://10.0.0.1:80", user="u", key="secret"),),
    )
    (folder / "deployment.json").write_text(record.model_dump_json())
    mine = LabProcess.of(os.getpid())
    keep_daemons(bundle, {"radosgw": mine})
    assert "dead" not in run_cli(0, "status")[0]
    keep_daemons(bundle, {"radosgw": None, "mon": mine})
    printed, _ = run_cli(0, "status")
    assert f"dead: radosgw on gateway-1; its log: {folder}/logs/gateway-1/radosgw.out" in printed
    assert "mon on gateway-1" not in printed
    out, _ = run_cli(0, "status", "--json")
    (one,) = StatusDocument.model_validate_json(out).deployments
    assert (one.label, one.state) == ("rgw-a-1", "running")
    assert one.addresses == {"gateway-1": "10.0.0.1"}
    assert [(each.urls, each.user, each.key) for each in one.endpoints] == [
        (("http://10.0.0.1:80",), "u", "secret")
    ]
    log = f"{folder}/logs/gateway-1/radosgw.out"
    assert [(each.host, each.service, each.log) for each in one.dead] == [
        ("gateway-1", "radosgw", log)
    ]
    keep_daemons(bundle, {"radosgw": None, "mon": None})
    assert (
        "dead: none of it is running; `weighbridge down` removes what is left"
        in run_cli(0, "status")[0]
    )


CA = "/run/ca.pem"


def lines(api: ObjectApi, ca_file: str | None) -> str:
    url = "https://10.0.0.1" if ca_file else "http://10.0.0.1"
    endpoint = Endpoint(api=api, url=url, user="me", key=SecretStr("k"), ca_file=ca_file)
    record = DeploymentRecord(
        label="one",
        layout="rgw-beast",
        hardware="lab-cpu",
        since="now",
        hosts={"client-1": "10.0.0.2"},
        clients=("client-1",),
        endpoints=(endpoint,),
    )
    return "\n".join(describe(record))


@pytest.mark.parametrize(
    ("api", "wanted"),
    [
        ("s3", (f"curl --cacert {CA} --aws", f'verify="{CA}"', '"when_required"))')),
        ("swift", (f"curl --cacert {CA} -i", f"OS_CACERT={CA} ST_AUTH=https://")),
    ],
)
def test_every_client_is_given_the_ca_of_the_deployment(
    api: ObjectApi, wanted: tuple[str, ...]
) -> None:
    shown = lines(api, CA)
    assert [one for one in wanted if one not in shown] == []


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_plain_http_needs_none(api: ObjectApi) -> None:
    shown = lines(api, None)
    assert not [word for word in ("cacert", "CACERT", "verify", "Config") if word in shown]


USAGE, TARGET = 2, 3
NOWHERE = """\
name: nowhere
kind: ssh
ssh: {{known_hosts: {known}}}
hosts:
  client-1: {{address: 127.0.0.1, ssh: {{port: 1}}}}
"""


def test_layouts_that_doctor_checks_fit_the_hosts_and_have_one_release_per_gateway() -> None:
    found = fitting(load_hardware(shipped_hardware()["ssh-example"]))
    names = {one.layout.name for one in found}
    assert {"rgw-beast", "swift", "swift-haproxy"} <= names
    assert "existing" not in names
    releases = {(one.layout.gateway, one.layout.release) for one in found}
    assert len(releases) == len({gateway for gateway, _ in releases})


def test_hosts_that_do_not_answer_are_named_by_every_verb(tmp_path: Path) -> None:
    (tmp_path / "known").touch()
    path = tmp_path / "nowhere.yaml"
    path.write_text(NOWHERE.format(known=tmp_path / "known"))
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "WEIGHBRIDGE_HOME": f"{tmp_path}/wb"}
    for words, expected in (
        (("status",), TARGET),
        (("down",), TARGET),
        (("exec", "client-1", "true"), TARGET),
        (("doctor",), USAGE),
    ):
        verb, *rest = words
        done = command_line.run(verb, "--hardware", path, *rest, env={**env, "COLUMNS": "200"})
        said = done.stdout + done.stderr
        assert done.returncode == expected, said
        assert "client-1 (127.0.0.1 port 1)" in said
        assert "Traceback" not in said


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


def daemon(host: str, service: str, *, alive: bool = True, of: str = LABEL) -> Daemon:
    return Daemon(
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
        *daemons: Daemon,
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
        done = CliRunner().invoke(status_verb, ["--hardware", str(path)], standalone_mode=False)
        error = done.exception
        assert error is None or isinstance(error, TargetError), done.output
        words = ["--hardware", str(path), "--json"]
        said = CliRunner().invoke(status_verb, words, standalone_mode=False)
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
