"""`weighbridge capabilities` of a gateway that already runs, a store in memory, and of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from http_stub import Closed, Request, Respond, Response
from tests.gateways.capabilities import memory_s3, memory_swift
from tests.gateways.capabilities.memory_store import MemoryStore, memory_store
from tests.weighbridge import command_line
from weighbridge.cli.capabilities import command
from weighbridge.common.errors import EXIT_TARGET, UsageError
from weighbridge.gateways.capabilities import asking
from weighbridge.results.record.store import RunStore


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MemoryStore]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": memory_s3.USER,
        "AWS_SECRET_ACCESS_KEY": memory_s3.KEY,
        "ST_USER": memory_swift.USER,
        "ST_KEY": memory_swift.KEY,
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
    return CliRunner().invoke(command, given, standalone_mode=False)


ONLY = ("--only", "s3-delete,s3-versions,swift-put,swift-formpost")


def test_a_store_is_asked_and_nothing_is_left_in_it(store: MemoryStore, tmp_path: Path) -> None:
    done = ran(tmp_path, *ONLY, "--out", str(tmp_path / "out"), "--json")
    assert done.exception is None, done.exception
    assert done.return_value == 0
    (layout,) = json.loads(done.stdout)["layouts"]
    assert {key: one["outcome"] for key, one in layout["answers"].items()} == {
        "s3-delete": "works",
        "s3-versions": "works",
        "swift-put": "works",
    }
    assert json.loads((tmp_path / "out" / "capabilities.json").read_text())["layouts"] == [layout]
    assert len((tmp_path / "out" / "capabilities.csv").read_text().splitlines()) == 4
    assert store.s3.buckets == store.swift.buckets == {}


def test_what_is_dangerous_is_asked_of_a_running_gateway_only_on_request(
    store: MemoryStore, tmp_path: Path
) -> None:
    done = ran(tmp_path, "--only", "swift-formpost", "--dangerous", "--json")
    assert done.return_value == 0
    assert json.loads(done.stdout)["layouts"][0]["answers"]["swift-formpost"]["outcome"] == "works"


def test_the_table_has_marks_and_the_reasons_of_what_is_wrong(
    store: MemoryStore, tmp_path: Path
) -> None:
    store.server.between = lambda request, respond: respond(request.without("range"))
    done = ran(tmp_path, "--only", "ranges,s3-delete", "--api", "s3")
    assert done.return_value == 0
    assert "DELETE" in done.output
    assert "! s3-range-single: memory: 200: ignored: the complete object came" in done.output


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


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["rgw-beast", "--only", "s3-copyy"], "s3-copy"),
        (["rgw-beast", "--api", "s4"], "s3"),
        ([], "name at least one layout"),
        (["rgw-bea"], "rgw-beast"),
    ],
)
def test_bad_input_is_refused(words: list[str], why: str) -> None:
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert why in str(done.exception)


def test_what_is_asked_can_be_listed_without_a_layout() -> None:
    done = CliRunner().invoke(command, ["--list", "--api", "swift"], standalone_mode=False)
    assert done.return_value == 0
    assert "swift-formpost" in done.output
    assert "s3-delete" not in done.output


@pytest.mark.long
def test_a_run_asks_its_layout_and_reports_what_it_answered(tmp_path: Path) -> None:
    (tmp_path / "trial.yaml").write_text(command_line.trial("s3"))
    done = command_line.weighbridge(
        *("compare", "--suite", tmp_path / "trial.yaml", "--layouts", "null:delay_ms=5"),
        *("--hardware", "loopback", "--repeats", "1", "--no-charts", "--capabilities"),
        *("--out", tmp_path / "runs"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    (sheet,) = (one for one in RunStore.open(run).manifest.sheets if one.title == "capabilities")
    assert sheet.layout == "null-delay-ms-5"
    assert sheet.facts["s3: objects: DELETE"] == "works"
    assert sheet.facts["s3: objects: Copy"].startswith("refused: 501 NotImplemented")
    assert "swift: access: POST form" not in sheet.facts
    page = (run / "derived" / "report.html").read_text()
    assert "<caption>capabilities</caption>" in page
    assert "refused: 501 NotImplemented" in page
