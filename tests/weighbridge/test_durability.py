"""Power cuts of stores on fake hosts: their disks lose nothing, but what is in memory is gone."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.weighbridge import command_line
from tests.weighbridge.command_line import trial
from weighbridge.common.registry import Registry
from weighbridge.results.record.durability import read_cuts
from weighbridge.topologies import loader

pytestmark = pytest.mark.long  # runs complete passes as programs

TOY = Path(__file__).parents[1] / "support" / "toy_store"
LAYOUT = (
    "name: bare\nabout: The toy by itself\ngateway: toy\nrelease: toy-1\nplace: {server: "
    "gateway-1}\n"
)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """With the toy on the path, as if installed, for programs and for this process."""
    monkeypatch.syspath_prepend(str(TOY))
    own = {"null": "weighbridge.gateways.null.null:Null"}
    monkeypatch.setattr(loader, "STORES", Registry("weighbridge.stores", "gateway", own=own))
    places = [TOY, *filter(None, [os.environ.get("PYTHONPATH")])]
    path = os.pathsep.join(map(str, places))
    # So long that a client's own time is little beside it, or a step is judged invalid.
    return command_line.environment(tmp_path, PYTHONPATH=path, TOY_DELAY_S="0.04")


def ran(environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    return command_line.run(*words, env=environment)


def measured(tmp_path: Path) -> tuple[str | Path, ...]:
    """The words of a comparison with power cuts."""
    cuts = "durability: {cuts: 2, load: 1s, sizes: [4KiB], multipart: false}\n"
    (tmp_path / "trial.yaml").write_text(trial("swift", "{write: 1}", more=cuts))
    (tmp_path / "bare.yaml").write_text(LAYOUT)
    return (
        *("compare", "--suite", tmp_path / "trial.yaml", "--layouts", tmp_path / "bare.yaml"),
        *("--hardware", "loopback", "--no-charts", "--out", tmp_path / "runs"),
    )


def tried(tmp_path: Path, *more: str) -> list[str | Path]:
    layout = tmp_path / "bare.yaml"
    layout.write_text(LAYOUT)
    words = ("--hardware", "loopback", "--load", "1s", "--workers", "2", "--cuts", "2", *more)
    return ["durability", layout, *words, "--out", tmp_path / "out"]


def test_a_store_that_keeps_objects_in_memory_loses_all_of_them_and_the_exit_code_says_so(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = ran(environment, *tried(tmp_path))
    assert done.returncode == 1, done.stdout + done.stderr
    cuts = read_cuts(tmp_path / "out")
    assert [(cut.control, cut.number) for cut in cuts] == [
        (True, 1),
        (True, 2),
        (False, 1),
        (False, 2),
    ]
    # One of which a deletion was in flight may be gone.
    kinds = [kind for cut in cuts for kind in cut.objects]
    assert all(kind.acknowledged - kind.in_flight <= kind.lost for kind in kinds)
    assert all(cut.count("lost") for cut in cuts)
    assert "bare lost acknowledged writes in 2 of 2 power cuts under load" in " ".join(
        done.stdout.split()
    )


@pytest.mark.test_all
def test_a_pass_that_a_signal_ended_is_made_again_and_a_whole_one_only_with_its_settings(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    words = tried(tmp_path, "--no-control")
    file = tmp_path / "out" / "durability.jsonl"
    with subprocess.Popen(
        command_line.command(*words), env=environment, stdout=subprocess.DEVNULL
    ) as begun:
        deadline_s = time.monotonic() + 120
        while not file.exists() and begun.poll() is None and time.monotonic() < deadline_s:
            time.sleep(0.01)
        begun.send_signal(signal.SIGTERM)
        assert begun.wait(60) == 128 + signal.SIGTERM
    assert ran(environment, *words).returncode == 1
    lines = file.read_text().splitlines()
    made = [(cut.load, cut.number) for cut in read_cuts(tmp_path / "out")]
    # What the first load had lost stays beside all cuts of the second.
    assert made[-2:] == [(2, 1), (2, 2)]
    assert {load for load, _ in made[:-2]} == {1}
    assert ran(environment, *words).returncode == 1
    assert file.read_text().splitlines() == lines
    # Cuts that were made with other settings are not completed, nor shown as these.
    done = ran(environment, *words, "--seed", "7", "--workers", "3")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "made with other settings: workers, seed" in " ".join(done.stderr.split())
    (tmp_path / "bare.yaml").write_text(LAYOUT + "settings: {port: 8081}\n")
    done = ran(environment, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "the layout bare" in " ".join(done.stderr.split())
    tried(tmp_path)
    (tmp_path / "out" / "durability.json").unlink()
    done = ran(environment, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "no durability.json that says how they were made" in " ".join(done.stderr.split())
    assert file.read_text().splitlines() == lines


@pytest.mark.test_all
def test_a_suite_with_power_cuts_marks_what_a_layout_that_lost_has_written(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = ran(environment, *measured(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert [cut.control for cut in read_cuts(run)] == [True, True, False, False]
    assert "lost acknowledged writes in 2 of 2 power cuts" in done.stdout.replace("\n", " ")
    again = ran(environment, "resume", "--no-charts", run)
    assert "nothing is left to do" in " ".join(again.stdout.split())
    file = run / "durability.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:3]))
    assert ran(environment, "resume", "--no-charts", run).returncode == 0
    made = [(cut.load, cut.number) for cut in read_cuts(run) if not cut.control]
    assert made == [(1, 1), (2, 1), (2, 2)]


def test_a_run_whose_store_does_not_start_for_its_cuts_says_so_and_is_no_success(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    environment = {**environment, "TOY_STARTS": "1", "TOY_COUNT": str(tmp_path / "starts")}
    done = ran(environment, *measured(tmp_path))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "not all power cuts of bare were made" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hardware", "ssh-example"), "this suite cannot cut"),
        (("--api", "s4"), "there is no API s4"),
        (("--cuts", "0"), "0 is not in the range"),
        (("{folder}/other.yaml",), "two layouts are named bare"),
        (("null",), "null cannot be started again after a power cut"),
    ],
)
def test_what_cannot_be_cut_is_refused_before_anything_starts(
    tmp_path: Path, environment: dict[str, str], words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "other.yaml").write_text(LAYOUT)
    more = [word.format(folder=tmp_path) for word in words]
    done = ran(environment, *tried(tmp_path, *more))
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()
