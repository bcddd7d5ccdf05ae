from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, UsageError
from weighbridge.gateways.gateway import CargoProgram, GoProgram, PypiProgram, RootImage
from weighbridge.topologies import images

IMAGE = RootImage(name="tiny", suite="bookworm", packages=("tini",))

# Replaces mmdebstrap: writes a root with a dpkg database of one package, as slowly as $SLOWLY says,
# or when there are builds $UNTIL; fails for images whose name begins with $FAIL.
BUILDER = """#!{python}
import os, pathlib, sys, time
root = pathlib.Path(sys.argv[-1])
(root / "usr").mkdir(parents=True)
with open(os.environ["BUILDS"], "a") as builds:
    builds.write(root.parent.name + "\\n")
def await_builds(number):
    while len(open(os.environ["BUILDS"]).readlines()) < number:
        time.sleep(0.01)
print("I: downloading packages with apt...", flush=True)
time.sleep(float(os.environ.get("SLOWLY", "0")))
if "FAIL" in os.environ and root.parent.name.startswith(os.environ["FAIL"]):
    await_builds(min(2, int(os.environ.get("UNTIL", "0"))))
    print("E: no such suite", file=sys.stderr)
    sys.exit(25)
await_builds(int(os.environ.get("UNTIL", "0")))
info = root / "var/lib/dpkg"
info.mkdir(parents=True)
(info / "status").write_text("Package: tini\\nStatus: install ok installed\\nVersion: 0.19\\n"
    "Architecture: amd64\\nMaintainer: x <x@example.org>\\nDescription: x\\n\\n")
"""

CONDUCTOR = """
import os, sys
from pathlib import Path
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies import images

os.geteuid = lambda: 0
image = RootImage(name="tiny", suite="bookworm", packages=("tini",))
images.ensure(image, print, store=Path(sys.argv[1]))
"""


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "mmdebstrap").write_text(BUILDER.format(python=sys.executable))
    (tools / "mmdebstrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return tmp_path / "builds"


def test_an_image_is_built_once_and_its_packages_are_listed_beside_it(
    tmp_path: Path, builds: Path
) -> None:
    messages: list[str] = []
    root = images.ensure(IMAGE, messages.append, store=tmp_path / "store")
    assert root == tmp_path / "store" / images.key(IMAGE)
    assert root.with_name(f"{root.name}.packages").read_text() == "tini=0.19\n"
    assert images.ensure(IMAGE, messages.append, store=tmp_path / "store") == root
    assert len(builds.read_text().splitlines()) == 1
    assert "building Debian bookworm" in messages[0]
    assert "1 packages" in messages[-1]


def test_an_image_with_another_definition_has_another_key_whatever_the_order_of_packages() -> None:
    changes: tuple[dict[str, object], ...] = (
        {},
        {"suite": "trixie"},
        {"packages": ("tini", "haproxy")},
        {"options": ("--setup-hook=true",)},
        {"programs": (GO,)},
        {"programs": (GO.model_copy(update={"sum": f"h1:{'b' * 43}="}),)},
        {"programs": (GO.model_copy(update={"variables": ()}),)},
    )
    assert len({images.key(IMAGE.model_copy(update=one)) for one in changes}) == len(changes)
    one, other = (
        images.key(IMAGE.model_copy(update={"packages": packages}))
        for packages in (("a", "b", "procps"), ("b", "a"))
    )
    assert one == other
    # What was built before there were programs is not built again.
    assert images.key(IMAGE.model_copy(update={"name": "x"})) == "x-dd328e8037eb"


def test_the_builder_gets_no_mirror_options_before_the_suite_and_programs_before_it_forgets() -> (
    None
):
    image = IMAGE.model_copy(update={"options": ("--setup-hook=true",), "programs": (GO,)})
    line = images.argv(image, Path("/store/x.partial"), [Path("/store/a b/gateway")])
    copied = "--customize-hook=copy-in '/store/a b/gateway' /usr/local/bin"
    assert line[-4:] == [copied, images.FORGET_THIS_MACHINE, "bookworm", "/store/x.partial"]
    assert "--setup-hook=true" in line[:-4]
    assert not any("://" in word for word in line)


def test_an_image_of_ubuntu_is_verified_with_the_keys_that_debian_packages(tmp_path: Path) -> None:
    asked = []

    def obtain(image: RootImage) -> Path:
        asked.append(image)
        return tmp_path

    image = IMAGE.model_copy(update={"distribution": "Ubuntu", "suite": "noble"})
    options = images.ubuntu_options(image, obtain, own=tmp_path / "none", suites=Path(__file__))
    assert asked == [images.UBUNTU_KEYS]
    assert options[-1] == f"--keyring={tmp_path}/usr/share/keyrings/ubuntu-archive-keyring.gpg"
    line = images.argv(image, Path("/x"), more=options)
    assert line.index(options[-1]) < line.index("noble")
    assert images.ubuntu_options(IMAGE, obtain) == []
    with pytest.raises(MissingPrerequisite, match="/none, which is missing") as missing:
        images.ubuntu_options(image, obtain, suites=tmp_path / "none")
    assert missing.value.advice == "install the package distro-info-data"


def test_a_failed_build_says_why_and_leaves_nothing_that_looks_complete(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "tiny")
    with pytest.raises(CommandFailed, match="E: no such suite") as failed:
        images.ensure(IMAGE, lambda line: None, store=tmp_path / "store")
    assert failed.value.code == 25
    assert images.find(IMAGE, tmp_path / "store") is None
    assert [path.suffix for path in (tmp_path / "store").iterdir()] == [".lock"]


def test_of_two_processes_that_want_an_image_one_builds_and_the_other_waits(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOWLY", "2")
    messages: list[str] = []
    ensure = partial(images.ensure, IMAGE, messages.append, store=tmp_path / "store")
    threads = [threading.Thread(target=ensure) for _ in "ab"]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 10
    while not builds.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert images.half_built(tmp_path / "store") == ()  # one is under way
    for thread in threads:
        thread.join(20)
    assert len(builds.read_text().splitlines()) == 1
    assert any("another process is building it; waiting" in line for line in messages)


def test_a_build_without_mmdebstrap_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match="mmdebstrap is missing"):
        images.ensure(IMAGE, lambda line: None, store=tmp_path / "store")


def test_a_builder_ends_with_its_process(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOWLY", "60")
    with subprocess.Popen(
        [sys.executable, "-c", CONDUCTOR, str(tmp_path / "store")], stdout=subprocess.DEVNULL
    ) as conductor:
        deadline = time.monotonic() + 60
        while not builds.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert images.half_built(tmp_path / "store") == ()
        conductor.kill()
    while not images.half_built(tmp_path / "store") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert images.half_built(tmp_path / "store") == (
        tmp_path / "store" / f"{images.key(IMAGE)}.partial",
    )
    monkeypatch.setenv("SLOWLY", "0")
    images.ensure(IMAGE, lambda line: None, store=tmp_path / "store")
    assert images.half_built(tmp_path / "store") == ()


def processes() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_an_interrupted_build_ends_its_builder(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOWLY", "60")
    monkeypatch.setattr(images, "SAY_EVERY_S", 0.0)

    def interrupt(line: str) -> None:
        if "downloading" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        images.ensure(IMAGE, interrupt, store=tmp_path / "store")
    assert not list((tmp_path / "store").glob("*.partial"))
    deadline = time.monotonic() + 30  # what was killed may still be listed
    while str(tmp_path / "store") in (running := processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert str(tmp_path / "store") not in running


def test_a_refreshed_image_is_rebuilt_in_its_place(tmp_path: Path, builds: Path) -> None:
    store = tmp_path / "store"
    root = images.ensure(IMAGE, print, store=store)
    (root / "old").write_text("old")
    os.utime(root.with_name(f"{root.name}.packages"), (0, 0))
    assert images.built_on(root) == "1970-01-01"
    assert images.refresh(IMAGE, print, store=store) == root
    assert len(builds.read_text().splitlines()) == 2
    assert not (root / "old").exists()
    assert images.built_on(root) > "2020"
    assert not list(store.glob("*.partial"))


@pytest.mark.parametrize("hindered", ["it fails", "hosts use it"])
def test_an_image_that_cannot_be_refreshed_stays_as_it_was(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch, hindered: str
) -> None:
    root = images.ensure(IMAGE, print, store=tmp_path / "store")
    if hindered == "it fails":
        monkeypatch.setenv("FAIL", "tiny")
    else:
        monkeypatch.setattr(images, "in_use", lambda found: found == root)
    why = "no such suite" if hindered == "it fails" else "in use by hosts"
    with pytest.raises((CommandFailed, UsageError), match=why):
        images.refresh(IMAGE, print, store=tmp_path / "store")
    assert images.find(IMAGE, tmp_path / "store") == root
    assert (root / "usr").is_dir()
    assert len(builds.read_text().splitlines()) == 1 + (hindered == "it fails")


def both(store: Path) -> list[images.Build]:
    return [
        partial(images.ensure, RootImage(name=name, suite="bookworm", packages=("x",)), store=store)
        for name in ("one", "other")
    ]


def test_two_images_are_built_at_the_same_time(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNTIL", "2")
    said: list[str] = []
    images.together(both(tmp_path / "store"), said.append)
    assert len(builds.read_text().splitlines()) == 2
    assert sum("built in" in text for text in said) == 2


@pytest.mark.parametrize("how", ["it fails", "Ctrl-C"])
def test_when_one_build_ends_badly_the_other_is_ended_too(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("UNTIL", "3")  # there is no third
    if how == "it fails":
        monkeypatch.setenv("FAIL", "one")
        raised: type[BaseException] = CommandFailed
    else:
        raised = KeyboardInterrupt

        def interrupted(started: object) -> None:
            while not builds.exists() or len(builds.read_text().splitlines()) < 2:
                time.sleep(0.01)
            raise KeyboardInterrupt

        monkeypatch.setattr(images, "as_completed", interrupted)
    with pytest.raises(raised):
        images.together(both(tmp_path / "store"), lambda text: None)
    assert len(builds.read_text().splitlines()) == 2
    assert not list((tmp_path / "store").glob("*.partial"))
    assert not list((tmp_path / "store").glob("*/"))


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
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return PypiProgram(name="toy", package="toy-bin", version="1.0", sha256=sha256)


def obtained(program: PypiProgram | CargoProgram, folder: Path) -> Path:
    return images.obtain(program, print, store=folder / "store")


def test_a_program_of_a_wheel_is_downloaded_once_and_can_be_run(
    tmp_path: Path, program: PypiProgram
) -> None:
    said: list[str] = []
    store = tmp_path / "store"
    path = images.obtain(program, said.append, store=store)
    assert path == images.path_of(program, store)
    assert path.read_text() == "#!/bin/sh\necho 1.0\n"
    assert os.access(path, os.X_OK)
    again: list[str] = []
    assert images.obtain(program, again.append, store=store) == path
    assert (bool(said), again) == (True, [])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [({"sha256": "0" * 64}, "HASH"), ({"name": "other"}, r"toy-bin 1\.0 has no program 'other'")],
)
def test_what_is_not_what_was_pinned_is_refused_and_nothing_is_kept(
    tmp_path: Path, program: PypiProgram, wrong: dict[str, str], why: str
) -> None:
    with pytest.raises(CommandFailed, match=why):
        obtained(program.model_copy(update=wrong), tmp_path)
    assert {one.suffix for one in (tmp_path / "store/programs").iterdir()} == {".lock"}


def test_a_program_of_go_is_built_from_the_pinned_module_by_the_machines_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "https://proxy.example.org")
    monkeypatch.setenv("GOROOT", "/usr/local/go")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    script = images.go_script(GO, tmp_path, Path("/images/go"))
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
    with pytest.raises(CommandFailed, match="ended"):
        obtained(crate, tmp_path)
    path = obtained(crate, tmp_path)
    assert path.read_text() == "what it is built of"
    assert os.access(path, os.X_OK)
    left = {one.name for one in (tmp_path / "store/programs").iterdir()}
    assert left == {images.program_key(crate), f"{images.program_key(crate)}.lock"}
    assert "--locked" in (tmp_path / "cargo/asked").read_text()


@pytest.mark.parametrize(
    ("wrong", "why", "asked"),
    [
        ({"sha256": "0" * 64}, "its sum is [0-9a-f]{64}, not 0000", "info\n"),
        ({"rust": "1.90"}, r"toy needs Rust 1\.90; this is 1\.89\.0", ""),
    ],
)
def test_a_crate_with_another_sum_or_for_a_later_rust_is_refused_before_anything_is_built(
    tmp_path: Path, crate: CargoProgram, wrong: dict[str, str], why: str, asked: str
) -> None:
    with pytest.raises((CommandFailed, MissingPrerequisite), match=why):
        obtained(crate.model_copy(update=wrong), tmp_path)
    asking = tmp_path / "cargo/asked"
    assert (asking.read_text() if asking.exists() else "") == asked
