from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, UsageError
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies import artefacts, images

IMAGE = RootImage(name="tiny", suite="bookworm", packages=("tini",))

# Replaces mmdebstrap: writes a root with a dpkg database of one package, as slowly as $SLOWLY says.
BUILDER = """#!{python}
import os, pathlib, sys, time
root = pathlib.Path(sys.argv[-1])
(root / "usr").mkdir(parents=True)
with open(os.environ["BUILDS"], "a") as builds:
    builds.write(root.parent.name + "\\n")
print("I: downloading packages with apt...", flush=True)
time.sleep(float(os.environ.get("SLOWLY", "0")))
if "FAIL" in os.environ:
    print("E: no such suite", file=sys.stderr)
    sys.exit(25)
info = root / "var/lib/dpkg"
info.mkdir(parents=True)
(info / "status").write_text("Package: tini\\nStatus: install ok installed\\nVersion: 0.19\\n"
    "Architecture: amd64\\nMaintainer: x <x@example.org>\\nDescription: x\\n\\n")
"""

# Ends only when a second build runs, or when it is killed.
WAITER = """#!{python}
import os, pathlib, sys, time
root = pathlib.Path(sys.argv[-1])
(root / "usr").mkdir(parents=True)
with open(os.environ["BUILDS"], "a") as builds:
    builds.write(f"{{os.getpid()}} {{root.parent.name}}\\n")
if "FAIL" in os.environ and root.parent.name.startswith(os.environ["FAIL"]):
    while len(open(os.environ["BUILDS"]).readlines()) < 2:
        time.sleep(0.01)
    sys.exit(25)
while len(open(os.environ["BUILDS"]).readlines()) < int(os.environ["UNTIL"]):
    time.sleep(0.01)
info = root / "var/lib/dpkg"
info.mkdir(parents=True)
(info / "status").write_text("")
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


def test_an_image_with_another_definition_has_another_key() -> None:
    others = [
        IMAGE,
        IMAGE.model_copy(update={"suite": "trixie"}),
        IMAGE.model_copy(update={"packages": ("tini", "haproxy")}),
        IMAGE.model_copy(update={"options": ("--setup-hook=true",)}),
    ]
    assert len({images.key(one) for one in others}) == 4


def test_neither_the_order_of_packages_nor_the_common_ones_change_the_key() -> None:
    one = IMAGE.model_copy(update={"packages": ("a", "b", "procps")})
    other = IMAGE.model_copy(update={"packages": ("b", "a")})
    assert images.key(one) == images.key(other)


def test_no_mirror_is_named_and_options_come_before_the_suite() -> None:
    line = images.argv(
        IMAGE.model_copy(update={"options": ("--setup-hook=true",)}), Path("/store/x.partial")
    )
    assert line[-3:] == [images.FORGET_THIS_MACHINE, "bookworm", "/store/x.partial"]
    assert line.index("--setup-hook=true") < line.index("bookworm")
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
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(CommandFailed, match="E: no such suite") as failed:
        images.ensure(IMAGE, lambda line: None, store=tmp_path / "store")
    assert failed.value.code == 25
    assert images.find(IMAGE, tmp_path / "store") is None
    assert [path.suffix for path in (tmp_path / "store").iterdir()] == [".lock"]


def test_the_next_build_removes_what_a_killed_one_left(tmp_path: Path, builds: Path) -> None:
    partial = tmp_path / "store" / f"{images.key(IMAGE)}.partial"
    (partial / "usr/old").mkdir(parents=True)
    assert images.half_built(tmp_path / "store") == (partial,)
    root = images.ensure(IMAGE, lambda line: None, store=tmp_path / "store")
    assert not (root / "usr/old").exists()
    assert images.half_built(tmp_path / "store") == ()


def test_of_two_processes_that_want_an_image_one_builds_and_the_other_waits(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOWLY", "2")
    messages: list[str] = []
    threads = [
        threading.Thread(
            target=images.ensure,
            args=(IMAGE, messages.append),
            kwargs={"store": tmp_path / "store"},
        )
        for _ in "ab"
    ]
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
    monkeypatch.setattr(artefacts, "SAY_EVERY_S", 0.0)

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


def test_a_failed_refresh_leaves_the_old_image(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    root = images.ensure(IMAGE, print, store=store)
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(CommandFailed):
        images.refresh(IMAGE, print, store=store)
    assert images.find(IMAGE, store) == root
    assert (root / "usr").is_dir()


def test_an_image_in_use_by_hosts_is_not_refreshed(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    root = images.ensure(IMAGE, print, store=store)
    monkeypatch.setattr(images, "in_use", lambda found: found == root)
    with pytest.raises(UsageError, match="in use by hosts"):
        images.refresh(IMAGE, print, store=store)
    assert len(builds.read_text().splitlines()) == 1


def both(store: Path) -> list[images.Build]:
    return [
        partial(images.ensure, RootImage(name=name, suite="bookworm", packages=("x",)), store=store)
        for name in ("one", "other")
    ]


def test_two_images_are_built_at_the_same_time(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin/mmdebstrap").write_text(WAITER.format(python=sys.executable))
    monkeypatch.setenv("UNTIL", "2")
    said: list[str] = []
    images.together(both(tmp_path / "store"), said.append)
    assert len(builds.read_text().splitlines()) == 2
    assert sum("built in" in text for text in said) == 2


@pytest.mark.parametrize("how", ["it fails", "Ctrl-C"])
def test_when_one_build_ends_badly_the_other_is_ended_too(
    tmp_path: Path, builds: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (tmp_path / "bin/mmdebstrap").write_text(WAITER.format(python=sys.executable))
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
