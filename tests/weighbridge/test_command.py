import errno
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click import Command
from click.testing import CliRunner

from stub_run import Run
from tests.weighbridge import command_line
from tests.weighbridge.command_line import weighbridge
from weighbridge.cli.compare import compare_verb, resume_verb
from weighbridge.command import Verbs
from weighbridge.common.errors import MissingPrerequisite, UsageError
from weighbridge.conductor.opening import settings_of
from weighbridge.drivers.cosbench import installation
from weighbridge.drivers.cosbench.site import CosbenchSite
from weighbridge.environment import place

pytestmark = pytest.mark.long  # starts the command as a program in every test


def test_help_lists_every_verb_and_every_verb_has_help(tmp_path: Path) -> None:
    listed = weighbridge("--help", folder=tmp_path, code=0)
    for verb in Verbs.VERBS:
        assert verb in listed.stdout
        own = weighbridge(verb, "--help", folder=tmp_path, code=0)
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


WRONG_LAYOUT = """name: l
about: x
gateway: "null"
release: engin
place: {target: gateway-1}
"""


def test_the_faults_of_all_files_are_reported_at_once_and_nothing_is_started(
    tmp_path: Path,
) -> None:
    suite, layout = tmp_path / "s.yaml", tmp_path / "l.yaml"
    suite.write_text("name: s\nabout: x\nworkloads: []\nrepeets: 3\n")
    layout.write_text(WRONG_LAYOUT)
    files = ("--suite", suite, "--layouts", layout, "--hardware", "loopback")
    done = weighbridge("compare", *files, "--out", tmp_path / "runs", folder=tmp_path, code=2)
    assert f"{suite}:3:12: workloads:" in done.stderr
    assert f"{suite}:4:1: unknown key 'repeets' (did you mean 'repeats'?)" in done.stderr
    assert f"{layout}:4:10: no release 'engin' of null (did you mean 'engine'?)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compair"], "did you mean 'compare'"),
        (["compare", "--profile", "small-read:16"], "--perf WORKLOAD:WORKERS"),
        (
            ["compare", "--hardware", "ssh-example", "--perf", "small-read", "--layouts", "swift"],
            "--perf works on containers of this machine",
        ),
        (
            ["compare", "--layouts", "null", "--driver", "cosbench", "--hardware", "loopback"],
            "set COSBENCH_HOME",
        ),
        (["compare", "--repeats", "0"], "repeats"),
        (["compare", "--hardware", "loopback", "--layouts", ""], "'--layouts' is empty"),
        (["compare", "--hardware", "loopback", "--layouts", " , "], "'--layouts': it is empty"),
        (["compare", "--suite", ""], "'--suite' is empty"),
        (["compare", "--workers", ","], "'--workers': it is empty"),
        (["compare", "--layers", " , "], "'--layers': it is empty"),
        (["compare", "--out="], "'--out' is empty"),
        (["render", ""], "an argument is empty"),
        (["render", "null", "--hardware", ""], "'--hardware' is empty"),
        (["down", "--hardware", ""], "'--hardware' is empty"),
        (["capabilities", "swift", "--api", ","], "'--api': it is empty"),
        (["doctor", "--layouts", ""], "'--layouts' is empty"),
        (["doctor", "--hardware", "lab-cpu", "--layouts", "swift"], "is for real hosts"),
        (["study", "ornl-2013", "--dry-run", "--variants", ","], "'--variants': it is empty"),
        (["compare", "--no-such-option"], "No such option"),
        (["up"], "Missing argument"),
        (["up", "null", "--hardware", "loopback"], "nothing would be left running"),
        (["up", "existing", "--hardware", "this-machine"], "there is nothing to start"),
        (["exec", "client-1", "--", "true"], "no host 'client-1' is running"),
        (["report", "no-such-run"], "does not exist"),
        (["null-target", "--port", "99999"], "port"),
        (["null-target", "--host", "no-host.invalid"], "--host"),
        (["null-target", "--host", "192.0.2.1"], "192.0.2.1:8080"),
        (["runs", "x" * 5000], "File name too long"),
        (["history", "x" * 5000], "File name too long"),
    ],
)
def test_bad_usage_is_refused_with_exit_code_2(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = weighbridge(*arguments, folder=tmp_path, code=2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_names_are_refused_at_once_with_the_faults_of_existing_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "l.yaml").write_text(WRONG_LAYOUT)
    named = f"rgw-best,swfit,{tmp_path}/l.yaml,rgw-beast@"
    for words, faults in (
        (
            ("--suite", "quik", "--layouts", named, "--hardware", "loopback"),
            ("'rgw-beast'", "'swift'", "'quick'", "'engine'", "@ needs a release"),
        ),
        (
            ("--layouts", named, "--hardware", "lab-cp"),
            ("no layout 'rgw-best'", "no layout 'swfit'", "no hardware 'lab-cp'", "'engine'"),
        ),
    ):
        done = weighbridge("compare", *words, folder=tmp_path, code=2)
        assert [fault for fault in faults if fault not in done.stderr] == []


def test_a_run_of_more_than_a_year_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "name: s\nabout: x\nworkloads:\n  - name: w\n    objects: {size: 10MB, containers: 1000, "
        "per_container: 100000}\n"
        "    operations: {read: 1}\n    workers: [1]\n    runtime: 1s\n"
    )
    asked = ("--suite", tmp_path / "s.yaml", "--layouts", "null", "--hardware", "loopback")
    more = ("--repeats", "5", "--no-aa", "--out", tmp_path / "runs")
    done = weighbridge("compare", *asked, *more, folder=tmp_path, code=2)
    assert re.search(r"would take an estimated [0-9,]+ days; the limit is 366", done.stderr)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("verb", ["doctor", "topologies", "status", "--help"])
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_with_few_characters_shows_what_it_can(
    tmp_path: Path, verb: str, encoding: str
) -> None:
    done = weighbridge(verb, folder=tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode in (0, 2)
    assert done.stdout
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("verb", ["doctor", "status", "down"])
def test_an_unknown_home_folder_is_reported(
    monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., tuple[str, str]], verb: str
) -> None:
    def unknown() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("WEIGHBRIDGE_HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr(Path, "home", unknown)
    _, said = run_cli(2, verb)
    why = "is not known: Could not determine home directory."
    assert f"{why}\nSet WEIGHBRIDGE_HOME to a folder" in said


@pytest.mark.skipif(
    os.geteuid() != 0, reason="root can become somebody whose home folder is closed to them"
)
@pytest.mark.parametrize("below", ["", "home"])
def test_an_unreadable_home_folder_is_reported(monkeypatch: pytest.MonkeyPatch, below: str) -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        closed = Path(folder) / "closed"
        closed.mkdir(mode=0o700)
        Path(folder).chmod(0o755)
        monkeypatch.setenv("WEIGHBRIDGE_HOME", str(closed / below))
        os.seteuid(54321)
        try:
            said = rf"^{closed}.*\nSet WEIGHBRIDGE_HOME to a folder"
            with pytest.raises(MissingPrerequisite, match=said):
                place()
        finally:
            os.seteuid(0)


def somebody_elses(folder: Path) -> None:
    os.chown(folder, 54321, 54321)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("variable", ["WEIGHBRIDGE_HOME", "WEIGHBRIDGE_STATE"])
@pytest.mark.parametrize(
    ("spoil", "below"),
    [
        (somebody_elses, ""),
        (somebody_elses, "own"),
        (lambda folder: folder.chmod(0o777), ""),
        (lambda folder: folder.chmod(0o1777), ""),
        (lambda folder: folder.chmod(0o770), ""),
        (lambda folder: folder.chmod(0o777), "own"),
        (lambda folder: (folder.rename(folder.with_name("real")), folder.symlink_to("real"),
                         somebody_elses(folder)), "own"),
        (lambda folder: (folder.rename(folder.with_name("real")),
                         folder.with_name("open").mkdir(), folder.with_name("open").chmod(0o777),
                         (folder.parent / "open/l").symlink_to("../real"),
                         folder.symlink_to("open/l")), "own"),
    ],
    ids=["theirs", "in theirs", "open", "open and sticky", "group", "in an open one", "by a link",
         "by a link to a link in an open one"],
)  # fmt: skip
def test_a_folder_that_somebody_else_can_fill_is_neither_obeyed_nor_started_from(
    tmp_path: Path, variable: str, spoil: Callable[[Path], object], below: str
) -> None:
    folder = tmp_path / "given"
    (folder / "own").mkdir(parents=True)
    spoil(folder)
    for verb in ("status", "down"):
        more = {variable: str(folder / below)}
        done = command_line.weighbridge(verb, folder=tmp_path, **more, code=2)
        says = rf"{folder / below}: others could write to it: .* with mode \d{{4}}\nSet {variable}"
        assert re.search(says, done.stderr), done.stderr


def test_a_folder_of_ones_own_in_the_temporary_folder_is_used(tmp_path: Path) -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        command_line.weighbridge("status", folder=Path(folder), code=0)


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EACCES, "{why}\nThis machine refuses access: check owner, mode and mount."),
        (errno.EROFS, "{why}\nThis machine refuses access: check owner, mode and mount."),
        (errno.ENOSPC, "the disk is full ({why})\nMake room"),
        (errno.EDQUOT, "the disk is full ({why})\nMake room"),
        (errno.EFBIG, "the disk is full ({why})\nMake room"),
    ],
)
def test_a_file_that_may_not_be_used_and_a_full_disk_are_reported_with_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., tuple[str, str]], number: int, says: str
) -> None:
    error = OSError(number, os.strerror(number), "/x/y")
    monkeypatch.setattr("weighbridge.running.print_running", failing(error))
    _, said = run_cli(3, "status")
    assert f"/x/y: {says.format(why=os.strerror(number))}" in said


@pytest.mark.parametrize("linked", [False, True])
def test_a_cosbench_that_hosts_of_the_lab_do_not_see_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    monkeypatch.setattr(installation, "check", lambda home: None)
    with TemporaryDirectory(dir="/tmp") as folder:
        home = Path(folder)
        if linked:
            (tmp_path / "elsewhere").symlink_to(home)
            monkeypatch.setattr("weighbridge.topologies.lab.bundle.OWN_FOLDERS", (folder,))
            home = tmp_path / "elsewhere"
        monkeypatch.setenv("COSBENCH_HOME", str(home))
        why = "client hosts of the lab do not see it: they have their own /tmp"
        with pytest.raises(UsageError, match=why) as refused:
            settings_of(["cosbench"], {}, lab=True)
        assert str(home) in str(refused.value)
        assert refused.value.exit_code == 2
        site = settings_of(["cosbench"], {}, lab=False)["cosbench"]
        assert isinstance(site, CosbenchSite)
        assert site.home == str(home)


@pytest.mark.parametrize("label", ["--all", None, "its own"])
def test_down_leaves_what_a_living_process_uses_and_names_both(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., tuple[str, str]],
    label: str | None,
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_HOME", str(run.place.home))
    monkeypatch.setenv("WEIGHBRIDGE_STATE", str(run.place.state))
    with run.deployed() as deployment:
        if label == "--all":
            (run.place.deployments / "left-1").mkdir()
        named = [] if label is None else [label if label == "--all" else deployment.label]
        printed, said = run_cli(2, "down", *named)
        user = f"process {os.getpid()} has been using it since"
        assert f"{deployment.label} was left alone: {user}" in said
        assert ("removed left-1: 1 folder" in printed) == (label == "--all")
        assert [path.name for path in run.place.deployments.iterdir()] == [deployment.label]
        assert deployment.hosts["gateway-1"].alive("stub")


@pytest.mark.parametrize("verb", [compare_verb, resume_verb])
@pytest.mark.parametrize("driver", [(), ("--driver", "locust")])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--cosbench", "http://user:planted@store.example:19088/controller"),
        ("--cosbench", "http://store.example:19088/controller?username=user&password=planted"),
        ("--cosbench-archive", "ssh://root:planted@store.example/opt/cosbench/archive"),
    ],
)
def test_no_password_is_taken_from_the_command_line_which_is_in_the_report(
    verb: Command, driver: tuple[str, ...], option: str, value: str, tmp_path: Path
) -> None:
    # There is no such suite: if the option is accepted after all, nothing is started.
    suite = ["--suite", str(tmp_path / "none.yaml"), *driver]
    words = [str(tmp_path)] if verb is resume_verb else suite
    done = CliRunner().invoke(verb, [*words, option, value])
    assert isinstance(done.exception, UsageError), done.output
    assert str(done.exception).startswith(f"{option}: ")
    assert "planted" not in str(done.exception) + done.output


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "--s3", "a=URL"),
        ("compare", "--s3", "URL"),
        ("compare", "--swift", "a=URL"),
        ("compare", "--hardware", "URL"),
        ("compare", "--layouts", "URL"),
        ("compare", "--influx", "URL"),
        ("compare", "--repeats", "URL"),
        ("compare", "URL"),
        ("clean", "--s3", "URL"),
        ("report", "URL"),
        ("null-target", "--port", "URL"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "url",
    ["http://h?X-Amz-Signature=planted", "me:pla/nted@h", "http://h/b#planted", "//h:1:planted"],
)
def test_a_refusal_does_not_repeat_what_may_be_a_secret_of_a_url(
    tmp_path: Path, words: tuple[str, ...], url: str
) -> None:
    given = [word.replace("URL", url) for word in words]
    done = command_line.weighbridge(*given, folder=tmp_path, code=2)
    assert not re.search("planted|nted", done.stdout + done.stderr), done.stderr


def failing(error: Exception) -> Callable[..., None]:
    def fails(*_: object) -> None:
        raise error

    return fails


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError("by\nnothing"), KeyError("x"), MemoryError(), RecursionError(), OSError()],
)
def test_what_nobody_foresaw_is_one_line_a_file_with_details_and_exit_code_5(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., tuple[str, str]],
    error: Exception,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("weighbridge.running.print_running", failing(error))
    _, said = run_cli(5, "status")
    (details,) = tmp_path.glob("weighbridge-*.txt")
    assert said.startswith("weighbridge: internal error in test_command.py:")
    assert said.count("\n") == 1
    assert f"details are in {details}" in said
    assert "Traceback" in details.read_text()
    assert details.stat().st_mode & 0o077 == 0


def test_an_internal_error_is_reported_even_if_its_details_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., tuple[str, str]]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    fails = failing(ZeroDivisionError("by nothing"))
    monkeypatch.setattr("weighbridge.running.print_running", fails)
    _, said = run_cli(5, "status")
    assert "ZeroDivisionError: by nothing; its details could not be written: No such file" in said


def started(*argv: str, folder: Path, stdout: int = subprocess.PIPE, **more: str) -> Any:
    env, pipe = command_line.environment(folder, **more), subprocess.PIPE
    return subprocess.run(
        argv, stdout=stdout, stderr=pipe, text=True, check=False, timeout=120, env=env
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("status > /dev/full", 3, "the disk is full"),
        ("nonsense 2> /dev/full", 2, ""),
        ("topologies | true", 141, ""),
    ],
)
def test_an_output_that_is_full_or_not_read_has_its_own_exit_code(
    tmp_path: Path, words: str, code: int, said: str
) -> None:
    line = f"{sys.executable} -m weighbridge {words}; exit ${{PIPESTATUS[0]}}"
    done = started("bash", "-c", f"unset PYTHONUNBUFFERED; {line}", folder=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert not re.search("Traceback|Exception ignored", done.stderr)


@pytest.mark.parametrize(
    "module",
    [
        *("weighbridge.command", "click", "pydantic"),
        pytest.param("weighbridge.cli.compare", marks=pytest.mark.test_all),
        pytest.param("rich.live", marks=pytest.mark.test_all),
    ],
)
def test_an_interrupt_in_the_middle_of_imports_ends_the_command_without_a_traceback(
    tmp_path: Path, module: str
) -> None:
    program = (
        "import os, runpy, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "runpy.run_module('weighbridge', run_name='__main__', alter_sys=True)\n"
    )
    argv = (sys.executable, "-c", program, "compare", "--dry-run")
    done = started(*argv, folder=tmp_path, WEIGHBRIDGE_PATIENCE="0s")
    # Before the verb begins, the signal itself ends it.
    assert done.returncode in (-signal.SIGINT, 130), done
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_half_written_file(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import os, signal\n"
        f"signal.signal({number}, signal.SIG_DFL)\n"
        f"os.fsync = lambda _: os.kill(os.getpid(), {number})\n"
        "from weighbridge.command import main; main()"
    )
    file = tmp_path / "new" / "suite.yaml"
    done = started(sys.executable, "-c", program, "init", "suite", str(file), folder=tmp_path)
    assert (done.returncode, done.stderr) == (128 + number, "")
    assert not list(file.parent.iterdir())


@pytest.mark.parametrize(
    ("path", "called"),
    [("", "'a b/weighbridge'"), pytest.param("a b", "weighbridge", marks=pytest.mark.test_all)],
)
def test_an_advised_command_works_as_it_is_printed(
    folder: Path, tmp_path: Path, path: str, called: str
) -> None:
    program = tmp_path / "a b" / "weighbridge"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom weighbridge.__main__ import main\nmain()\n")
    program.chmod(0o755)
    env = command_line.environment(tmp_path, PATH=f"{path and tmp_path / path}:/usr/bin:/bin")

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        words = ["sh", "-c", line]
        return subprocess.run(
            words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120
        )

    shutil.rmtree(folder / "derived", ignore_errors=True)
    said = shell(f"{called} open {folder}")
    assert said.returncode == 2, said
    advised = said.stderr.partition("Make it: ")[2].strip()
    assert advised == f"{called} report {folder}"
    assert shell(f"{advised} --no-charts").returncode == 0
    assert shell(f"{called} open {folder}").returncode == 0


def test_a_terminal_that_is_gone_is_a_hangup(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.close(ours)
    argv = ("env", "--default-signal=HUP", sys.executable, "-m", "weighbridge", "status")
    done = started(*argv, folder=tmp_path, stdout=theirs)  # also under nohup
    os.close(theirs)
    assert (done.returncode, done.stderr) == (128 + signal.SIGHUP, "")
