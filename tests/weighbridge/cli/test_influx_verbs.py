import io
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from fake_influx import FakeInflux, InfluxReply
from stub_run import SUITE, Run, StubGateway, fake_driver_settings
from weighbridge import run as running
from weighbridge.cli import compare, resume, study
from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.conductor.interruption import Interrupted
from weighbridge.results.influx.points import RunPoints
from weighbridge.results.influx.server import InfluxServer
from weighbridge.results.record.store import RunStore
from weighbridge.screen.display import PlainDisplay
from weighbridge.topologies import loader


@pytest.fixture(autouse=True)
def without_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver with made-up measurements, and no report."""
    monkeypatch.setattr(loader, "STORES", Registry("none", "gateway", own={"stub": StubGateway}))
    monkeypatch.setattr(running, "derive", lambda folder, **_: folder)
    monkeypatch.setattr(running, "Doing", partial(running.Doing, settings=fake_driver_settings()))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """One step on each of two layouts."""
    return Run(tmp_path, workloads=[{**SUITE["workloads"][0], "workers": [1]}])


def compared(run: Run, server: InfluxServer) -> tuple[RunStore, str]:
    """A complete run that is sent as it is measured; returns what it printed."""
    text = io.StringIO()
    doing = running.Doing(run.place, Console(file=text, width=400), influx=server)
    running.run(run.plan(), run.planned, doing, out=run.folder / "runs", text="", attest=False)
    (folder,) = (run.folder / "runs").iterdir()
    return RunStore.open(folder), text.getvalue()


def lines_of(store: RunStore) -> list[str]:
    points = RunPoints(store)
    return [*points.run(), *(line for step in store.steps() for line in points.step(step))]


def test_a_run_is_sent_as_it_is_measured_and_reports_that(run: Run) -> None:
    with FakeInflux() as influx:
        store, text = compared(run, InfluxServer(url=influx.url))
    assert store.manifest.state == "done"
    assert [step.notes for step in store.steps() if not step.valid] == []
    assert [line for line in influx.taken if not line.startswith("weighbridge_live")] == lines_of(
        store
    )
    assert f"points sent to {influx.url}" in text


@pytest.mark.parametrize("answer", [InfluxReply(503), InfluxReply(401), InfluxReply(400)])
def test_a_server_that_refuses_everything_spoils_no_run(run: Run, answer: InfluxReply) -> None:
    with FakeInflux(otherwise=answer) as influx:
        store, text = compared(run, InfluxServer(url=influx.url))
    assert store.manifest.state == "done"
    assert len(store.steps()) == 2
    assert [step.notes for step in store.steps() if not step.valid] == []
    assert "send the entire run again with weighbridge export" in text
    assert any(
        "nothing is lost" in event.text for event in store.events() if event.kind == "influx"
    )


@pytest.mark.test_all
def test_no_secret_of_the_server_is_in_the_run_folder_or_on_the_screen(run: Run) -> None:
    server = InfluxServer.parse(
        "http://127.0.0.1:1", {"WEIGHBRIDGE_INFLUX_TOKEN": "planted-secret"}
    )
    store, text = compared(run, server)
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert any(b"http://127.0.0.1:1" in path.read_bytes() for path in files)
    assert not [path for path in files if b"planted-secret" in path.read_bytes()]
    assert "planted-secret" not in text


def test_a_run_that_is_interrupted_sends_what_it_has_and_ends_as_interrupted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: PlainDisplay, result: Any) -> None:
        raise Interrupted(signal.SIGINT)

    with FakeInflux() as influx:
        monkeypatch.setattr(PlainDisplay, "ended", interrupted)
        with pytest.raises(Interrupted):
            compared(run, InfluxServer(url=influx.url))
    (folder,) = (run.folder / "runs").iterdir()
    store = RunStore.open(folder)
    assert store.manifest.state == "interrupted"
    assert any("points sent" in event.text for event in store.events() if event.kind == "influx")


@pytest.mark.parametrize("verb", [compare.command, study.command, resume.command])
@pytest.mark.parametrize(
    ("url", "words"),
    [("nonsense", "not of the form http://"), ("http://h?token=planted-secret", "not 'token'")],
)
def test_an_invalid_url_is_refused_before_anything_is_started(
    verb: Any, url: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        verb, [*([str(tmp_path)] if verb is resume.command else []), "--influx", url]
    )
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_missing_token_is_refused_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WEIGHBRIDGE_INFLUX_TOKEN", "INFLUX_TOKEN", "WEIGHBRIDGE_INFLUX_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(compare.command, ["--influx", "http://127.0.0.1:1"])
    assert isinstance(done.exception, UsageError)
    assert "WEIGHBRIDGE_INFLUX_TOKEN is not set" in str(done.exception)
    assert not list(tmp_path.iterdir())
