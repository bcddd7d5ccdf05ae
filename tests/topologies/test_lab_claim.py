from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.errors import TargetError, UsageError
from weighbridge.topologies.hardware import Hardware, HostSpec
from weighbridge.topologies.hosts import CONDUCTOR, DeploymentOwner, started_at
from weighbridge.topologies.lab import ending, start_lab
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.claim import (
    Claim,
    ClaimedMachine,
    MachineHold,
    MachineInUse,
    RootLimit,
    claims,
    exclude_conductors,
)
from weighbridge.topologies.lab.ending import disks, tear_down
from weighbridge.topologies.lab.runc import Runc

HARDWARE = Hardware(name="two", kind="lab", hosts={"client-1": HostSpec(), "store-1": HostSpec()})


def test_a_second_claim_is_refused_naming_the_first(tmp_path: Path) -> None:
    claim = Claim("labtest-a", tmp_path / "a", tmp_path)
    with pytest.raises(
        UsageError,
        match=rf"labtest-a has been running on this machine since .*process {os.getpid()}",
    ) as refused:
        Claim("labtest-b", tmp_path / "b", tmp_path)
    assert "weighbridge down" in refused.value.advice
    claim.release()
    Claim("labtest-b", tmp_path / "b", tmp_path).release()
    assert claims(tmp_path) == ()


def test_a_holder_that_has_not_written_its_name_yet_is_refused_without_one() -> None:
    message = MachineInUse({}).message
    assert message.startswith("another deployment has been running on this machine (process not ")


def test_no_other_user_can_open_the_locks(tmp_path: Path) -> None:
    """Whoever can open a lock, even only to read it, can hold it."""
    state = tmp_path / "state"
    running = MachineHold(state)
    claim = Claim("labtest-a", tmp_path / "a", state)
    try:
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        assert {stat.S_IMODE((state / name).stat().st_mode) for name in ("run", "lock")} == {0o600}
    finally:
        claim.release()
        running.release()


def test_what_a_killed_conductor_left_refuses_a_new_claim_until_it_is_removed(
    tmp_path: Path,
) -> None:
    script = (
        "import os, sys; from pathlib import Path; from weighbridge.topologies.lab.claim import "
        "Claim; "
        "Claim('labtest-a', Path(sys.argv[1]) / 'a', Path(sys.argv[1])); os._exit(9)"
    )
    assert (
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == 9
    )
    with pytest.raises(UsageError, match="labtest-a: left running") as refused:
        Claim("labtest-b", tmp_path / "b", tmp_path)
    assert "weighbridge down" in refused.value.advice
    assert [one.kind for one in ending.remove_leftovers(state=tmp_path)] == ["claim"]
    Claim("labtest-b", tmp_path / "b", tmp_path).release()


@pytest.mark.parametrize("label", ["", "A", "a.b", "../a", "-a", "a" * 62])
def test_an_ambiguous_label_is_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(UsageError, match="is not a deployment's label"):
        Claim(label, tmp_path, tmp_path)


def test_limits_are_recorded_for_the_cleanup_after_a_killed_conductor(tmp_path: Path) -> None:
    claim = Claim("labtest-a", tmp_path / "a", tmp_path)
    limit = RootLimit(path=tmp_path / "throttle", text="7:3 100")
    claim.add((limit,))
    assert claims(tmp_path)[0].root_limits == (limit,)
    claim.release()


def test_only_the_recorded_limit_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "throttle"
    file.write_text("7:3 999\n")
    RootLimit(path=file, text="7:3 100").lift()
    assert file.read_text() == "7:3 999\n"
    RootLimit(path=file, text="7:3 999").lift()
    assert file.read_text() == "7:3 0"
    RootLimit(path=tmp_path / "gone", text="7:3 100").lift()


def test_an_invalid_claim_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims/x.json").write_text("{")
    with pytest.raises(TargetError, match=r"x\.json is not a claim"):
        claims(tmp_path)


def test_leftovers_are_not_removed_while_a_conductor_is_running(tmp_path: Path) -> None:
    claim = Claim("labtest-a", tmp_path / "a", tmp_path)
    with pytest.raises(MachineInUse, match="labtest-a"):
        ending.remove_leftovers(state=tmp_path)
    assert [one.deployment for one in ending.find_leftovers(state=tmp_path)] == ["labtest-a"]
    claim.release()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"deployment": "labtest-a", "pid": 2**30}),  # nobody's number
        "",  # a conductor first empties the lock's file, then closes it
    ],
)
def test_a_runc_that_outlives_its_conductor_and_one_that_just_ends_are_waited_for(
    tmp_path: Path, text: str
) -> None:
    claim = Claim("labtest-a", tmp_path / "a", tmp_path)
    (tmp_path / "lock").write_text(text)
    timer = threading.Timer(0.2, claim.release)
    timer.start()
    with exclude_conductors(tmp_path, wait_s=10):
        assert claims(tmp_path) == ()
    timer.join()


def test_the_folder_of_a_deployment_that_a_reboot_ended_is_found_and_removed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "home/deployments/labtest-a"
    (folder / "bundles/store-1/upper").mkdir(parents=True)
    state = tmp_path / "state"
    found = ending.find_leftovers(home=tmp_path / "home", state=state)
    assert [(one.deployment, one.kind) for one in found] == [("labtest-a", "folder")]
    assert ending.remove_leftovers("labtest-b", home=tmp_path / "home", state=state) == ()
    assert folder.exists()
    assert ending.remove_leftovers("labtest-a", home=tmp_path / "home", state=state) == found
    assert ending.remove_leftovers(home=tmp_path / "home", state=state) == ()
    assert not folder.exists()


def owned_by(pid: int, folder: Path, *, started: int) -> Path:
    folder.mkdir(parents=True)
    owner = DeploymentOwner(
        deployment=folder.name, pid=pid, since="2026-01-01T00:00:00+00:00", started=started
    )
    (folder / CONDUCTOR).write_text(owner.model_dump_json())
    return folder


def test_the_folder_of_a_running_process_is_kept_and_named_until_it_ends(tmp_path: Path) -> None:
    home, state = tmp_path / "home", tmp_path / "state"
    other = subprocess.Popen(["sleep", "60"])
    started = started_at(other.pid)
    assert started is not None
    mine = owned_by(other.pid, home / "deployments/null-1", started=started)
    # Of another process with that pid.
    older = owned_by(other.pid, home / "deployments/null-2", started=started - 1)
    gone = owned_by(2**30, home / "deployments/null-3", started=0)
    try:
        assert [one.deployment for one in ending.lab_at_work(home=home, state=state)] == ["null-1"]
        assert [one.deployment for one in ending.remove_leftovers(home=home, state=state)] == [
            "null-2",
            "null-3",
        ]
        assert [path.exists() for path in (mine, older, gone)] == [True, False, False]
        assert ending.find_leftovers(home=home, state=state) == ()
    finally:
        other.kill()
        other.wait()
    assert ending.lab_at_work(home=home, state=state) == ()
    assert [one.deployment for one in ending.remove_leftovers(home=home, state=state)] == ["null-1"]
    assert not mine.exists()


def test_disks_are_found_by_their_former_file(tmp_path: Path) -> None:
    for number, file in ((3, "/d/a/bundles/x/disk-1 (deleted)"), (4, "/d/ab/disk-1"), (5, "")):
        (tmp_path / f"loop{number}/loop").mkdir(parents=True)
        (tmp_path / f"loop{number}/loop/backing_file").write_text(f"{file}\n")
    (tmp_path / "loop6").mkdir()
    assert disks(Path("/d/a"), "a", tmp_path) == (Path("/dev/loop3"),)


def test_tearing_down_nothing_is_no_error(tmp_path: Path) -> None:
    nothing = ClaimedMachine(deployment="labtest-none", pid=1, since="", folder=tmp_path / "none")
    tear_down(nothing, Runc(tmp_path / "runc"), Cgroups())
    tear_down(nothing, Runc(tmp_path / "runc"), Cgroups())


@pytest.mark.parametrize(
    ("names", "images", "folder", "fault"),
    [
        (["client-1", "store-9"], {}, "f", "two has no hosts store-9"),
        (["client-1", "store-1"], {}, "f", "store-1: no root image was given"),
        (["store-1"], {"store-1": Path("/no/such")}, "f", "store-1: /no/such is not a root image"),
        (["client-1"], {}, "a,b", "an overlay's folder cannot have"),
    ],
)
def test_hosts_that_cannot_be_started_are_refused_before_anything_is_claimed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    images: dict[str, Path],
    folder: str,
    fault: str,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    where: Any = {"folder": tmp_path / folder, "state": tmp_path / "s"}
    with pytest.raises(UsageError, match=fault):
        start_lab("labtest-a", HARDWARE, images, print, names=names, **where)
    assert list(tmp_path.iterdir()) == []


OTHER_RUN = (
    "import sys; from pathlib import Path; from weighbridge.topologies.lab.claim import "
    "MachineHold; "
    "running = MachineHold(Path(sys.argv[1])); running.describe('/somewhere/runs/first'); "
    "print('held', flush=True); sys.stdin.read()"
)


def test_a_run_holds_the_machine_between_its_deployments_and_is_named_with_its_folder(
    tmp_path: Path,
) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER_RUN, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        words = rf"the run /somewhere/runs/first has been running .*process {other.pid}"
        with pytest.raises(MachineInUse, match=words):
            MachineHold(tmp_path)
        with pytest.raises(MachineInUse, match=words):
            Claim("labtest-a", tmp_path / "a", tmp_path)
        assert claims(tmp_path) == ()
    finally:
        other.kill()
        other.communicate()
    running = MachineHold(tmp_path)  # the kernel let go of it
    Claim("labtest-a", tmp_path / "a", tmp_path).release()
    running.release()


def test_of_two_simultaneous_claims_one_succeeds_and_the_other_is_refused(
    tmp_path: Path,
) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from weighbridge.common.errors import UsageError; from weighbridge.topologies.lab.claim "
        "import Claim\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    try:\n"
        "        claim = Claim(line.strip(), Path(sys.argv[1]), Path(sys.argv[1])); print('has "
        "it', flush=True)\n"
        "        sys.stdin.readline(); claim.release(); print('gave it back', flush=True)\n"
        "    except UsageError as error:\n"
        "        print(str(error).splitlines()[0], flush=True)\n"
    )
    pair = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        lines = [(one.stdin, one.stdout) for one in pair]
        assert [out.readline() for _, out in lines if out] == ["ready\n"] * 2
        for number in range(5):
            for index, (into, _) in enumerate(lines):
                assert into is not None
                into.write(f"labtest-{number}-{index}\n")
                into.flush()
            lines_read = [out.readline() for _, out in lines if out]
            (winner,) = [index for index, text in enumerate(lines_read) if text == "has it\n"]
            assert "and only one" in lines_read[1 - winner]
            into, out = lines[winner]
            assert into is not None
            assert out is not None
            into.write("\n")
            into.flush()
            assert out.readline() == "gave it back\n"
            assert claims(tmp_path) == ()
    finally:
        for one in pair:
            one.kill()
            one.communicate()
