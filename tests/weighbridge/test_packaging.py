"""What a package is made of: the Dockerfile, the manual page, and the extras."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fake_run import fake_run
from weighbridge.command import Verbs
from weighbridge.common import errors

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
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


@pytest.mark.parametrize(
    ("script", "page"),
    [
        ("reference", "reference.md"),
        ("verbs", "verbs.md"),
        ("layouts", "layouts.md"),
        ("man", "weighbridge.1"),
    ],
)
def test_the_reference_and_the_manual_page_are_of_todays_records_help_and_files(
    script: str, page: str
) -> None:
    argv = [sys.executable, ROOT / "scripts" / f"{script}.py"]
    made = subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout.decode()
    assert made == (ROOT / "docs" / page).read_text(), "run `make reference man`"


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
        ("asyncssh", ["doctor", "--hardware", "ssh-example"], "hosts"),
    ],
)
def test_a_verb_without_its_extra_says_what_to_install(
    modules: str, line: list[str], extra: str, tmp_path: Path
) -> None:
    run = str(fake_run(tmp_path, repeats=1).folder) if "RUN" in line else ""
    done = without(modules, *(run if word == "RUN" else word for word in line))
    assert done.returncode == 2, done.stderr
    assert f"pip install 'weighbridge[{extra}]'" in done.stderr
    assert "internal error" not in done.stderr


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
