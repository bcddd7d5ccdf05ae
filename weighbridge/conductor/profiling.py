"""Profiling one step in its window: perf of the daemons that serve it, block events of one disk.

Profiling makes no step fail: what is missing is an event of the run and a sentence in the report.
perf runs on this machine, outside the hosts and their limits, and only on their processes.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weighbridge.common.host import program_environment
from weighbridge.common.record import Record
from weighbridge.drivers.protocol import OnProgress, Progress
from weighbridge.results.run.profile import (
    EVENTS,
    FOLDER,
    Chosen,
    DiskTrace,
    Profile,
    ProfiledProgram,
    Stack,
    fold,
    folded,
    parse,
    unresolved,
)
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.topologies.deployment import Deployment

HERTZ: Final = 99
"""Not 100, so that periodic work of the system is not sampled each time or never."""
STACK_BYTES: Final = 8192
"""Stack copied per sample: distributions build without frame pointers, so perf unwinds it."""
BEGINNING_S: Final = 2.0
ENDING_S: Final = 20.0
READING_S: Final = 180.0
PMUS: Final = ("cpu", "cpu_core")
"""Hardware counters of CPUs, as the kernel names them."""


class PerfSupport(Record):
    """What this machine allows; a remark says why `event` is None or `blocks` false."""

    event: str | None
    blocks: bool
    remarks: tuple[str, ...]


def able() -> PerfSupport:
    """Try perf: it depends on the kernel, its settings, and this container or virtual machine."""
    if shutil.which("perf") is None:
        why = "no profile: there is no program perf (Debian: apt install linux-perf)"
        return PerfSupport(event=None, blocks=False, remarks=(why,))
    counters = any(Path("/sys/bus/event_source/devices", name).exists() for name in PMUS)
    event = "cycles"
    remarks: list[str] = []
    if not counters:
        event = "cpu-clock"
        remarks.append(
            "this machine has no hardware counters (no PMU): samples were taken by the CPU’s clock"
        )
    stacks = _tried("-e", event, "-F", str(HERTZ), "--call-graph", f"dwarf,{STACK_BYTES}")
    blocks = _tried("-e", EVENTS[0], "-a")
    if stacks:
        setting = Path("/proc/sys/kernel/perf_event_paranoid")
        level = (
            f"; perf_event_paranoid is {setting.read_text().strip()}" if setting.exists() else ""
        )
        remarks = [f"no stacks: perf cannot record {event} here: {stacks}{level}"]
    if blocks:
        remarks.append(
            f"no disk was traced: perf cannot record the kernel’s block events here: {blocks}"
        )
    return PerfSupport(event=None if stacks else event, blocks=not blocks, remarks=tuple(remarks))


def _tried(*options: str) -> str:
    """Why perf cannot record with these options; empty if it can."""
    line = ["perf", "record", *options, "-o", os.devnull, "--", "true"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=READING_S, check=False)
    if not done.returncode:
        return ""
    return next(filter(None, map(str.strip, done.stderr.splitlines())), f"status {done.returncode}")


@dataclass
class Perf:
    """A perf process that records until it is stopped."""

    data: Path
    process: subprocess.Popen[bytes]
    orders: int
    answers: int
    """Pipes to and from perf's --control."""
    cpu_s: float = 0.0

    @classmethod
    def start(cls, data: Path, options: Sequence[str]) -> Perf:
        """Start perf, ready but not recording yet. Raises OSError."""
        orders_out, orders_in = os.pipe()
        answers_out, answers_in = os.pipe()
        # -N and -B: keep no copies of programs in the home folder. -D -1: wait to be enabled.
        control = f"--control=fd:{orders_out},{answers_in}"
        line = ["perf", "record", *("-N", "-B", "-D", "-1"), control, "-o", str(data), *options]
        try:
            with data.with_suffix(".log").open("wb") as log:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(orders_out, answers_in),
                    # Ctrl-C in the conductor's terminal is for the conductor to handle.
                    start_new_session=True,
                )
        except BaseException:
            os.close(orders_in)
            os.close(answers_out)
            raise
        finally:
            os.close(orders_out)
            os.close(answers_in)
        return cls(data, process, orders_in, answers_out)

    def begin(self) -> bool:
        """Start recording; whether it does. On a busy machine, a slow start is not waited for."""
        try:
            os.write(self.orders, b"enable\n")
        except BrokenPipeError:
            return False
        ready, _, _ = select.select([self.answers], [], [], BEGINNING_S)
        return bool(ready and os.read(self.answers, 64))

    def stop(self) -> None:
        """Write what was recorded and end."""
        if self.process.returncode is not None:
            return
        self.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + ENDING_S
        while time.monotonic() < deadline:
            pid, status, use = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = use.ru_utime + use.ru_stime
                self._close()
                return
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        """End it in any case."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            self._close()

    def _close(self) -> None:
        os.close(self.orders)
        os.close(self.answers)

    def script(self, *options: str) -> str:
        """What was recorded, as text. Raises OSError, subprocess.SubprocessError."""
        # perf looks up names in the processes' mount namespaces, so they must still be there. No
        # debug symbols are fetched, nor inlined functions, which take minutes to find.
        line = ["perf", "script", "--no-inline", "-i", str(self.data), *options]
        environment = {**program_environment(), "DEBUGINFOD_URLS": ""}
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=READING_S,
            check=True,
            env=environment,
        )
        return done.stdout

    def words(self) -> str:
        """Its messages, in one line."""
        log = self.data.with_suffix(".log")
        return " ".join(log.read_text(errors="replace").split())[:300] if log.exists() else ""


def why_not(error: Exception) -> str:
    """Why perf could not print what it recorded."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"perf script ended with {error.returncode}: {str(error.stderr).strip()[-300:]}"
    return f"perf script: {error}"


LONGEST_S: Final = 30.0
"""The profiled part of a window: with two CPUs it is 50 MB of stacks already."""
KEPT_BYTES: Final = 4 * 2**20
"""perf.data is kept beside the profile if it is no larger."""


class Profiler:
    """Profiles the chosen step once on every layout, unless it is `complete` already."""

    def __init__(
        self,
        chosen: Chosen,
        store: RunStore,
        support: PerfSupport,
        *,
        complete: Collection[StepKey] = (),
    ) -> None:
        self._chosen = chosen
        self._store = store
        self._support = support
        self._done = {key.layout for key in complete if self._is(key)}

    def _is(self, key: StepKey) -> bool:
        chosen = self._chosen
        step = (chosen.workload, chosen.workers, None, None)
        return (key.workload, key.workers, key.layer, key.rate_per_s) == step

    @contextmanager
    def step(
        self, deployment: Deployment, tiers: Mapping[str, str], key: StepKey
    ) -> Iterator[OnProgress]:
        """Profile while the block runs, if this is the step; yields a listener for its progress."""
        if not self._is(key) or key.layout in self._done:
            yield _ignore
            return
        self._done.add(key.layout)
        remarks: tuple[str, ...] = ()
        if not deployment.hardware.of.contained:
            remarks = ("not profiled: only processes in containers of this machine are visible",)
        elif self._support.event is None and not self._support.blocks:
            remarks = self._support.remarks
        if remarks:
            self._events(key, remarks)
            yield _ignore
            return
        folder = self._store.folder / FOLDER / key.file_name
        folder.mkdir(parents=True, exist_ok=True)
        recording = _StepProfile(
            folder,
            self._support,
            programs_of(deployment, tiers),
            _disk_of(deployment, tiers),
            deployment.running_gateway.profile_remark,
        )
        try:
            yield recording.on_progress
        except BaseException:
            recording.abandon()
            raise
        self._events(key, recording.finish(key))

    def _events(self, key: StepKey, texts: Iterable[str]) -> None:
        for text in texts:
            self._store.event("profile", text, layout=key.layout)


def _ignore(_progress: Progress) -> None:
    """The listener of a step that is not profiled."""


@dataclass(frozen=True)
class _Disk:
    """The traced disk: `device` as in the kernel's events, such as `7,3`."""

    host: str
    name: str
    major: int
    minor: int

    @property
    def device(self) -> str:
        return f"{self.major},{self.minor}"


def programs_of(deployment: Deployment, tiers: Mapping[str, str]) -> dict[int, ProfiledProgram]:
    """The serving processes of lab hosts, by number on this machine."""
    from weighbridge.topologies.lab.cgroup import Cgroups  # noqa: PLC0415 - only for lab hosts
    from weighbridge.topologies.lab.host import LabHost  # noqa: PLC0415 - as above

    cgroups = Cgroups()
    found = {}
    for name, host in deployment.hosts.items():
        if not isinstance(host, LabHost) or name not in tiers:
            continue
        for pid in cgroups.pids(host.bundle.cgroup):
            try:
                program = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # it has ended
            if program not in ("sh", "sleep", "bash"):
                found[pid] = ProfiledProgram(
                    kind="storage" if tiers[name] == "storage" else "gateway",
                    host=name,
                    name=program,
                )
    return found


def _disk_of(deployment: Deployment, tiers: Mapping[str, str]) -> _Disk | None:
    """The last disk of the first storage host: its first may hold databases or a journal."""
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
class _StepProfile:
    """The profile of one step while it is recorded."""

    folder: Path
    support: PerfSupport
    programs: Mapping[int, ProfiledProgram]
    disk: _Disk | None
    remark: str = ""
    """A remark on profiles of these programs."""
    stacks: Perf | None = None
    blocks: Perf | None = None
    ready: bool = False
    started: float = 0.0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)

    def on_progress(self, progress: Progress) -> None:
        """Start perf in the warm-up; record from the window's start to its end or LONGEST_S."""
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
            if self.support.event is not None and self.programs:
                event = ("-e", self.support.event, "-F", str(HERTZ))
                pids = ("-p", ",".join(map(str, self.programs)))
                options = [*event, "--call-graph", f"dwarf,{STACK_BYTES}", *pids]
                self.stacks = Perf.start(self.folder / "perf.data", options)
            if self.support.blocks and self.disk is not None:
                only = f"dev == {self.disk.major << 20 | self.disk.minor}"
                options = [word for event in EVENTS for word in ("-e", event, "--filter", only)]
                self.blocks = Perf.start(self.folder / "blocks.data", ["-a", *options])
        except OSError as error:
            self.remarks.append(f"perf could not be started: {error}")

    def _begin(self) -> None:
        for perf in self._perfs():
            if not perf.begin():
                self.remarks.append(
                    "perf was not ready when the window began: part of it is missing. "
                    f"{perf.words()}".strip()
                )
        self.started = time.monotonic()

    def _stop(self) -> None:
        self.seconds = self._age_s
        for perf in self._perfs():
            perf.stop()

    def _perfs(self) -> list[Perf]:
        return [perf for perf in (self.stacks, self.blocks) if perf is not None]

    def abandon(self) -> None:
        """The step has failed: delete what was recorded."""
        for perf in self._perfs():
            perf.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, key: StepKey) -> tuple[str, ...]:
        """Write the profile; returns remarks on it. Raises only StoreError."""
        if self.started and not self.seconds:
            self._stop()
        for perf in self._perfs():
            perf.kill()
        if not self.started:
            self.remarks.append("the driver reported no window: nothing was profiled")
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
            event=self.support.event if stacks else None,
            hertz=HERTZ if stacks else None,
            samples=sum(stack.samples for stack in stacks),
            unresolved=unresolved(stacks),
            perf_cpu_s=sum(perf.cpu_s for perf in self._perfs()),
            disk=disk,
            remarks=(*self.support.remarks, *self.remarks),
        )
        if stacks:
            write_atomically(self.folder / "stacks.folded", folded(stacks))
        write_atomically(self.folder / "profile.json", profile.model_dump_json(indent=1) + "\n")
        for perf in self._perfs():
            perf.data.with_suffix(".log").unlink(missing_ok=True)
            perf.data.with_name(f"{perf.data.name}.old").unlink(missing_ok=True)
            if perf.data.exists() and perf.data.stat().st_size > KEPT_BYTES:
                perf.data.unlink()
        summary = (
            f"{profile.samples} samples of {len(self.programs)} processes in {self.seconds:.1f} s "
            "of the window"
        )
        return (summary, *profile.remarks)

    def _read_stacks(self) -> tuple[Stack, ...]:
        if self.stacks is None:
            return ()
        try:
            return fold(self.stacks.script("-F", "comm,pid,tid,time,ip,sym,dso"), self.programs)
        except (OSError, subprocess.SubprocessError) as error:
            self.remarks.append(f"no stacks: {why_not(error)} {self.stacks.words()}")
            return ()

    def _read_blocks(self) -> DiskTrace | None:
        if self.blocks is None or self.disk is None:
            return None
        try:
            events = self.blocks.script("-F", "time,event,trace")
        except (OSError, subprocess.SubprocessError) as error:
            self.remarks.append(f"no disk was traced: {why_not(error)} {self.blocks.words()}")
            return None
        return parse(
            events,
            device=self.disk.device,
            host=self.disk.host,
            disk=self.disk.name,
            seconds=self.seconds,
        )
