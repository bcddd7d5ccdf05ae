"""Verbs about files that ship, that are written or converted; and what shells complete."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from tests.weighbridge.command_line import weighbridge
from weighbridge.cli.machine import VARIABLE
from weighbridge.command import weighbridge as group
from weighbridge.documents import DoctorDocument, HardwareDocument, SuitesDocument
from weighbridge.plan_outline import PlanOutline
from weighbridge.suites import loader as suite_files
from weighbridge.topologies.loader import shipped_hardware, shipped_layouts
from weighbridge.topologies.ssh import requirements

RunCli = Callable[..., tuple[str, str]]


def test_shipped_suites_and_hardware_are_listed(run_cli: RunCli) -> None:
    suites = SuitesDocument.model_validate_json(run_cli(0, "suites", "--json")[0])
    assert [one.name for one in suites.suites] == list(suite_files.shipped())
    hardware = HardwareDocument.model_validate_json(run_cli(0, "hardware", "--json")[0])
    assert [one.name for one in hardware.hardware] == list(shipped_hardware())
    assert "endpoints" in run_cli(0, "suites")[0]
    assert "this-machine" in run_cli(0, "hardware")[0]


def test_a_file_to_edit_is_printed_or_written_once(run_cli: RunCli, tmp_path: Path) -> None:
    out, _ = run_cli(0, "init", "suite", "--of", "quick")
    assert suite_files.parse("mine.yaml", out).name == "my-quick"
    path = tmp_path / "new" / "mine.yaml"
    run_cli(0, "init", "suite", path)
    assert suite_files.load(path).name == "mine"
    _, said = run_cli(2, "init", "suite", path)
    assert "--force" in said
    run_cli(0, "init", "suite", path, "--force")
    _, said = run_cli(2, "init", "layout", "--of", "rgw-best")
    assert "did you mean 'rgw-beast'" in said


def test_topologies_lists_every_layout_release_and_parameter(tmp_path: Path) -> None:
    done = weighbridge("topologies", folder=tmp_path, COLUMNS="400", code=0)
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
    wrong = weighbridge("topologies", "swft", folder=tmp_path, code=2)
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
    layouts = ("--layouts", "swift-s3api@swift-2.33")
    done = weighbridge("compare", "--dry-run", *layouts, *lab, folder=tmp_path, COLUMNS="400")
    assert "settings of swift-2.30" in " ".join(done.stdout.split())


def test_render_refuses_a_host_that_the_layout_does_not_use(tmp_path: Path) -> None:
    done = weighbridge("render", "null", "--host", "gatway-1", folder=tmp_path, code=2)
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
    out, _ = run_cli(0, "compare", *layouts, "--dry-run", "--json", "--out", tmp_path)
    assert PlanOutline.model_validate_json(out).advice == (EVEN,)
    out, _ = run_cli(0, "compare", *layouts, "--dry-run", "--out", tmp_path)
    assert EVEN in out


def test_doctor_advises_against_an_even_number_of_mons(
    run_cli: RunCli, two_mons: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "here", lambda _: ())
    monkeypatch.setattr(requirements, "look", lambda *_: ())
    hosts = ("--hardware", "ssh-example", "--layouts")
    out, said = run_cli(0, "doctor", *hosts, str(two_mons), "--json")
    assert DoctorDocument.model_validate_json(out).advice == (EVEN,)
    assert EVEN in said
    out, said = run_cli(0, "doctor", *hosts, "rgw-beast")
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
    done = command("import-cosbench", file, code=0)
    assert suite_files.parse("demo.yaml", done.stdout).workloads[0].workers == (8,)
    assert f"{file}:6: interval '1' is left out" in done.stderr


def test_a_written_suite_can_be_loaded_and_is_never_overwritten(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.yaml"
    done = command("import-cosbench", file, "--out", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert suite_files.load(out).name == "demo"
    again = command("import-cosbench", file, "--out", out, code=2)
    assert "already exists" in again.stderr


def test_a_suite_that_would_measure_something_else_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_text(FILE)
    out = tmp_path / "demo.yaml"
    done = command("import-cosbench", file, "--out", out)
    assert (done.returncode, out.exists()) == (2, False)
    assert "demo.xml:2:25: storage: policy 'POLICY' chooses where objects are stored" in done.stderr
    command("import-cosbench", file, "--out", out, "--partial", code=0)
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
    done = command("import-cosbench", file, *words, code=2)
    assert message in done.stderr


def test_a_missing_file_is_reported() -> None:
    done = command("import-cosbench", "nothing.xml", code=2)
    assert "nothing.xml: no such file" in done.stderr


def completed(*words: str) -> list[str]:
    *before, incomplete = words
    shell = BashComplete(group, {}, "weighbridge", VARIABLE)
    return [one.value for one in shell.get_completions(before, incomplete)]


def test_verbs_and_options_are_completed() -> None:
    assert {"compare", "compare-runs"} <= set(completed("comp"))
    assert "--workers" in completed("compare", "--wo")


def test_names_that_ship_are_completed_also_at_the_end_of_a_list() -> None:
    assert completed("compare", "--suite", "endp") == ["endpoints"]
    assert completed("compare", "--hardware", "lab-c") == ["lab-cpu"]
    assert completed("up", "rgw-beast-t") == ["rgw-beast-tuned"]
    assert "rgw-beast,swift-ec" in completed("compare", "--layouts", "rgw-beast,sw")
    assert completed("compare", "--layouts", "rgw-haproxy,rgw-hap") == []
    assert completed("compare", "--mix", "read,cop") == ["read,copy"]
    assert completed("compare", "--api", "s3,") == ["s3,swift"]
    assert completed("study", "ornl") == ["ornl-2013"]
    assert completed("tune", "apa") == ["apache-mpm"]
    assert completed("init", "suite", "--of", "overl") == ["overload"]


def test_runs_are_completed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    unsafe = ("3 c", "4-$(touch x)", "5-`x`", "6;x", "7-\nplain,x")
    for name in ("1-a", "2-b", "no-run", *unsafe):
        (tmp_path / "runs" / name).mkdir(parents=True)
    for name in ("1-a", "2-b", *unsafe):
        (tmp_path / "runs" / name / "manifest.json").write_text("{}")
    assert completed("resume", "ru") == ["runs/2-b", "runs/1-a"]
    assert completed("report", "runs/1") == ["runs/1-a"]
    assert completed("report", "runs/4") == ["runs/4"], "what the shell completes and quotes itself"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_asks_the_command(run_cli: RunCli, shell: str) -> None:
    script, _ = run_cli(0, "completion", shell)
    assert f"{VARIABLE}={shell}_complete" in script
    if shell == "bash":
        done = subprocess.run(["bash", "-n"], input=script, text=True, check=False)
        assert done.returncode == 0
    if shell == "fish":
        # A list of names has commas.
        assert 'string split -m 1 "," $completion' in script
