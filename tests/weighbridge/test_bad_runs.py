"""What `report`, `export` and `sql` say about damaged run folders: no traceback, no silent zero."""

from __future__ import annotations

import json
import re
import shutil
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

Told = tuple[int, str, str]


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def damage(path: Path, how: str, text: str = "") -> None:
    if how == "begins with":
        path.write_bytes(text.encode("latin-1") + path.read_bytes())
    elif how == "is cut":
        first, second = path.read_text().splitlines()
        path.write_text(f"{first[:200]}\n{second}\n")
    elif how == "changed":
        change(path, *text.split(" -> "))
    else:
        path.unlink()
    if how == "is a folder":
        path.mkdir()
    elif how == "is a link":  # root can open any file, but not a link to itself
        path.symlink_to(path.name)
    elif how == "is":
        path.write_text(text)


NEWER_STEP = '{"schema_version":1,"key" -> {"schema_version":9,"cells":{},"key"'
NEWER_MEASUREMENT = '"measurement":{"schema_version":1 -> "measurement":{"schema_version":4,"new":1'


@pytest.mark.parametrize(
    ("damaged", "code", "words"),
    [
        (("manifest.json", "is gone"), 2, "is not the folder of a run"),
        (
            ("manifest.json", "changed", '"schema_version": 1 -> "schema_version": 2'),
            2,
            "manifest.json: written in version 2 of its format; this program knows version 1",
        ),
        (("manifest.json", "is a folder"), 2, "manifest.json: is a folder"),
        (("steps.jsonl", "changed", NEWER_STEP), 4, "steps.jsonl:1: written in version 9"),
        (("steps.jsonl", "changed", NEWER_MEASUREMENT), 4, "steps.jsonl:1: written in version 4"),
        (("steps.jsonl", "is cut"), 4, "steps.jsonl:1: "),
        (("steps.jsonl", "begins with", "\xff\xfe\x00\n"), 4, "steps.jsonl:1: "),
        (("steps.jsonl", "is a folder"), 2, "steps.jsonl: is a folder"),
        (("steps.jsonl", "is a link"), 2, "steps.jsonl: is a link"),
        (("plan.resolved.json", "is gone"), 2, "plan.resolved.json: No such file or directory"),
        (
            ("plan.resolved.json", "is", '{"suite": {"name": "made-up"'),
            2,
            "plan.resolved.json: Invalid JSON",
        ),
        (("plan.resolved.json", "is", "[]"), 2, "plan.resolved.json: "),
    ],
)
def test_an_unreadable_run_is_one_clear_error_of_every_verb(
    folder: Path, run_cli: Callable[..., Told], damaged: tuple[str, ...], code: int, words: str
) -> None:
    name, *how = damaged
    damage(folder / name, *how)
    for arguments in (("report", folder), ("export", folder, "--to", "csv", "--out", "-")):
        ended, out, err = run_cli(*arguments)
        assert (ended, out) == (code, "")
        assert err.startswith("weighbridge: ")
        assert re.search(words, err)
    ended, out, err = run_cli("sql", "select count(*) from steps", folder)
    assert (ended, out) == (2, "")
    assert re.search(f"left out: .*{words}", err)
    assert "none of these folders is a run that can be read" in err


def test_an_unfinished_run_is_read_as_far_as_it_is_and_every_verb_says_so(
    folder: Path, run_cli: Callable[..., Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Charts take long, and have their own tests.
    monkeypatch.setattr("weighbridge.results_output.write_charts", lambda _drawings, _folder: ())
    change(folder / "manifest.json", '"state": "done"', '"state": "running"')
    steps = folder / "steps.jsonl"
    steps.write_bytes(steps.read_bytes()[:-100])
    for path in (folder / "telemetry").iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    gap = "the run is still running, or was killed: 1 of 2 steps have a result"
    ended, out, err = run_cli(
        "sql", "select layout, measured from steps", folder, "--format", "csv"
    )
    assert (ended, out) == (0, "layout,measured\nrgw-beast,true\n")
    assert gap in err
    assert "steps.jsonl: the last line is incomplete and was ignored" in err
    ended, out, err = run_cli("export", folder, "--to", "json", "--out", "-")
    summary = {line["layout"]: line for line in json.loads(out)["tables"]["summary"]}
    assert (ended, summary["swift"]["throughput_ops_s"], summary["swift"]["notes"]) == (
        0,
        None,
        ["not measured"],
    )
    assert gap in err
    ended, out, err = run_cli("report", folder)
    assert ended == 0
    assert gap in err
    assert (folder / "derived" / "report.html").is_file()


def test_a_run_without_any_step_has_no_figures_in_any_table(
    folder: Path, run_cli: Callable[..., Told]
) -> None:
    (folder / "steps.jsonl").write_bytes(b"")
    _, out, err = run_cli("export", folder, "--to", "markdown", "--out", "-")
    assert "| 1 MB reads | 1 | swift † | – | – | – | – | – | – | – | 0 |" in out
    assert "0 of 2 steps have a result" in err
    assert (
        run_cli(
            "sql", "select count(throughput_ops_s), count(*) from rows", folder, "--format", "csv"
        )[1].splitlines()[1]
        == "0,2"
    )
    ended, _, err = run_cli("export", folder, "--to", "hgrm")
    assert ended == 4
    assert "nothing to export as hgrm" in err


@pytest.mark.parametrize("where", ["derived", "derived/exports"])
def test_a_file_in_place_of_a_folder_is_reported_and_kept(
    folder: Path, run_cli: Callable[..., Told], where: str
) -> None:
    path = folder / where
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    ended, _, err = run_cli("export", folder, "--to", "csv")
    assert ended == 3
    assert f"{folder / 'derived' / 'exports'}: cannot be written" in err
    assert path.read_text() == "mine"


def test_a_report_is_not_made_where_it_cannot_be_written(
    folder: Path, run_cli: Callable[..., Told]
) -> None:
    shutil.rmtree(folder / "derived")
    (folder / "derived").write_text("mine")
    ended, _, err = run_cli("report", folder)
    assert (ended, "cannot be written" in err) == (3, True)


def test_sql_reads_all_runs_and_names_folders_that_are_not(
    folder: Path, run_cli: Callable[..., Told], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended, _, err = run_cli("sql", "select 1")
    assert (ended, "runs: No such file or directory" in err) == (2, True)
    (tmp_path / "runs" / "notes").mkdir(parents=True)
    folder.rename(tmp_path / "runs" / "one")
    ended, out, err = run_cli("sql", "select count(*) from runs", "--format", "csv")
    assert (ended, out.splitlines()[1]) == (0, "1")
    assert (
        err == "weighbridge: left out: runs/notes: is not the folder of a run: it has no "
        "manifest.json\n"
    )


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
