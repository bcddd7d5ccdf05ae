"""The lock files name all that is installed, by version and checksums, and no download address."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fake_run import fake_run
from stub_run import Run
from tests.weighbridge.command_line import existing, s3_at
from weighbridge import environment, selection
from weighbridge.cli.machine import doctor_verb
from weighbridge.command import Verbs
from weighbridge.common import errors
from weighbridge.common.errors import EXIT_USAGE, UsageError
from weighbridge.environment import require
from weighbridge.gateways.swift.settings import ProxySettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.run import refuse_ending_keys
from weighbridge.selection import hardware_named, layout_for, layout_named, select
from weighbridge.starting_file import starting_file
from weighbridge.suites import Suite, Workload
from weighbridge.suites import loader as suites
from weighbridge.topologies.auto import Machine
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.hardware import Hardware, HostSpec
from weighbridge.topologies.loader import (
    Planned,
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
OWN = "weighbridge["
WANTED = (
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(
        words
        for name, extra in EXTRAS.items()
        if name not in {"all", "docs", "history", "test"}
        for words in extra
    ),
)
RUN, TEST = ROOT / "requirements.lock", ROOT / "requirements-test.lock"
DOCS, HISTORY = ROOT / "requirements-docs.lock", ROOT / "requirements-history.lock"


def locked(path: Path) -> dict[str, list[tuple[Requirement, list[str]]]]:
    """Each package's requirements in a lock file (one per group of Pythons or platforms), with
    checksums.
    """
    found: dict[str, list[tuple[Requirement, list[str]]]] = {}
    for entry in path.read_text().replace(" \\\n", " ").splitlines():
        words, *sums = re.split(r"\s+--hash=", entry)
        one = Requirement(words)
        found.setdefault(canonicalize_name(one.name), []).append((one, sums))
    return found


@pytest.mark.parametrize("path", [RUN, HISTORY, TEST, DOCS], ids=lambda path: path.stem)
def test_a_lock_file_has_one_version_of_each_package_sums_of_its_files_and_no_address(
    path: Path,
) -> None:
    for entries in locked(path).values():
        for one, sums in entries:
            assert re.fullmatch(r"==[\w.]+", str(one.specifier)), one
            assert sums
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in sums), one
            assert one.url is None
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links|file:|@", path.read_text())


def test_requirements_of_the_project_are_locked_within_their_ranges() -> None:
    own = [words for words in EXTRAS["test"] if not words.startswith(OWN)]
    history = EXTRAS["history"]
    for path, wanted in (
        (RUN, WANTED),
        (HISTORY, history),
        (TEST, (*WANTED, *history, *own)),
        (DOCS, EXTRAS["docs"]),
    ):
        known = locked(path)
        for words in wanted:
            one = Requirement(words)
            versions = [
                next(iter(entry.specifier)).version
                for entry, _ in known[canonicalize_name(one.name)]
            ]
            assert versions
            assert all(version in one.specifier for version in versions), (
                path.name,
                words,
                versions,
            )


@pytest.mark.parametrize("path", [RUN, HISTORY], ids=["run", "history"])
def test_tests_run_with_the_versions_that_users_get(path: Path) -> None:
    tested = locked(TEST)
    for name, entries in locked(path).items():
        # The conditions there differ by what else requires a package.
        assert [(str(one.specifier), sums) for one, sums in entries] == [
            (str(one.specifier), sums) for one, sums in tested[name]
        ]


def test_doctor_names_perf_as_optional_and_does_not_count_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment.shutil, "which", lambda _: None)
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(doctor_verb, ["--hardware", "loopback"], standalone_mode=False)
    assert done.return_value == 0
    assert "perf (optional)" in done.output
    assert "apt install linux-perf" in done.output
    assert "this machine can run loopback" in done.output


HOSTS = Hardware.model_validate({"name": "pretended", "kind": "fake", "hosts": {"client-1": {}}})


@pytest.mark.parametrize("which", ["home", "state"])
def test_a_folder_that_cannot_be_written_is_refused_with_its_variable(
    tmp_path: Path, which: str
) -> None:
    (tmp_path / "file").touch()
    folders = {
        "home": tmp_path / "home",
        "state": tmp_path / "state",
        which: tmp_path / "file" / "below",
    }
    with pytest.raises(UsageError) as refused:
        require(HOSTS, StateFolders(**folders))
    assert (
        f"cannot write to {tmp_path}/file/below, the folder for hosts and images: Not a directory"
        in str(refused.value)
    )
    assert f"Set WEIGHBRIDGE_{which.upper()}" in str(refused.value)
    assert refused.value.exit_code == EXIT_USAGE


def test_writable_folders_are_made_and_left_empty(tmp_path: Path) -> None:
    require(HOSTS, StateFolders(home=tmp_path / "a" / "home", state=tmp_path / "state"))
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} == {
        "a",
        "a/home",
        "state",
    }


def test_how_long_a_run_waits_for_a_quiet_machine_is_a_time_or_refused_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEIGHBRIDGE_PATIENCE", raising=False)
    assert environment.patience_s() == 60
    for given, seconds in (("0s", 0), ("10m", 600)):
        monkeypatch.setenv("WEIGHBRIDGE_PATIENCE", given)
        assert environment.patience_s() == seconds
    monkeypatch.setenv("WEIGHBRIDGE_PATIENCE", "soon")
    with pytest.raises(UsageError, match=r"\$WEIGHBRIDGE_PATIENCE is 'soon'"):
        require(HOSTS, StateFolders(home=tmp_path / "home", state=tmp_path / "state"))


def planned(folder: Path) -> Planned:
    (folder / "mine.yaml").write_text(existing("mine", s3=s3_at("http://127.0.0.1:9")))
    hardware = load_hardware(shipped_hardware()["this-machine"])
    return load_layout(folder / "mine.yaml", hardware)


def test_a_run_that_outlives_its_keys_is_refused_with_the_time_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = planned(tmp_path)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.setenv(f"AWS_{name}", "A")
    monkeypatch.delenv("AWS_CREDENTIAL_EXPIRATION", raising=False)
    refuse_ending_keys([layout], 1e6)  # they do not say when they end
    end = datetime.now(UTC) + timedelta(seconds=1800.4)
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", end.isoformat())
    refuse_ending_keys([layout], 1700)
    with pytest.raises(UsageError) as error:
        refuse_ending_keys([layout], 7200)
    assert error.value.message.startswith("mine: its keys expire in 30:00")
    assert "the run needs an estimated 2:00:00" in error.value.message
    assert "credential_process" in (error.value.advice or "")


STEPS = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
RUST = {"cargo", "rustc"}
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

MODULES = sys.argv[1].split(",")

class Without(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Without())
sys.argv[1:] = sys.argv[2:]
from weighbridge.command import main
main()
"""


SHOW_HELP = """
import click
from weighbridge.command import Verbs, weighbridge

for name in Verbs.VERBS:
    command = weighbridge.get_command(click.Context(weighbridge), name)
    assert command.get_help(click.Context(command))
    print(name)
"""


def without(modules: str, *line: str | Path) -> subprocess.CompletedProcess[str]:
    """The command where these modules cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, modules, *map(str, line)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def copied() -> list[str]:
    return [
        path
        for step in STEPS
        if step.startswith("COPY ") and "--from=" not in step
        for path in step.split()[1:-1]
    ]


def installed() -> set[str]:
    """The Debian packages that the image has, in any stage."""
    found = set()
    for step in STEPS:
        if "apt-get install" in step:
            words = step.partition("apt-get install")[2].partition("&&")[0].split()
            found |= {word for word in words if not word.startswith("-")}
    return found


def test_what_the_dockerfile_copies_is_there_and_is_all_that_a_package_is_built_of() -> None:
    assert all((ROOT / path).exists() for path in copied())
    rooms = {path.name for path in (ROOT / "weighbridge").iterdir() if path.is_symlink()}
    assert {*rooms, "weighbridge", "pyproject.toml", "MANIFEST.in"} <= {*copied()}


def test_the_dockerfile_installs_what_setup_does() -> None:
    setup = (ROOT / "scripts" / "setup.sh").read_text().partition('if [ "$purpose" = test ]')[0]
    wanted = {words.split()[1] for words in re.findall(r"^want (.+)$", setup, re.MULTILINE)}
    wanted |= {*re.findall(r'wanted="\$wanted ([\w-]+)"', setup)}
    assert "mmdebstrap" in wanted
    assert "debian-archive-keyring" in wanted
    assert installed() == wanted | RUST | {"python3", "python3-venv", "ca-certificates"}


def test_the_reference_and_the_manual_page_are_of_todays_records_help_and_files() -> None:
    names = ("reference", "verbs", "layouts", "man")
    # Their own process: click keeps what a help was last shown with.
    code = (
        "import runpy, sys\n"
        "for path in sys.argv[1:]:\n"
        "    runpy.run_path(path, run_name='__main__')\n"
        "    print(end='\\0')\n"
    )
    argv = [sys.executable, "-c", code, *(ROOT / "scripts" / f"{name}.py" for name in names)]
    made = subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout.decode()
    for name, text in zip(names, made.split("\0")[:-1], strict=True):
        page = "weighbridge.1" if name == "man" else f"{name}.md"
        assert text == (ROOT / "docs" / page).read_text(), f"{page}: run `make reference man`"


def test_rust_is_as_old_as_the_oldest_compiler_that_setup_takes() -> None:
    """Conditions after `if let`: compilers before 1.88 refuse them, and newer ones say nothing."""
    setup = (ROOT / "scripts" / "setup.sh").read_text()
    (least,) = re.findall(r"^least_rust=(\S+)", setup, re.MULTILINE)
    assert least == "1.85"
    chain = re.compile(r"\b(?:if|while)\s+let\s(?:[^{}]|\{[^{}\n]*\})*?\s&&\s|\s&&\s+let\s")
    sources = [
        path
        for crate in ("drivers/engine", "gateways/apache/responder", "topologies/lab/vdisk")
        for path in (ROOT / crate).rglob("*.rs")
        if "target" not in path.parts
    ]
    assert sources
    assert not [str(path) for path in sources if chain.search(path.read_text())]


def test_each_module_of_an_extra_comes_with_it() -> None:
    packages = metadata.packages_distributions()
    for module, (extra, _) in errors.EXTRA_OF.items():
        names = {canonicalize_name(Requirement(words).name) for words in EXTRAS[extra]}
        assert names & {canonicalize_name(name) for name in packages[module]}, module


def test_every_requirement_that_no_client_has_is_known_by_its_module() -> None:
    packages = metadata.packages_distributions()
    known = {canonicalize_name(name) for module in errors.EXTRA_OF for name in packages[module]}
    names = Requirement(*EXTRAS["all"]).extras
    for words in (words for name in names for words in EXTRAS[name]):
        assert canonicalize_name(Requirement(words).name) in known


@pytest.mark.parametrize(
    ("modules", "line", "extra"),
    [
        ("duckdb", ["sql", "select 1", "RUN"], "sql"),
        ("pptx", ["slides", "."], "slides"),
        ("otava", ["history", "RUN"], "history"),
        ("vl_convert", ["report", "RUN"], "report"),
    ],
)
@pytest.mark.long
def test_a_verb_without_its_extra_says_what_to_install(
    modules: str, line: list[str], extra: str, tmp_path: Path
) -> None:
    """The target of make that it names installs a lock file that has the extra."""
    run = str(fake_run(tmp_path, repeats=1).folder) if "RUN" in line else ""
    done = without(modules, *(run if word == "RUN" else word for word in line))
    assert done.returncode == 2, done.stderr
    assert f'pip install "$(echo dist/weighbridge-*.whl)[{extra}]"' in done.stderr
    (target,) = re.findall(r"Run `make ([\w-]+)` in a checkout", done.stderr)
    (recipe,) = re.findall(rf"(?m)^{target}:.*\n(.*)$", (ROOT / "Makefile").read_text())
    lock = re.search(r"requirements[\w-]*\.lock", recipe)
    names = locked(ROOT / lock[0] if lock else RUN)
    assert {canonicalize_name(Requirement(words).name) for words in EXTRAS[extra]} <= {*names}
    # No index has a package of this name: whoever takes the name would be installed.
    assert "install weighbridge" not in done.stderr
    assert "install 'weighbridge" not in done.stderr
    assert "internal error" not in done.stderr


def test_a_thread_that_dies_is_said_at_once_and_is_a_fault_of_the_suite() -> None:
    code = (
        "import sys, threading\nfrom weighbridge import command\n"
        "def verb(**_):\n"
        "    thread = threading.Thread(target=lambda: [].pop())\n"
        "    thread.start()\n    thread.join()\n    print('measured')\n"
        "command.weighbridge.main = verb\ncommand.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "measured\n")
    assert done.stderr.startswith("weighbridge: internal error in <string>:4: IndexError")
    assert "Traceback" not in done.stderr


def test_another_module_that_is_missing_is_a_fault_of_the_suite() -> None:
    done = without("yaml", "topologies")
    assert done.returncode == 5
    assert "internal error" in done.stderr


def test_no_verb_needs_an_extra_to_show_its_help() -> None:
    code = WITHOUT.partition("from weighbridge.command")[0] + SHOW_HELP
    done = subprocess.run(
        [sys.executable, "-c", code, ",".join(errors.EXTRA_OF)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == list(Verbs.VERBS)


HARDWARE = {"existing": "this-machine", "null": "loopback"}


def uncommented(text: str) -> str:
    """The text with its defaults, except those of keys that must be given."""
    head, _, body = text.partition("null` means not set.\n")
    return head + "\n" + re.sub(r"(?m)^( *)# ([a-z_]+: )", r"\1\2", body)


@pytest.mark.parametrize("defaults", [False, True])
@pytest.mark.parametrize("name", list(suites.shipped()))
def test_a_suite_to_edit_is_the_one_that_it_starts_from(
    tmp_path: Path, name: str, defaults: bool
) -> None:
    text = starting_file("suite", name, tmp_path / "Mine too.yaml")
    suite = suites.parse("mine.yaml", uncommented(text) if defaults else text)
    assert suite.name == "mine-too"
    base = suites.load(suites.shipped()[name])
    assert suite.model_copy(update={"name": base.name}) == base


@pytest.mark.parametrize("name", list(shipped_hardware()))
def test_hardware_to_edit_is_that_which_it_starts_from(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(starting_file("hardware", name, path))
    base = load_hardware(shipped_hardware()[name])
    assert load_hardware(path).model_copy(update={"name": base.name}) == base


@pytest.mark.parametrize("name", list(shipped_layouts()))
def test_a_layout_to_edit_is_the_one_that_it_starts_from(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.yaml"
    hardware = load_hardware(shipped_hardware()[HARDWARE.get(name, "lab-cpu")])
    path.write_text(starting_file("layout", name, path))
    base = load_layout(shipped_layouts()[name], hardware).layout
    layout = load_layout(path, hardware).layout
    assert layout.model_copy(update={"name": base.name}) == base


def test_every_key_of_a_suite_and_of_hosts_is_there_with_what_it_is_for() -> None:
    suite, hardware = starting_file("suite"), starting_file("hardware")
    for text, model in ((suite, Suite), (suite, Workload), (hardware, HostSpec)):
        for key in model.model_fields:
            assert re.search(rf"(?m)^ *(?:- )?(?:# )?{key}:", text), key
    assert "# After how long a request is given up, in seconds; histograms resolve" in suite
    assert "# timeout: 60.0" in suite
    assert "For the lab: its own CPUs, such as `2-3,5`" in hardware


def test_what_the_programs_of_all_layouts_refuse_is_reported_at_once_and_nothing_stays(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    for name, gateway in run.gateways.items():
        gateway.unknown_option = f"{name}_threads"
    with pytest.raises(UsageError) as error:
        selection.check(run.planned, run.hardware, run.place, print)
    assert "rgw-a: no option 'rgw-a_threads'" in str(error.value)
    assert "swift-b: no option 'swift-b_threads'" in str(error.value)
    assert not list(run.place.deployments.iterdir())


def test_checking_starts_no_daemon(tmp_path: Path) -> None:
    run = Run(tmp_path)
    selection.check(run.planned, run.hardware, run.place, print)
    assert [gateway.did for gateway in run.gateways.values()] == [["preflight"], ["preflight"]]


def test_without_a_name_the_hardware_is_made_from_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Machine(cores=((0,), (1,)), memory_bytes=24 * 2**30, free_bytes=100 * 2**30)
    homes: list[Path] = []

    def looked(home: Path) -> Machine:
        homes.append(home)
        return here

    monkeypatch.setenv("WEIGHBRIDGE_HOME", str(tmp_path))
    monkeypatch.setattr(selection.auto, "this_machine", looked)
    chosen = selection.select("quick", (), None)
    assert chosen.hardware.name == "auto-2"
    assert chosen.hardware == selection.hardware_named("auto") == selection.hardware_named("auto-2")
    assert set(homes) == {tmp_path}
    with pytest.raises(UsageError, match=r"auto-4 was made from another machine; .* is auto-2"):
        selection.hardware_named("auto-4")
    assert [one.layout.name for one in chosen.layouts] == ["rgw-beast", "swift-s3api"]


def test_a_machine_too_small_for_auto_is_refused_with_the_faults_of_other_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Machine(cores=((0,),), memory_bytes=4 * 2**30, free_bytes=100 * 2**30)
    monkeypatch.setattr(selection.auto, "this_machine", lambda home: here)
    with pytest.raises(UsageError) as error:
        selection.select("quick", ("rgw-best",), None)
    assert "hardware auto needs a machine with 8.2 GiB of memory" in str(error.value)
    assert "no layout 'rgw-best'" in str(error.value)


def test_swift_waits_as_swift_itself_where_something_dies_unless_its_name_says_otherwise() -> None:
    hardware = hardware_named("lab-cpu")

    def proxy(one: Planned) -> dict[str, object]:
        gateway = one.gateway
        assert isinstance(gateway, Swift)
        return gateway.settings.proxy.model_dump()

    broken = suites.load(suites.find("degrade-lab"))
    shipped = layout_named("swift", hardware)
    assert layout_for(suites.load(suites.find("quick")), "swift", hardware).layout == shipped.layout
    faulty = layout_for(broken, "swift", hardware)
    assert proxy(shipped)["conn_timeout"] == 5
    own = ProxySettings().model_dump()
    assert proxy(faulty) == own
    assert (faulty.layout.name, faulty.layout.release) == ("swift", shipped.layout.release)
    named = "swift@swift-2.35:proxy.conn_timeout=3s:proxy.error_suppression={limit: 7}"
    mine = layout_for(broken, named, hardware)
    assert mine.layout.name == layout_named(named, hardware).layout.name
    assert proxy(mine) == {
        **own,
        "conn_timeout": 3,
        "error_suppression": {"limit": 7, "interval": 60},
    }
    beast = layout_named("rgw-beast", hardware)
    assert layout_for(broken, "rgw-beast", hardware).layout == beast.layout


def test_a_suite_with_a_fault_chooses_such_layouts() -> None:
    chosen = select("degrade-lab", ["swift"], "lab-cpu").layouts[0].layout
    assert chosen.settings["proxy"]["conn_timeout"] == "500ms"
    plain = select("quick", ["swift"], "lab-cpu").layouts[0].layout
    assert plain.settings["proxy"]["conn_timeout"] == "5s"
