"""For tests of tunings: a made-up gateway, and a clock."""

from __future__ import annotations

import itertools
import os
from types import SimpleNamespace

import pytest

from stub_tuning import Tunable, opened
from weighbridge.common.registry import Registry
from weighbridge.conductor import pass_runner
from weighbridge.topologies import loader
from weighbridge.tuning import trial_deployment, tuner


@pytest.fixture
def made_up_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway whose settings decide how fast it is, and a driver without a process."""
    monkeypatch.setattr(loader, "STORES", Registry("none", "gateway", own={"tunable": Tunable}))
    monkeypatch.setattr(trial_deployment, "opened", opened)
    monkeypatch.setattr(pass_runner, "opened", opened)
    # The kernel keeps the pages of a killed process.
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances with each call: trials are compared by when they began."""
    ticks = itertools.count()
    ticking = SimpleNamespace(monotonic=lambda: float(next(ticks)))
    monkeypatch.setattr(tuner, "time", ticking)
    monkeypatch.setattr(trial_deployment, "time", ticking)
