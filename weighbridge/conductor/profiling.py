"""Profiling one chosen step: perf of the daemons that serve it, and the block events of one disk,
while its window is open.

Nothing of it makes a step fail: what could not be had is an event of the run and a sentence of the
report. perf runs on this machine, outside the hosts and their limits; it is told processes, so that
nothing else of the machine is looked at.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weighbridge.conductor.perf import HERTZ, STACK_BYTES, Able, Perf, why_not
from weighbridge.drivers.driver import Heard
from weighbridge.drivers.order import Progress
from weighbridge.results.charts.flame import flame
from weighbridge.results.record import block_trace
from weighbridge.results.record.block_trace import DiskTrace, disk_csv
from weighbridge.results.record.profile import (
    FOLDER,
    Chosen,
    Profile,
    ProfiledProgram,
    Stack,
    fold,
    folded,
    unresolved,
)
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.store import RunStore, write_whole
from weighbridge.topologies.deployment import Deployment

LONGEST_S: Final = 30.0
"""Of a window no more is looked at: at two CPUs it is 50 MB of stacks already."""
KEPT_BYTES: Final = 4 * 2**20
"""perf.data is kept beside what was made of it when it is no larger."""


class Profiler:
    """Profiles the chosen step of every layout, once, but where it is among the `whole` ones, which
    were measured before.

    `allowed`: what this machine allows.
    """

    def __init__(
        self, chosen: Chosen, store: RunStore, allowed: Able, *, whole: Collection[StepKey] = ()
    ) -> None:
        self._chosen = chosen
        self._store = store
        self._able = allowed
        self._done = {key.layout for key in whole if self._is(key)}

    def _is(self, key: StepKey) -> bool:
        return (key.workload, key.workers, key.layer) == (
            self._chosen.workload,
            self._chosen.workers,
            None,
        )

    @contextmanager
    def step(
        self, deployment: Deployment, tiers: Mapping[str, str], key: StepKey
    ) -> Iterator[Heard]:
        """Profile while the block runs, if this is the step; what is given wants to hear all
        progress of it.
        """
        if not self._is(key) or key.layout in self._done:
            yield _nothing
            return
        self._done.add(key.layout)
        if not deployment.hardware.of.contained:
            self._event(
                key,
                "not profiled: processes are seen only of hosts that this machine raised as "
                "containers",
            )
            yield _nothing
            return
        if self._able.event is None and not self._able.blocks:
            for remark in self._able.remarks:
                self._event(key, remark)
            yield _nothing
            return
        folder = self._store.folder / FOLDER / key.file_name
        folder.mkdir(parents=True, exist_ok=True)
        recording = _Recording(
            folder,
            self._able,
            programs_of(deployment, tiers),
            _disk_of(deployment, tiers),
            deployment.standing.profile_remark,
        )
        try:
            yield recording.heard
        except BaseException:
            recording.abandon()
            raise
        for remark in recording.finish(key):
            self._event(key, remark)

    def _event(self, key: StepKey, text: str) -> None:
        self._store.event("profile", text, layout=key.layout)


def _nothing(_progress: Progress) -> None:
    """Hear of a step that is not profiled."""


@dataclass(frozen=True)
class _Disk:
    """The disk that is traced: `device` as the kernel's events name it, such as `7,3`."""

    host: str
    name: str
    major: int
    minor: int

    @property
    def device(self) -> str:
        return f"{self.major},{self.minor}"


def programs_of(deployment: Deployment, tiers: Mapping[str, str]) -> dict[int, ProfiledProgram]:
    """The processes of a lab's hosts that serve, by their number on this machine; what hosts are
    held by is left out.
    """
    from weighbridge.topologies.lab.cgroup import Cgroups  # noqa: PLC0415 - the lab is wanted only where there is one
    from weighbridge.topologies.lab.host import LabHost  # noqa: PLC0415

    cgroups = Cgroups()
    found = {}
    for name, host in deployment.hosts.items():
        if not isinstance(host, LabHost) or name not in tiers:
            continue
        for pid in cgroups.pids(host.bundle.cgroup):
            try:
                called = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # it has ended
            if called not in ("sh", "sleep", "bash"):
                found[pid] = ProfiledProgram(
                    kind="storage" if tiers[name] == "storage" else "gateway",
                    host=name,
                    name=called,
                )
    return found


def _disk_of(deployment: Deployment, tiers: Mapping[str, str]) -> _Disk | None:
    """The last disk of the first storage host: where a host has several, its first may hold
    databases or a journal.
    """
    from weighbridge.topologies.lab.host import LabHost  # noqa: PLC0415 - as above

    for name, host in deployment.hosts.items():
        if (
            isinstance(host, LabHost)
            and tiers.get(name) in ("storage", "shared")
            and host.bundle.disks
        ):
            disk = host.bundle.disks[-1]
            return _Disk(name, disk.path.rpartition("/")[2], disk.major, disk.minor)
    return None


@dataclass
class _Recording:
    """One step's profile while it is taken."""

    folder: Path
    able: Able
    programs: Mapping[int, ProfiledProgram]
    disk: _Disk | None
    remark: str = ""
    """What there is to say of profiles of these programs."""
    stacks: Perf | None = None
    blocks: Perf | None = None
    ready: bool = False
    started: float = 0.0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)

    def heard(self, progress: Progress) -> None:
        """Get ready in the warm-up, begin with the window, end with it or when it has been long
        enough.
        """
        if progress.phase in ("warm-up", "measure") and not self.ready:
            self._ready()
        if progress.phase == "measure" and not self.started:
            self._begin()
        elif (
            self.started
            and not self.seconds
            and (progress.phase != "measure" or self._age_s > LONGEST_S)
        ):
            self._stop()

    @property
    def _age_s(self) -> float:
        return time.monotonic() - self.started

    def _ready(self) -> None:
        self.ready = True
        try:
            if self.able.event is not None and self.programs:
                pids = ",".join(map(str, self.programs))
                options = [
                    "-e",
                    self.able.event,
                    "-F",
                    str(HERTZ),
                    "--call-graph",
                    f"dwarf,{STACK_BYTES}",
                    "-p",
                    pids,
                ]
                self.stacks = Perf.start(self.folder / "perf.data", options)
            if self.able.blocks and self.disk is not None:
                only = f"dev == {self.disk.major << 20 | self.disk.minor}"
                options = [
                    word for event in block_trace.EVENTS for word in ("-e", event, "--filter", only)
                ]
                self.blocks = Perf.start(self.folder / "blocks.data", ["-a", *options])
        except OSError as error:
            self.remarks.append(f"perf could not be started: {error}")

    def _begin(self) -> None:
        for perf in (self.stacks, self.blocks):
            if perf is not None and not perf.begin():
                self.remarks.append(
                    "perf was not ready when the window opened: some of it is missing. "
                    f"{perf.words()}".strip()
                )
        self.started = time.monotonic()

    def _stop(self) -> None:
        self.seconds = self._age_s
        for perf in (self.stacks, self.blocks):
            if perf is not None:
                perf.stop()

    def abandon(self) -> None:
        """The step has failed: nothing is kept of what was recorded."""
        for perf in (self.stacks, self.blocks):
            if perf is not None:
                perf.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, key: StepKey) -> tuple[str, ...]:
        """Write what was found; returns what there is to say of it.

        Nothing is raised but what StoreError tells.
        """
        if self.started and not self.seconds:
            self._stop()
        for perf in (self.stacks, self.blocks):
            if perf is not None:
                perf.kill()
        if not self.started:
            self.remarks.append("the driver told of no window: nothing was profiled")
        stacks, disk = self._read_stacks(), self._read_blocks()
        if self.programs and self.remark:
            self.remarks.append(self.remark)
        profile = Profile(
            layout=key.layout,
            api=key.api,
            workload=key.workload,
            workers=key.workers,
            repeat=key.repeat,
            seconds=self.seconds,
            event=self.able.event if stacks else None,
            hertz=HERTZ if stacks else None,
            samples=sum(stack.samples for stack in stacks),
            unresolved=unresolved(stacks),
            perf_cpu_s=sum(perf.cpu_s for perf in (self.stacks, self.blocks) if perf is not None),
            disk=disk,
            remarks=(*self.able.remarks, *self.remarks),
        )
        if stacks:
            write_whole(self.folder / "stacks.folded", folded(stacks))
            write_whole(
                self.folder / "flame.svg",
                flame(stacks, title=f"{key.layout}, {key.workload}, {key.workers} workers"),
            )
        if disk is not None:
            write_whole(self.folder / "disk.csv", disk_csv(disk))
        write_whole(self.folder / "profile.json", profile.model_dump_json(indent=1) + "\n")
        self._tidy()
        said = (
            f"{profile.samples} samples of {len(self.programs)} processes in "
            f"{self.seconds:.1f} s of the window"
        )
        return (said, *profile.remarks)

    def _read_stacks(self) -> tuple[Stack, ...]:
        if self.stacks is None:
            return ()
        try:
            return fold(self.stacks.told("-F", "comm,pid,tid,time,ip,sym,dso"), self.programs)
        except (OSError, subprocess.SubprocessError) as error:
            self.remarks.append(f"no stacks: {why_not(error)} {self.stacks.words()}")
            return ()

    def _read_blocks(self) -> DiskTrace | None:
        if self.blocks is None or self.disk is None:
            return None
        try:
            told = self.blocks.told("-F", "time,event,trace")
        except (OSError, subprocess.SubprocessError) as error:
            self.remarks.append(f"no disk was traced: {why_not(error)} {self.blocks.words()}")
            return None
        return block_trace.parse(
            told,
            device=self.disk.device,
            host=self.disk.host,
            disk=self.disk.name,
            seconds=self.seconds,
        )

    def _tidy(self) -> None:
        """Keep perf's own file where it is small, so that one may look at it by other tools."""
        for perf in (self.stacks, self.blocks):
            if perf is not None:
                perf.data.with_suffix(".log").unlink(missing_ok=True)
                perf.data.with_name(f"{perf.data.name}.old").unlink(missing_ok=True)
                if perf.data.exists() and perf.data.stat().st_size > KEPT_BYTES:
                    perf.data.unlink()
