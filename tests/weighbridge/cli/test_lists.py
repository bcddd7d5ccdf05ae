"""The verbs that list runs and files, open a report, and write files to edit."""

from __future__ import annotations

import json
import os
import shutil
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr

from stub_run import Run
from tests.weighbridge.command_line import weighbridge
from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.documents import (
    DoctorDocument,
    HardwareDocument,
    RunsDocument,
    StatusDocument,
    SuitesDocument,
)
from weighbridge.plan_outline import PlanOutline
from weighbridge.results import derive
from weighbridge.results.record.store import RunStore, lock_run_folder
from weighbridge.screen.deployments import describe
from weighbridge.suites import loader as suite_files
from weighbridge.topologies.deployment import DeploymentRecord
from weighbridge.topologies.hosts import CONDUCTOR, own_folder
from weighbridge.topologies.lab.host import keep_daemon
from weighbridge.topologies.lab.program import LabProcess
from weighbridge.topologies.loader import shipped_hardware, shipped_layouts
from weighbridge.topologies.ssh import requirements

RunCli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three runs in `runs`: a complete one, a killed one, and a broken one."""
    monkeypatch.chdir(tmp_path)
    for name in ("20260101T000000Z-a", "20260102T000000Z-b", "20260103T000000Z-c"):
        shutil.copytree(run_folder, tmp_path / "runs" / name)
    (tmp_path / "runs" / "notes").mkdir()
    killed = tmp_path / "runs" / "20260102T000000Z-b" / "manifest.json"
    killed.write_text(killed.read_text().replace('"state": "done"', '"state": "running"'))
    (tmp_path / "runs" / "20260103T000000Z-c" / "plan.resolved.json").write_text("{")
    return tmp_path


def listed(run_cli: RunCli) -> RunsDocument:
    code, out, _ = run_cli("runs", "--json")
    assert code == 0
    return RunsDocument.model_validate_json(out)


def test_runs_are_listed_with_their_state_and_their_answer(
    here: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    RunStore.open(here / "runs" / "20260101T000000Z-a").set_state("done")
    derived = derive(Path("runs/20260101T000000Z-a"), pictures=False)
    found = {one.folder: one for one in listed(run_cli).runs}
    done, killed = found["runs/20260101T000000Z-a"], found["runs/20260102T000000Z-b"]
    assert (done.state, done.answer) == ("done", derived.answer)
    assert (killed.state, killed.answer) == ("killed", "")
    assert done.layouts == ("rgw-beast", "swift")
    (broken,) = listed(run_cli).unreadable
    assert broken.startswith("runs/20260103T000000Z-c: ")
    code, out, _ = run_cli("runs")
    assert code == 0
    for words in ("runs/20260101T000000Z-a", "killed", derived.answer.split()[0]):
        assert words in out


def test_a_run_that_is_being_written_is_running(here: Path, run_cli: RunCli) -> None:
    with lock_run_folder(here / "runs" / "20260102T000000Z-b"):
        assert {one.state for one in listed(run_cli).runs} >= {"running"}


def test_a_folder_without_runs_is_said_to_have_none_and_none_is_refused(
    run_cli: RunCli, tmp_path: Path
) -> None:
    code, out, _ = run_cli("runs", tmp_path)
    assert (code, out.startswith("no runs that can be read in ")) == (0, True)
    code, _, said = run_cli("runs", tmp_path / "none")
    assert (code, "No such file or directory" in said) == (2, True)


def test_the_newest_report_is_opened_where_there_is_a_screen_and_its_path_printed(
    here: Path, run_cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    run = here / "runs" / "20260101T000000Z-a"
    code, _, said = run_cli("open", run)
    assert code == 2
    assert f"weighbridge report {run}" in said
    derive(run, pictures=False)
    shutil.rmtree(here / "runs" / "20260102T000000Z-b")
    code, out, _ = run_cli("open")
    assert (code, out, opened) == (0, f"{run / 'derived' / 'report.html'}\n", [])
    monkeypatch.setenv("DISPLAY", ":0")
    assert run_cli("open", run)[0] == 0
    assert opened == [(run / "derived" / "report.html").as_uri()]


def test_shipped_suites_and_hardware_are_listed(run_cli: RunCli) -> None:
    suites = SuitesDocument.model_validate_json(run_cli("suites", "--json")[1])
    assert [one.name for one in suites.suites] == list(suite_files.shipped())
    hardware = HardwareDocument.model_validate_json(run_cli("hardware", "--json")[1])
    assert [one.name for one in hardware.hardware] == list(shipped_hardware())
    assert "endpoints" in run_cli("suites")[1]
    assert "this-machine" in run_cli("hardware")[1]


def test_a_file_to_edit_is_printed_or_written_once(run_cli: RunCli, tmp_path: Path) -> None:
    code, out, _ = run_cli("init", "suite", "--of", "quick")
    assert code == 0
    assert suite_files.parse("mine.yaml", out).name == "my-quick"
    path = tmp_path / "new" / "mine.yaml"
    assert run_cli("init", "suite", path)[0] == 0
    assert suite_files.load(path).name == "mine"
    code, _, said = run_cli("init", "suite", path)
    assert code == 2
    assert "--force" in said
    assert run_cli("init", "suite", path, "--force")[0] == 0
    code, _, said = run_cli("init", "layout", "--of", "rgw-best")
    assert code == 2
    assert "did you mean 'rgw-beast'" in said


def test_the_json_of_a_report_is_its_answer_and_its_exported_tables(
    here: Path, run_cli: RunCli
) -> None:
    run = here / "runs" / "20260101T000000Z-a"
    code, out, said = run_cli("report", "--no-charts", "--json", run)
    assert code == 0
    found = json.loads(out)
    derived = derive(run, pictures=False)
    _, exported, _ = run_cli("export", run, "--to", "json", "--out", "-")
    tables = json.loads(exported)["tables"]
    assert found["answer"] == derived.answer
    assert found["tables"] == {name: tables[name] for name in ("summary", "effects")}
    assert len(found["findings"]) == len(derived.findings)
    assert "small-read" not in said


def test_topologies_lists_every_layout_release_and_parameter(tmp_path: Path) -> None:
    done = weighbridge("topologies", folder=tmp_path, COLUMNS="400")
    assert done.returncode == 0, done.stderr
    for name in shipped_layouts():
        assert name in done.stdout
    for word in (
        "ceph-16",
        "swift-2.30",
        "radosgw.threads",
        "pools.replicas",
        "object.keep_cache_private",
    ):
        assert word in done.stdout


def test_topologies_of_one_gateway_leaves_the_others_out(tmp_path: Path) -> None:
    done = weighbridge("topologies", "swift-s3api", folder=tmp_path, COLUMNS="400")
    assert "keep_cache_private" in done.stdout
    assert "radosgw" not in done.stdout.replace("rgw-beast@ceph-18:radosgw.threads=64", "")
    wrong = weighbridge("topologies", "swft", folder=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean 'swift'" in wrong.stderr


def test_topologies_lists_no_release_without_the_front_end_of_a_layout(tmp_path: Path) -> None:
    listed = weighbridge("topologies", "rgw", folder=tmp_path, COLUMNS="400").stdout.splitlines()
    beast, civetweb = (
        next(line for line in listed if f" {name} " in line)
        for name in ("rgw-beast", "rgw-civetweb")
    )
    assert "ceph-14" in civetweb
    assert "ceph-18" in beast
    assert "ceph-18" not in civetweb


def test_render_of_a_layout_without_files_says_so(tmp_path: Path) -> None:
    done = weighbridge("render", "null", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "has no configuration files" in done.stderr


def test_render_and_the_plan_say_whose_settings_a_release_without_own_ones_gets(
    tmp_path: Path,
) -> None:
    lab = ("--hardware", "lab-cpu")
    done = weighbridge("render", "rgw-beast@ceph-19", *lab, folder=tmp_path)
    assert "ceph-19 gets the settings of ceph-18, checked by its programs" in done.stderr
    done = weighbridge("render", "rgw-beast", *lab, folder=tmp_path)
    assert "gets the settings" not in done.stderr
    layouts = ("--layouts", "swift@swift-2.33")
    done = weighbridge("compare", "--dry-run", *layouts, *lab, folder=tmp_path, COLUMNS="400")
    assert "settings of swift-2.30" in " ".join(done.stdout.split())


def test_render_refuses_a_host_that_the_layout_does_not_use(tmp_path: Path) -> None:
    done = weighbridge("render", "null", "--host", "gatway-1", folder=tmp_path)
    assert done.returncode == 2
    assert "null has nothing on a host 'gatway-1' (did you mean 'gateway-1'?)" in done.stderr


EVEN = "two-mons: 2 mons tolerate no more failures than one fewer would"


@pytest.fixture
def two_mons(tmp_path: Path) -> Path:
    text = shipped_layouts()["rgw-beast"].read_text()
    path = tmp_path / "two-mons.yaml"
    path.write_text(
        text.replace("name: rgw-beast", "name: two-mons").replace(
            "mon: store-1 ", "mon: [store-1, store-2] "
        )
    )
    return path


def test_a_plan_advises_against_an_even_number_of_mons(
    run_cli: RunCli, two_mons: Path, tmp_path: Path
) -> None:
    layouts = ("--layouts", f"{two_mons},rgw-beast", "--hardware", "lab-cpu", "--aa")
    code, out, _ = run_cli("compare", *layouts, "--dry-run", "--json", "--out", tmp_path)
    assert code == 0
    assert PlanOutline.model_validate_json(out).advice == (EVEN,)
    code, out, _ = run_cli("compare", *layouts, "--dry-run", "--out", tmp_path)
    assert EVEN in out


def test_doctor_advises_against_an_even_number_of_mons(
    run_cli: RunCli, two_mons: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "here", lambda _: ())
    monkeypatch.setattr(requirements, "look", lambda *_: ())
    hosts = ("--hardware", "ssh-example", "--layouts")
    code, out, said = run_cli("doctor", *hosts, str(two_mons), "--json")
    assert code == 0
    assert DoctorDocument.model_validate_json(out).advice == (EVEN,)
    assert EVEN in said
    _, out, said = run_cli("doctor", *hosts, "rgw-beast")
    assert "mons" not in out + said


FILE = """<workload name="demo">
  <storage type="swift" config="policy=POLICY"/>
  <workflow>
    <workstage name="prepare"><work type="prepare" workers="1"
        config="containers=r(1,2);objects=r(1,5);sizes=c(64)KB"/></workstage>
    <workstage name="main"><work name="main" workers="8" runtime="30" interval="1">
      <operation type="read" config="containers=u(1,2);objects=u(1,5)"/>
    </work></workstage>
  </workflow>
</workload>
"""
command = partial(weighbridge, folder=Path("/nonexistent"), COLUMNS="200")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "demo.xml"
    path.write_text(FILE.replace(' config="policy=POLICY"', ""))
    return path


def test_the_suite_goes_to_stdout_and_remarks_to_stderr(file: Path) -> None:
    done = command("import-cosbench", file)
    assert done.returncode == 0
    assert suite_files.parse("demo.yaml", done.stdout).workloads[0].workers == (8,)
    assert f"{file}:6: interval '1' is left out" in done.stderr


def test_a_written_suite_can_be_loaded_and_is_never_overwritten(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.yaml"
    done = command("import-cosbench", file, "--out", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert suite_files.load(out).name == "demo"
    again = command("import-cosbench", file, "--out", out)
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_a_suite_that_would_measure_something_else_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_text(FILE)
    out = tmp_path / "demo.yaml"
    done = command("import-cosbench", file, "--out", out)
    assert (done.returncode, out.exists()) == (2, False)
    assert "demo.xml:2:25: storage: policy 'POLICY' chooses where objects are stored" in done.stderr
    assert command("import-cosbench", file, "--out", out, "--partial").returncode == 0
    assert suite_files.load(out).name == "demo"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--size", "64 parsecs"), "is not a quantity"),
        (("--runtime", "60"), "not a quantity"),
        (("--runtime", "1.5s"), "must be whole seconds"),
        (("--runtime", "0s"), "must be whole seconds"),
    ],
)
def test_an_unparsable_option_is_refused(file: Path, words: tuple[str, str], message: str) -> None:
    done = command("import-cosbench", file, *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_missing_file_is_reported() -> None:
    done = command("import-cosbench", "nothing.xml")
    assert done.returncode == 2
    assert "nothing.xml: no such file" in done.stderr


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
    run: Run, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., tuple[int, str, str]]
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
    keep_daemon(bundle, "gateway-1", {"radosgw": mine})
    assert "dead" not in run_cli("status")[1]
    keep_daemon(bundle, "gateway-1", {"radosgw": None, "mon": mine})
    code, printed, _ = run_cli("status")
    assert code == 0
    assert f"dead: radosgw on gateway-1; its log: {folder}/logs/gateway-1/radosgw.out" in printed
    assert "mon on gateway-1" not in printed
    code, out, _ = run_cli("status", "--json")
    (one,) = StatusDocument.model_validate_json(out).deployments
    assert (code, one.label, one.state) == (0, "rgw-a-1", "running")
    assert one.addresses == {"gateway-1": "10.0.0.1"}
    assert [(each.urls, each.user, each.key) for each in one.endpoints] == [
        (("http://10.0.0.1:80",), "u", "secret")
    ]
    log = f"{folder}/logs/gateway-1/radosgw.out"
    assert [(each.host, each.service, each.log) for each in one.dead] == [
        ("gateway-1", "radosgw", log)
    ]
    keep_daemon(bundle, "gateway-1", {"radosgw": None, "mon": None})
    assert (
        "dead: none of it is running; `weighbridge down` removes what is left"
        in run_cli("status")[1]
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
