"""`capabilities` of a store in memory, and `durability` of stores on fake hosts: their disks lose
nothing, but what is in memory is gone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from http_stub import Closed, Request, Respond, Response
from tests.gateways.capabilities.memory_store import (
    KEY,
    S3_USER,
    SWIFT_USER,
    MemoryStore,
    memory_store,
)
from tests.weighbridge import command_line
from tests.weighbridge.command_line import trial
from weighbridge.cli.stores import capabilities_verb
from weighbridge.common.errors import EXIT_TARGET, UsageError
from weighbridge.common.registry import Registry
from weighbridge.gateways.capabilities import asking
from weighbridge.results.run.durability import read_cuts
from weighbridge.results.run.store import RunStore
from weighbridge.topologies import loader


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MemoryStore]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": S3_USER,
        "AWS_SECRET_ACCESS_KEY": KEY,
        "ST_USER": SWIFT_USER,
        "ST_KEY": KEY,
        "WEIGHBRIDGE_HOME": str(tmp_path / "home"),
        "WEIGHBRIDGE_STATE": str(tmp_path / "state"),
    }.items():
        monkeypatch.setenv(name, value)
    with memory_store() as store:
        url = store.server.url
        swift = f'{{auth_url: "{url}/auth/v1.0"}}'
        text = command_line.existing("memory", s3=command_line.s3_at(url), swift=swift)
        (tmp_path / "memory.yaml").write_text(text)
        yield store


def ran(tmp_path: Path, *words: str) -> Result:
    given = [str(tmp_path / "memory.yaml"), "--hardware", "this-machine", *words]
    return CliRunner().invoke(capabilities_verb, given, standalone_mode=False)


ONLY = ("--only", "s3-delete,s3-versions,s3-retention,s3-legal-hold,swift-put,swift-formpost")


@pytest.mark.long
def test_a_store_is_asked_and_nothing_is_left_in_it(store: MemoryStore, tmp_path: Path) -> None:
    done = ran(tmp_path, *ONLY, "--out", str(tmp_path / "out"), "--json")
    assert done.exception is None, done.exception
    assert done.return_value == 0
    (layout,) = json.loads(done.stdout)["layouts"]
    assert {key: one["outcome"] for key, one in layout["answers"].items()} == {
        "s3-delete": "works",
        "s3-versions": "works",
        "s3-retention": "works",
        "s3-legal-hold": "works",
        "swift-put": "works",
    }
    assert json.loads((tmp_path / "out" / "capabilities.json").read_text())["layouts"] == [layout]
    assert len((tmp_path / "out" / "capabilities.csv").read_text().splitlines()) == 6
    assert store.s3.buckets == store.swift.buckets == {}


@pytest.mark.long
def test_what_is_dangerous_is_asked_of_a_running_gateway_only_on_request(
    store: MemoryStore, tmp_path: Path
) -> None:
    done = ran(tmp_path, "--only", "swift-formpost", "--dangerous", "--json")
    assert done.return_value == 0
    assert json.loads(done.stdout)["layouts"][0]["answers"]["swift-formpost"]["outcome"] == "works"


@pytest.mark.long
def test_the_table_has_marks_and_the_reasons_of_what_is_wrong(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.server.between = lambda request, respond: respond(request.without("range"))
    done = ran(tmp_path, "--only", "ranges,s3-delete", "--api", "s3")
    assert done.return_value == 0
    assert "DELETE" in done.output
    assert "! s3-range-single: memory: 200: ignored: the complete object came" in done.output


@pytest.mark.long
def test_a_store_that_dies_is_named_and_the_command_ends_with_3(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_DIES_WITHIN_S", 0.1)
    dead: list[Request] = []

    def crash(request: Request, respond: Respond) -> Response:
        if dead or "x-amz-copy-source" in request.headers:
            dead.append(request)
            raise Closed
        return respond(request)

    store.server.between = crash
    done = ran(tmp_path, "--only", "s3-delete,s3-copy,swift-put", "--json")
    assert done.return_value == EXIT_TARGET
    (layout,) = json.loads(done.stdout)["layouts"]
    outcomes = {key: one["outcome"] for key, one in layout["answers"].items()}
    assert outcomes == {"s3-delete": "works", "s3-copy": "unknown", "swift-put": "unknown"}
    assert layout["died"]
    assert "wb-" in " ".join(layout["left"])


def test_a_dry_run_says_what_would_be_asked_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WEIGHBRIDGE_HOME", "WEIGHBRIDGE_STATE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    words = ["rgw-beast", "swift", "--hardware", "lab-cpu", "--only", "s3-copy,swift-put"]
    done = CliRunner().invoke(capabilities_verb, [*words, "--dry-run"], standalone_mode=False)
    assert (done.return_value, done.exception) == (0, None)
    assert "rgw-beast: 2 questions over swift and s3" in done.output
    assert "swift: 1 question over swift" in done.output
    assert "2 layouts on lab-cpu: about 0:21 in all" in done.output
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["rgw-beast", "--dry-run", "--json"], "it has no --json"),
        (["--list", "--json"], "--list prints a table; it has no --json"),
        (["rgw-beast", "--only", "s3-copyy"], "s3-copy"),
        (["rgw-beast", "--api", "s4"], "s3"),
        ([], "name at least one layout"),
        (["rgw-bea"], "rgw-beast"),
    ],
)
def test_bad_input_is_refused(words: list[str], why: str) -> None:
    done = CliRunner().invoke(capabilities_verb, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert why in str(done.exception)


def test_what_is_asked_can_be_listed_without_a_layout() -> None:
    done = CliRunner().invoke(
        capabilities_verb, ["--list", "--api", "swift"], standalone_mode=False
    )
    assert done.return_value == 0
    assert "swift-formpost" in done.output
    assert "s3-delete" not in done.output


@pytest.mark.long
def test_a_run_asks_its_layout_and_reports_what_it_answered(tmp_path: Path) -> None:
    (tmp_path / "trial.yaml").write_text(command_line.trial("s3"))
    command_line.weighbridge(
        *("compare", "--suite", tmp_path / "trial.yaml", "--layouts", "null:delay_ms=5"),
        *("--hardware", "loopback", "--repeats", "1", "--no-charts", "--capabilities"),
        *("--out", tmp_path / "runs"),
        folder=tmp_path,
        code=0,
    )
    (run,) = (tmp_path / "runs").iterdir()
    (sheet,) = (one for one in RunStore.open(run).manifest.sheets if one.title == "capabilities")
    assert sheet.layout == "null-delay-ms-5"
    assert sheet.facts["s3: objects: DELETE"] == "works"
    assert sheet.facts["s3: objects: Copy"].startswith("refused: 501 NotImplemented")
    assert "swift: access: POST form" not in sheet.facts
    page = (run / "derived" / "report.html").read_text()
    assert "<caption>capabilities</caption>" in page
    assert "refused: 501 NotImplemented" in page


TOY = Path(__file__).parents[2] / "support" / "toy_store"
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


def ended(
    environment: dict[str, str], *words: str | Path, code: int | None = None
) -> subprocess.CompletedProcess[str]:
    return command_line.run(*words, env=environment, code=code)


def measured(tmp_path: Path) -> tuple[str | Path, ...]:
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


@pytest.mark.long  # runs complete passes as programs
def test_a_store_that_keeps_objects_in_memory_loses_all_of_them_and_the_exit_code_says_so(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = ended(environment, *tried(tmp_path), code=1)
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


@pytest.mark.long  # runs complete passes as programs
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
    ended(environment, *words, code=1)
    lines = file.read_text().splitlines()
    made = [(cut.load, cut.number) for cut in read_cuts(tmp_path / "out")]
    # What the first load had lost stays beside all cuts of the second.
    assert made[-2:] == [(2, 1), (2, 2)]
    assert {load for load, _ in made[:-2]} == {1}
    ended(environment, *words, code=1)
    assert file.read_text().splitlines() == lines
    # Cuts that were made with other settings are not completed, nor shown as these.
    done = ended(environment, *words, "--seed", "7", "--workers", "3", code=2)
    assert "made with other settings: workers, seed" in " ".join(done.stderr.split())
    (tmp_path / "bare.yaml").write_text(LAYOUT + "settings: {port: 8081}\n")
    done = ended(environment, *words, code=2)
    assert "the layout bare" in " ".join(done.stderr.split())
    tried(tmp_path)
    (tmp_path / "out" / "durability.json").unlink()
    done = ended(environment, *words, code=2)
    assert "no durability.json that says how they were made" in " ".join(done.stderr.split())
    assert file.read_text().splitlines() == lines


@pytest.mark.long  # runs complete passes as programs
@pytest.mark.test_all
def test_a_suite_with_power_cuts_marks_what_a_layout_that_lost_has_written(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = ended(environment, *measured(tmp_path), code=0)
    (run,) = (tmp_path / "runs").iterdir()
    assert [cut.control for cut in read_cuts(run)] == [True, True, False, False]
    assert "lost acknowledged writes in 2 of 2 power cuts" in done.stdout.replace("\n", " ")
    again = ended(environment, "resume", "--no-charts", run)
    assert "nothing is left to do" in " ".join(again.stdout.split())
    file = run / "durability.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:3]))
    ended(environment, "resume", "--no-charts", run, code=0)
    made = [(cut.load, cut.number) for cut in read_cuts(run) if not cut.control]
    assert made == [(1, 1), (2, 1), (2, 2)]


@pytest.mark.long  # runs complete passes as programs
def test_a_dry_run_says_what_would_be_cut_and_starts_nothing(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = ended(environment, *tried(tmp_path, "--cuts", "3", "--dry-run"), code=0)
    assert "bare, control: 2 workers write for 1 s, 2 power cuts" in done.stdout
    assert "bare: 2 workers write for 1 s, 3 power cuts" in done.stdout
    assert "1 layout on loopback: about 3:48 in all" in done.stdout
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "home").exists()


@pytest.mark.long  # runs complete passes as programs
def test_a_run_whose_store_does_not_start_for_its_cuts_says_so_and_is_no_success(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    environment = {**environment, "TOY_STARTS": "1", "TOY_COUNT": str(tmp_path / "starts")}
    done = ended(environment, *measured(tmp_path), code=3)
    assert "not all power cuts of bare were made" in " ".join(done.stdout.split())


@pytest.mark.long  # runs complete passes as programs
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
    done = ended(environment, *tried(tmp_path, *more), code=2)
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()
