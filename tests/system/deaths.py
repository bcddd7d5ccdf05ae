"""Runs in which a daemon, or a whole host, is killed while a step is in its window: by its number,
found in its very container.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from small_lab import cgroups_of, read, within
from suite_command import started
from weighbridge.environment import place
from weighbridge.results.run.step import StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.topologies.lab.cgroup import TREE, Cgroups
from weighbridge.topologies.lab.ending import find_leftovers
from weighbridge.topologies.lab.runc import Container, Runc

IN_WINDOW = '"phase":"measure"'
"""What telemetry of a step has in it as soon as its window is open."""


@dataclass(frozen=True)
class Ended:
    """A run that has come to its end: its folder, the exit status of its command, and what that
    printed.
    """

    store: RunStore
    code: int
    printed: str


def kill(host: str, pattern: str) -> Callable[[], None]:
    """What kills the processes of a host whose command lines the pattern is found in."""

    def doing() -> None:
        container = _container(host)
        numbers = Cgroups().pids(f"/{TREE}/{container.deployment}/{host}")
        found = [pid for pid in numbers if re.search(pattern, _command_line(pid))]
        assert found, [_command_line(pid) for pid in numbers]
        for pid in found:
            os.kill(pid, signal.SIGKILL)

    return doing


def take_host(host: str) -> Callable[[], None]:
    """What ends a host with all that runs on it, as when its power goes."""

    def doing() -> None:
        Runc(place().state / "runc").delete(_container(host).id)

    return doing


def compare(
    folder: Path, suite: str, layout: str, deaths: Mapping[str, Callable[[], None]], *arguments: str
) -> Ended:
    """`weighbridge compare` of one layout, in which each death happens once, in the window of the
    first step of the workload that it is named by.
    """
    (folder / "deaths.yaml").write_text(suite)
    out = folder / "runs"
    output = folder / "output"
    words = f"compare --no-attest --hardware lab-cpu --suite {folder}/deaths.yaml"
    with output.open("w") as file:
        run = started(f"{words} --layouts {layout} --out {out} {' '.join(arguments)}", file)
    left = dict(deaths)
    try:
        deadline = time.monotonic() + 400
        while run.poll() is None:
            assert time.monotonic() < deadline, output.read_text()
            for workload in list(left):
                if any(
                    IN_WINDOW in path.read_text()
                    for path in out.glob(f"*/telemetry/*.{workload}.*")
                ):
                    left.pop(workload)()
            time.sleep(0.02)
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.wait(timeout=300)
    assert not left, output.read_text()
    (made,) = out.iterdir()
    return Ended(RunStore.open(made), run.returncode, output.read_text())


def left_behind(store: RunStore | None = None) -> list[str]:
    """What is left of all deployments of this test's place, and of those of a run: things that the
    lab knows of; and as the kernel lists them, processes and mounts in whatever namespace, disks
    and cgroups.
    """
    events = store.events() if store is not None else ()
    labels = {event.text.split()[0] for event in events if event.kind in ("up", "down")}
    where = place()
    ours = {f"{folder}/" for folder in (where.deployments, where.state)} | labels
    found = [str(one) for one in find_leftovers(home=where.home, state=where.state)]
    for process in Path("/proc").glob("[0-9]*"):
        said = b"".join(read(process / name) for name in ("cmdline", "environ", "mounts", "cgroup"))
        found += [f"process {process.name}: {one}" for one in ours if one.encode() in said]
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        found += [f"{backing}: {one}" for one in ours if one.encode() in read(backing)]
    return found + [path for label in labels for path in cgroups_of(f"{TREE}/{label}")]


def soon_nothing_left(store: RunStore | None = None) -> None:
    """Nothing is left; the kernel may take a moment to free what the last process held."""
    within(20, lambda: not left_behind(store))
    assert left_behind(store) == []


def failures(store: RunStore, workload: str) -> Mapping[str, int]:
    """Failed operations of all steps of a workload, by class."""
    found: Counter[str] = Counter()
    for step in store.steps():
        found.update(failures_of(step) if step.key.workload == workload else {})
    return found


def failures_of(step: StepResult) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for tally in step.measurement.tallies if step.measurement is not None else ():
        found.update(tally.errors)
    return found


def _container(host: str) -> Container:
    (found,) = (one for one in Runc(place().state / "runc").containers() if one.host == host)
    return found


def _command_line(pid: int) -> str:
    return read(Path(f"/proc/{pid}/cmdline")).replace(b"\0", b" ").decode(errors="replace")
