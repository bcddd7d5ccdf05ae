"""The command killed or interrupted at many points of a run: what can be read, resumed, is left."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.weighbridge.killed_runs import LAYOUTS, compared_stubs, only
from weighbridge.command import main
from weighbridge.common.host import Service
from weighbridge.conductor import telemetry
from weighbridge.results import derivation
from weighbridge.results.run import reading as writing
from weighbridge.results.run import store as storing
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.feature import Gallery
from weighbridge.topologies.fake import FakeHost, FakeHosts

pytestmark = pytest.mark.long  # kills complete comparisons in many places

STEPS = 4
MARK = "WB_TEST_OF_KILLS"
"""In the environment of the run, and so of every process that it starts."""


@dataclass
class Fuse:
    """Signals its own process when something has happened `times` times."""

    number: int
    times: int = 1
    burnt: list[int] = field(default_factory=list)

    def burn(self) -> None:
        self.times -= 1
        if self.times == 0:
            self.burnt.append(self.number)
            os.kill(os.getpid(), self.number)


Hook = Callable[[pytest.MonkeyPatch, Fuse], None]


def call(
    owner: Any, name: str, when: Callable[..., bool] = lambda *_, **__: True, *, after: bool = True
) -> Hook:
    """A hook: count each return of the function, or each call, for which `when` accepts the
    arguments.
    """

    def hook(patch: pytest.MonkeyPatch, fuse: Fuse) -> None:
        real = getattr(owner, name)

        def hooked(*arguments: Any, **named: Any) -> Any:
            if after:
                value = real(*arguments, **named)
            if when(*arguments, **named):
                fuse.burn()
            return value if after else real(*arguments, **named)

        patch.setattr(owner, name, hooked)

    return hook


after, before = call, partial(call, after=False)


def event(kind: str) -> Hook:
    return after(RunStore, "event", lambda _store, given, *_, **__: given == kind)


def executed(host: FakeHost, services: Sequence[Service]) -> bool:
    """Wait until setpriv has become the service, which from then on ends with this process."""
    for one in services:
        name = Path(f"/proc/{host._services[one.name].pid}/comm")
        while name.read_text() == "setpriv\n":
            time.sleep(0.002)
    return True


def half_a_line(patch: pytest.MonkeyPatch, fuse: Fuse) -> None:
    """A hook: count when half of a step's line is written."""
    real = writing.write_all

    def hooked(descriptor: int, data: bytes) -> None:
        if b'"measurement":{' in data:
            os.write(descriptor, data[: len(data) // 2])
            fuse.burn()
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(data) // 2)
        real(descriptor, data)

    patch.setattr(writing, "write_all", hooked)


def named(name: str) -> Callable[..., bool]:
    return lambda path, *_: path.name == name


@dataclass(frozen=True)
class Point:
    """`times`: how often it is passed before the signal; `complete`: steps by then."""

    name: str
    hook: Hook
    times: int
    complete: int


# Two hosts are started once before the run, to check files of both layouts, and then per visit.
POINTS = [
    Point("while hosts are raised", after(FakeHost, "__init__"), 3, 0),
    Point("while the gateway comes up", after(FakeHost, "start", executed), 1, 0),
    Point("while a workload is prepared", event("prepared"), 1, 0),
    Point("in warm-up", after(telemetry.StepTelemetry, "__enter__"), 1, 0),
    Point("in the window of the second step", after(telemetry.StepTelemetry, "on_progress"), 5, 1),
    Point("before a step's line", before(storing, "append_line", named("steps.jsonl")), 2, 1),
    Point("in the middle of a step's line", half_a_line, 2, 1),
    Point("just after a step's line", after(storing, "append_line", named("steps.jsonl")), 2, 2),
    Point("while cleaning up", event("cleaned"), 3, 2),
    Point("before taking down", before(FakeHosts, "close"), 3, 2),
    Point("while taking down", before(FakeHost, "close"), 4, 2),
    Point("between visits", event("down"), 1, 2),
    Point("before the last line", before(RunStore, "set_state"), 1, 4),
    Point(
        "while the report is derived",
        after(derivation, "write_atomically", named("summary.csv")),
        1,
        4,
    ),
]


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """Two layouts in a folder, and a comparison of them by a driver with made-up measurements."""
    # Charts have their own tests, and take longer than all the rest.
    monkeypatch.setattr(derivation, "gallery", lambda *_: Gallery(charts=()))
    monkeypatch.setenv(MARK, str(tmp_path))
    yield compared_stubs(tmp_path, monkeypatch)
    assert marked(tmp_path) == []


def command(*words: str) -> int:
    """Run the command in this process; returns its exit status."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["weighbridge", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def signalled(words: tuple[str, ...], point: Point, number: int, output: Path) -> int:
    """The wait status of the command in its own process, which is signalled at a point."""
    child = os.fork()
    if not child:
        code = 70
        with suppress(BaseException):
            sys.stdout = sys.stderr = output.open("w")
            for one in (signal.SIGINT, signal.SIGTERM):
                signal.signal(
                    one, signal.default_int_handler if one == signal.SIGINT else signal.SIG_DFL
                )
            fuse = Fuse(number, point.times)
            point.hook(pytest.MonkeyPatch(), fuse)
            code = command(*words)
            code = code if fuse.burnt else 71
        sys.stdout.flush()
        os._exit(code)
    return os.waitpid(child, 0)[1]


def marked(folder: Path, within_s: float = 30.0) -> list[str]:
    """Other processes that a run below the folder started; they may need a moment to end."""
    deadline = time.monotonic() + within_s
    while True:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    f"{MARK}={folder}".encode() in (process / "environ").read_bytes().split(b"\0")
                    and int(process.name) != os.getpid()
                ):
                    found.append(f"{process.name} {(process / 'cmdline').read_bytes()!r}")
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def complete_lines(folder: Path) -> bytes:
    path = folder / "steps.jsonl"
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1]


def deployments(folder: Path) -> list[Path]:
    return sorted((folder / "home" / "deployments").glob("*"))


def assert_all_there_and_nothing_else(folder: Path, lines: bytes) -> None:
    """Every step once, earlier ones byte for byte; nothing of a killed process is left."""
    store = RunStore.open(only(folder))
    assert (store.folder / "steps.jsonl").read_bytes().startswith(lines)
    assert Counter((step.key.layout, step.key.workers) for step in store.steps()) == {
        (layout, workers): 1 for layout in LAYOUTS for workers in (1, 4)
    }
    assert [step.order for step in store.steps()] == list(range(STEPS))
    assert all(step.valid for step in store.steps())
    assert store.manifest.state == "done"
    assert (store.derived / "report.html").exists()
    assert deployments(folder) == []
    assert not list(store.folder.rglob("*.part"))


@pytest.mark.parametrize("point", POINTS, ids=[point.name for point in POINTS])
def test_a_killed_run_can_be_read_and_resumed_and_leaves_nothing(
    tmp_path: Path, arguments: tuple[str, ...], point: Point
) -> None:
    status = signalled(arguments, point, signal.SIGKILL, tmp_path / "output")
    assert os.WIFSIGNALED(status), (status, (tmp_path / "output").read_text())
    assert marked(tmp_path) == []
    folder = only(tmp_path)
    lines = complete_lines(folder)
    assert lines.count(b"\n") == point.complete
    assert command("report", "--no-charts", str(folder)) == 0
    assert (folder / "derived" / "report.html").exists()
    assert command("resume", "--no-charts", str(folder)) == 0
    assert_all_there_and_nothing_else(tmp_path, lines)


# After the end of a run, its report can be interrupted and made again.
IN_THE_RUN = [point for point in POINTS if not point.name.startswith("while the report")]


@pytest.mark.parametrize(
    ("point", "number"),
    [(point, (signal.SIGINT, signal.SIGTERM)[index % 2]) for index, point in enumerate(IN_THE_RUN)],
    ids=[point.name for point in IN_THE_RUN],
)
def test_a_run_that_is_asked_to_end_tears_all_down_and_says_so(
    tmp_path: Path, arguments: tuple[str, ...], point: Point, number: int
) -> None:
    status = signalled(arguments, point, number, tmp_path / "output")
    printed = (tmp_path / "output").read_text()
    assert os.waitstatus_to_exitcode(status) == 128 + number, printed
    assert marked(tmp_path) == []
    assert deployments(tmp_path) == []
    folder = only(tmp_path)
    store = RunStore.open(folder)
    assert store.manifest.state == "interrupted"
    assert store.events()[-1].text == f"interrupted: {signal.Signals(number).name}"
    assert f"to resume: weighbridge resume {folder}" in printed
    # A line that was started is written completely or not at all: a signal loses no step.
    assert len(store.steps()) == complete_lines(folder).count(b"\n") >= point.complete
    assert all(
        (store.logs / f"{step.key.layout}-0" / "gateway-1").is_dir() for step in store.steps()
    )
    if point.name in ("in the middle of a step's line", "while taking down"):
        assert command("resume", "--no-charts", str(folder)) == 0
        assert_all_there_and_nothing_else(tmp_path, complete_lines(folder))
