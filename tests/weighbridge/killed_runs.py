"""For tests: runs with made-up measurements whose process is killed at any point."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fake_driver import Answering
from stub_run import Run, StubGateway, fake_driver_settings
from tests.weighbridge.command_line import trial
from weighbridge import run as running
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.registry import Registry
from weighbridge.conductor.conductor import RESUMED, Conductor
from weighbridge.conductor.plan import Plan
from weighbridge.drivers.kind import OpenedDriver
from weighbridge.drivers.protocol import Progress, Setup
from weighbridge.results.run.step import Pass, StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.suites import Suite
from weighbridge.topologies import loader
from weighbridge.topologies.deployment import Deployment

LAYOUTS = ("rgw-a", "swift-b")


def compared_stubs(
    folder: Path, patch: pytest.MonkeyPatch, *, more: str = "", workloads: str = ""
) -> tuple[str, ...]:
    """The words that compare two stubs by a suite with these additions, with made-up figures."""
    patch.setattr(loader, "STORES", Registry("none", "gateway", own={"stub": StubGateway}))
    patch.setattr(running, "Doing", partial(running.Doing, settings=fake_driver_settings()))
    for name in ("home", "state"):
        patch.setenv(f"WEIGHBRIDGE_{name.upper()}", str(folder / name))
    small = {"objects": "{size: 4KiB}", "workers": "[1, 4]", "runtime": "2s", "warmup": "5s"}
    suite = trial("swift", more=more, **small)
    (folder / "suite.yaml").write_text(suite + workloads)
    files = [folder / f"{name}.yaml" for name in LAYOUTS]
    for name, file in zip(LAYOUTS, files, strict=True):
        text = f"name: {name}\nabout: A stub\ngateway: stub\nrelease: '1'\nplace: {{}}\n"
        file.write_text(text)
    return (
        *("compare", "--suite", f"{folder}/suite.yaml", "--layouts", ",".join(map(str, files))),
        *("--hardware", "loopback", "--no-attest", "--no-charts", "--out", f"{folder}/runs"),
    )


class Watched:
    """A display that remembers, and kills its process at the `at`-th call for `what`."""

    def __init__(self, what: str = "", at: int = 0) -> None:
        self.what, self.at = what, at
        self.begun: list[tuple[StepKey, int]] = []
        self.said: list[str] = []

    def _called(self, what: str) -> None:
        if what == self.what:
            self.at -= 1
            if not self.at:
                os.kill(os.getpid(), signal.SIGKILL)

    def say(self, text: str) -> None:
        self.said.append(text)
        self._called(text.split(maxsplit=1)[0])

    def begins(self, key: StepKey, number: int) -> None:
        self.begun.append((key, number))
        self._called("begins")

    def progress(self, progress: Progress) -> None:
        self._called(progress.phase)

    def ended(self, result: StepResult) -> None:
        self._called("ended")


def conduct(run: Run, store: RunStore, display: Watched, **named: Any) -> None:
    Conductor(run.plan(), run.planned, store, display, run.place, **named).run()


def killed(run: Run, what: str, at: int) -> RunStore:
    """The folder of a run whose process was killed at the `at`-th call for `what`."""
    store = run.store()
    child = os.fork()
    if not child:
        try:
            conduct(run, store, Watched(what, at))
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), "it should have been killed, and ended by itself"
    return RunStore.open(store.folder)


def only(folder: Path) -> Path:
    (found,) = (folder / "runs").iterdir()
    return found


def planned_keys(plan: Plan) -> list[StepKey]:
    return [key for visit in plan.visits for key in plan.keys(visit)]


def go_on(store: RunStore, run: Run) -> Watched:
    """Resume a run as `resume` does, without its checks of the machine."""
    seen = Watched()
    store.event(RESUMED, "goes on")
    conduct(run, store, seen)
    return seen


@contextmanager
def opened(
    _deployment: Deployment, suite: Suite, one: Pass, **_named: object
) -> Iterator[OpenedDriver]:
    target = Endpoint(api=one.api, url="http://here", user="u", key="k")
    yield OpenedDriver(
        Answering(Setup(target=target, bucket_prefix="wb-test", seed=suite.seed)), {}
    )
