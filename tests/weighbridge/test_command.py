import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click import Command
from click.testing import CliRunner

from drivers.cosbench import installation
from ground.errors import UsageError
from topologies.loader import shipped_layouts
from weighbridge.command import Verbs
from weighbridge.verbs import compare, resume
from weighbridge.verbs.compare import cosbench_site


def weighbridge(*arguments: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weighbridge", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "WEIGHBRIDGE_HOME": str(folder / "home"), "WEIGHBRIDGE_STATE": str(folder / "state"), **env},
    )


def test_help_lists_every_verb_and_every_verb_has_help_of_its_own(tmp_path: Path) -> None:
    listed = weighbridge("--help", folder=tmp_path)
    assert listed.returncode == 0
    for verb in Verbs.VERBS:
        assert verb in listed.stdout
        own = weighbridge(verb, "--help", folder=tmp_path)
        assert own.returncode == 0, own.stderr
        assert "Usage:" in own.stdout


def test_help_imports_no_heavy_library() -> None:
    heavy = {"pydantic", "numpy", "altair", "locust", "rich", "boto3", "yaml"}
    code = (
        "import sys\nfrom weighbridge.command import main\nsys.argv = ['weighbridge', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_an_unknown_verb_is_answered_with_the_closest_known_one(tmp_path: Path) -> None:
    done = weighbridge("compair", folder=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'compare'" in done.stderr


def test_the_faults_of_all_files_are_told_at_once_and_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s\nabout: x\nworkloads: []\nrepeets: 3\n")
    (tmp_path / "l.yaml").write_text('name: l\nabout: x\ngateway: "null"\nrelease: engin\nplace: {target: gateway-1}\n')
    done = weighbridge(
        "compare", "--suite", str(tmp_path / "s.yaml"), "--layouts", f"{tmp_path}/l.yaml", "--hardware", "loopback",
        "--out", str(tmp_path / "runs"), folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"{tmp_path}/s.yaml:3:12: workloads:" in done.stderr
    assert f"{tmp_path}/s.yaml:4:1: unknown key 'repeets' (did you mean 'repeats'?)" in done.stderr
    assert f"{tmp_path}/l.yaml:4:10: no release 'engin' of null (did you mean 'engine'?)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "--suite", "quik"], "did you mean 'quick'"),
        (["compare", "--layouts", "rgw-beest"], "did you mean 'rgw-beast'"),
        (["compare", "--hardware", "lab-smal"], "did you mean 'lab-small'"),
        (["compare", "--layouts", "null", "--driver", "cosbench", "--hardware", "loopback"], "set COSBENCH_HOME"),
        (["compare", "--repeats", "0"], "repeats"),
        (["compare", "--no-such-option"], "No such option"),
        (["up"], "Missing argument"),
        (["up", "null", "--hardware", "loopback"], "nothing would be left standing"),
        (["up", "existing", "--hardware", "this-machine"], "there is nothing to stand up"),
        (["exec", "client-1", "--", "true"], "no host 'client-1' stands"),
        (["report", "no-such-run"], "does not exist"),
        (["null-target", "--port", "99999"], "port"),
    ],
)
def test_bad_usage_is_refused_in_words_with_exit_code_two(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = weighbridge(*arguments, folder=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("linked", [False, True])
def test_a_cosbench_that_hosts_of_the_lab_do_not_see_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    monkeypatch.setattr(installation, "check", lambda home: None)
    with TemporaryDirectory(dir="/tmp") as folder:
        home = Path(folder)
        if linked:
            (tmp_path / "elsewhere").symlink_to(home)
            monkeypatch.setattr("topologies.lab.bundle.OWN_FOLDERS", (folder,))
            home = tmp_path / "elsewhere"
        monkeypatch.setenv("COSBENCH_HOME", str(home))
        with pytest.raises(UsageError, match=r"client hosts of the lab do not see it: they have /tmp.* of their own") as refused:
            cosbench_site(None, None, lab=True)
        assert str(home) in str(refused.value)
        assert refused.value.exit_code == 2
        site = cosbench_site(None, None, lab=False)
        assert site.home == str(home)


def test_status_says_when_nothing_stands(tmp_path: Path) -> None:
    done = weighbridge("status", folder=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "nothing stands")


def test_topologies_lists_every_layout_release_and_parameter(tmp_path: Path) -> None:
    done = weighbridge("topologies", folder=tmp_path, COLUMNS="400")
    assert done.returncode == 0, done.stderr
    for name in shipped_layouts():
        assert name in done.stdout
    for word in ("ceph-16", "swift-2.30", "radosgw.threads", "pools.replicas", "object.keep_cache_private"):
        assert word in done.stdout


def test_topologies_of_one_gateway_leaves_the_others_out(tmp_path: Path) -> None:
    done = weighbridge("topologies", "swift-s3api", folder=tmp_path, COLUMNS="400")
    assert "keep_cache_private" in done.stdout
    assert "radosgw" not in done.stdout.replace("rgw-beast@ceph-18:radosgw.threads=64", "")
    wrong = weighbridge("topologies", "swft", folder=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean 'swift'" in wrong.stderr


def test_topologies_offers_a_layout_at_no_release_that_lacks_its_front_end(tmp_path: Path) -> None:
    listed = weighbridge("topologies", "rgw", folder=tmp_path, COLUMNS="400").stdout.splitlines()
    beast, civetweb = (next(line for line in listed if f" {name} " in line) for name in ("rgw-beast", "rgw-civetweb"))
    assert "ceph-14" in civetweb
    assert "ceph-18" in beast
    assert "ceph-18" not in civetweb


def test_render_of_a_layout_without_files_says_so(tmp_path: Path) -> None:
    done = weighbridge("render", "null", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "has no configuration files" in done.stderr


def test_render_refuses_a_host_that_the_layout_does_not_use(tmp_path: Path) -> None:
    done = weighbridge("render", "null", "--host", "gatway-1", folder=tmp_path)
    assert done.returncode == 2
    assert "null has nothing on a host 'gatway-1' (did you mean 'gateway-1'?)" in done.stderr


@pytest.mark.parametrize("verb", [compare.command, resume.command])
@pytest.mark.parametrize("driver", [(), ("--driver", "locust")])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--cosbench", "http://user:planted@store.example:19088/controller"),
        ("--cosbench", "http://store.example:19088/controller?username=user&password=planted"),
        ("--cosbench-archive", "ssh://root:planted@store.example/opt/cosbench/archive"),
    ],
)
def test_no_password_is_taken_from_the_command_line_which_stands_in_the_report(
    verb: Command, driver: tuple[str, ...], option: str, value: str, tmp_path: Path
) -> None:
    # There is no such suite: should the option be taken after all, nothing is started.
    words = [str(tmp_path)] if verb is resume.command else ["--suite", str(tmp_path / "none.yaml"), *driver]
    done = CliRunner().invoke(verb, [*words, option, value])
    assert isinstance(done.exception, UsageError), done.output
    assert str(done.exception).startswith(f"{option}: ")
    assert "planted" not in str(done.exception) + done.output
