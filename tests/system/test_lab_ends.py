"""Nothing is left of hosts of the lab, however they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from small_lab import MIB, PYTHON, ROOT, cgroups_of, labelled, raised, within
from weighbridge.common.errors import (
    CommandFailed,
    MissingPrerequisite,
    UsageError,
    WeighbridgeError,
)
from weighbridge.common.host import Service
from weighbridge.environment import place
from weighbridge.gateways.swift.swift import Swift
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab import ending
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.runc import Runc

pytestmark = pytest.mark.system


def traces(
    label: str, folder: Path, state: Path, minors: frozenset[int] = frozenset()
) -> dict[str, set[str]]:
    """What is on this machine of one deployment, as the kernel tells it: everything that carries
    the label or lies in the folder. `minors` are loop devices the deployment had, which another
    test may have by now.
    """
    namespaces, processes = set(), set()
    mounts: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = (
                f"/weighbridge/{label}/" in (process / "cgroup").read_text()
                or f"{folder}/" in (process / "cmdline").read_text()
            )
            if ours and int(process.name) != os.getpid():
                processes.add(process.name)
                namespaces |= {str(one.readlink()) for one in (process / "ns").iterdir()}
            if int(process.name) == os.getpid():
                mounts = {
                    line
                    for line in (process / "mountinfo").read_text().splitlines()
                    if str(folder) in line or str(state) in line
                }
        except OSError:
            continue
    own = {str(one.readlink()) for one in Path("/proc/self/ns").iterdir()}
    disks: set[str] = set()
    taken: set[str] = set()
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            ours = str(folder) in backing.read_text()
            (disks if ours else taken).add(backing.parent.parent.name)
        except OSError:
            continue
    throttles = Path("/sys/fs/cgroup/blkio").glob("blkio.throttle.*_device")
    limits = {
        line
        for file in throttles
        for line in file.read_text().splitlines()
        if line.split()[0] in {f"7:{one}" for one in minors if f"loop{one}" not in taken}
    }
    return {
        "namespaces": namespaces - own,
        "mounts": mounts,
        "disks": disks,
        "cgroups": set(cgroups_of(label)),
        "processes": processes,
        "root limits": limits,
        "containers": {path.name for path in (state / "runc").glob("*")},
        "bundles": {path.name for path in folder.glob("bundles")},
    }


def minors_of(label: str, folder: Path, state: Path) -> frozenset[int]:
    return frozenset(
        int(name.removeprefix("loop")) for name in traces(label, folder, state)["disks"]
    )


def assert_gone(
    label: str, folder: Path, state: Path, minors: frozenset[int] = frozenset()
) -> None:
    """What ended is collected by the machine's own first process, which takes its time on some
    machines.
    """
    within(10, lambda: not any(traces(label, folder, state, minors).values()))
    left = {name: found for name, found in traces(label, folder, state, minors).items() if found}
    assert left == {}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state folder; what a test that failed left behind it is removed."""
    folder = tmp_path / "state"
    yield folder
    ending.remove_leftovers(state=folder)


def test_closing_removes_everything_but_the_logs(tmp_path: Path, state: Path) -> None:
    folder, label = tmp_path / "deployment", labelled("close")
    hosts = raised(label, folder, state)
    hosts.limit()
    store = hosts.hosts["store-1"]
    store.run(
        ["sh", "-ec", "mkfs.xfs -q -K -f /dev/wb1; mkdir -p /run/m; mount -t xfs /dev/wb1 /run/m"]
    )
    store.start([Service("busy", ("sh", "-c", "while :; do echo x >/run/m/f; done"))])
    store.put("/var/log/host/kept", "kept")
    minors = minors_of(label, folder, state)
    before = traces(label, folder, state, minors)
    assert (len(before["disks"]), len(before["containers"])) == (2, 4)
    assert len(before["namespaces"]) == 4 * 5
    assert not before["mounts"]  # they are in namespaces of the hosts
    assert before["processes"]
    assert before["cgroups"]
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        assert {line.split()[1] for line in before["root limits"]} == {str(20 * MIB)}
    hosts.close()
    hosts.close()
    assert_gone(label, folder, state, minors)
    assert {path.name for path in folder.iterdir()} == {"logs"}
    assert (folder / "logs/store-1/kept").read_text() == "kept"
    assert ending.find_leftovers(state=state) == ()


# A shell starts what it runs in the background with SIGINT ignored, and Python then leaves it so:
# tests may be run like that.
CONDUCTOR = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[3])
from small_lab import raised
hosts = raised(sys.argv[4], Path(sys.argv[1]), Path(sys.argv[2]))
hosts.limit()
hosts.hosts["client-1"].spawn(["sleep", "1000"], stderr=Path("/dev/null"))
print("running", flush=True)
time.sleep(1000)
"""


def conducted(
    folder: Path, state: Path, label: str, program: str = CONDUCTOR
) -> subprocess.Popen[bytes]:
    words = (str(folder), str(state), str(Path(__file__).parent), label)
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [PYTHON, "-c", program, *words], stdout=subprocess.PIPE, env={**os.environ, **paths}
    )


@pytest.mark.parametrize("when", ["claimed", "half-way", "running"])
def test_what_a_killed_conductor_left_is_found_and_removed(
    tmp_path: Path, state: Path, when: str
) -> None:
    folder, label = tmp_path / "deployment", labelled("killed")
    with conducted(folder, state, label) as conductor:
        if when == "running":
            assert conductor.stdout is not None
            assert conductor.stdout.readline() == b"running\n"
            with pytest.raises(UsageError, match=f"{label} has been running on this machine"):
                ending.remove_leftovers(state=state)
            with pytest.raises(UsageError, match=f"{label} has been running on this machine"):
                raised(labelled("second"), tmp_path / "second", state)
        else:
            pattern = "claims/*.json" if when == "claimed" else "runc/*"
            assert within(60, lambda: any(state.glob(pattern)))
        conductor.kill()
        conductor.wait()
    minors = minors_of(label, folder, state)
    found = ending.find_leftovers(state=state)
    assert {one.deployment for one in found} == {label}
    with pytest.raises(UsageError, match=label):
        raised(labelled("second"), tmp_path / "second", state)
    ending.remove_leftovers(label, state=state)
    assert_gone(label, folder, state, minors)
    assert not folder.exists()
    assert ending.find_leftovers(state=state) == ()
    assert ending.remove_leftovers(state=state) == ()


def test_hosts_that_were_left_running_refuse_others_until_they_are_torn_down(
    tmp_path: Path, state: Path
) -> None:
    folder, label = tmp_path / "deployment", labelled("killed")
    with conducted(folder, state, label, CONDUCTOR.replace("time.sleep(1000)", "")) as conductor:
        assert conductor.wait(60) == 0
    assert len(Runc(state / "runc").containers()) == 4
    with pytest.raises(UsageError, match=f"{label}: left running") as refused:
        raised(labelled("second"), tmp_path / "second", state)
    assert "weighbridge down" in refused.value.advice
    ending.remove_leftovers(state=state)
    assert_gone(label, folder, state)


def _fails_half_way(
    label: str, tmp_path: Path, state: Path, images: Mapping[str, Path] | None = None
) -> WeighbridgeError:
    folder = tmp_path / "deployment"
    with pytest.raises(WeighbridgeError) as failed:
        raised(label, folder, state, images)
    assert_gone(label, folder, state)
    assert not list((state / "claims").iterdir())
    return failed.value


def test_a_root_that_cannot_start_takes_the_other_hosts_with_it(
    tmp_path: Path, state: Path
) -> None:
    (tmp_path / "image/usr").mkdir(parents=True)
    error = _fails_half_way(
        labelled("broken"), tmp_path, state, {"gateway-1": tmp_path / "image", "store-1": ROOT}
    )
    assert isinstance(error, CommandFailed)
    assert error.host == "gateway-1"
    assert "/bin/sh" in error.output


def test_a_machine_that_has_no_more_loop_devices_removes_all_hosts(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach = LoopDisk.attach

    def second_fails(path: str, size_bytes: int, folder: Path) -> LoopDisk:
        if path == "/dev/wb1":
            raise MissingPrerequisite("no loop device")
        return attach(path, size_bytes, folder)

    monkeypatch.setattr(LoopDisk, "attach", second_fails)
    assert isinstance(_fails_half_way(labelled("loops"), tmp_path, state), MissingPrerequisite)


def test_a_network_that_cannot_be_joined_removes_all_hosts(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "weighbridge.topologies.lab.network.host_batch", lambda port: "no such command\n"
    )
    assert isinstance(_fails_half_way(labelled("wires"), tmp_path, state), CommandFailed)


def test_an_interruption_while_hosts_start_removes_them(tmp_path: Path, state: Path) -> None:
    folder, label = tmp_path / "deployment", labelled("killed")
    with conducted(folder, state, label) as conductor:
        assert within(60, lambda: any(state.glob("runc/*")))
        conductor.send_signal(signal.SIGINT)
        assert conductor.wait(30) != 0
    assert_gone(label, folder, state)
    assert not list((state / "claims").iterdir())


def test_a_checkout_below_tmp_is_seen_by_hosts_that_make_the_load_and_a_folder_may_have_blanks(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = Path(tempfile.mkdtemp(prefix="checkout ", dir="/tmp"))
    try:
        (checkout / "program").write_text("here\n")
        monkeypatch.setattr(
            "weighbridge.topologies.lab.bundle.python_of_this_process", lambda: (checkout,)
        )
        with raised(labelled("blanks"), tmp_path / "a folder", state) as hosts:
            client = hosts.hosts["client-1"]
            assert client.run(["cat", str(checkout / "program")]).stdout == "here\n"
            with pytest.raises(CommandFailed, match="Read-only file system"):
                client.run(["touch", str(checkout / "other")])
            assert (
                client.run(["find", "/tmp", "-mindepth", "1", "-maxdepth", "1"]).stdout
                == f"{checkout}\n"
            )
    finally:
        shutil.rmtree(checkout)


def test_hosts_of_one_image_change_nothing_of_it_nor_of_each_other(tmp_path: Path) -> None:
    image = ensure(Swift.releases["swift-2.35"], lambda line: None, store=place().images)
    label = labelled("image")
    with raised(
        label, tmp_path / "deployment", tmp_path / "state", {"gateway-1": image, "store-1": image}
    ) as hosts:
        gateway, store = hosts.hosts["gateway-1"], hosts.hosts["store-1"]
        gateway.put("/etc/swift/weighbridge-test.conf", "x", owner="swift", mode=0o600)
        gateway.run(["rm", "/etc/debian_version"])
        # The number of the user swift is the image's own, not this machine's.
        assert (
            gateway.run(["stat", "-c", "%U %a", "/etc/swift/weighbridge-test.conf"]).stdout
            == "swift 600\n"
        )
        # /var/run is an absolute link to /run in Debian.
        gateway.put("/var/run/here", "run")
        assert gateway.run(["cat", "/run/here"]).stdout == "run"
        assert not Path("/run/here").exists()
        assert store.run(["cat", "/etc/debian_version"]).stdout
        assert (
            store.run(["sh", "-c", "ls /etc/swift; cat /etc/hosts"]).stdout.count(
                "weighbridge-test"
            )
            == 0
        )
        assert f"image {image.name}" in hosts.facts()
    assert (image / "etc/debian_version").exists()
    assert not (image / "etc/swift/weighbridge-test.conf").exists()
    assert_gone(label, tmp_path / "deployment", tmp_path / "state")
