"""Profiling one chosen step: perf of the daemons that serve it, and the block events of one disk, while its window is open.

Nothing of it makes a step fail: what could not be had is an event of the run and a sentence of the report. perf runs on this
machine, outside the hosts and their limits; it is told processes, so that nothing else of the machine is looked at.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weighbridge.common.record import Record
from weighbridge.drivers.driver import Heard
from weighbridge.drivers.order import Progress
from weighbridge.results.charts.flame import flame
from weighbridge.results.record import block_trace
from weighbridge.results.record.block_trace import DiskTrace, disk_csv
from weighbridge.results.record.profile import FOLDER, Chosen, Profile, ProfiledProgram, Stack, fold, folded, unresolved
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.store import RunStore, write_whole
from weighbridge.topologies.deployment import Deployment

HERTZ: Final = 99
"""Not 100, so that work that the system does by its own clock is not hit each time or never."""
STACK_BYTES: Final = 8192
"""Of each thread's stack, a sample: distributions build without frame pointers, so perf unwinds what it has copied."""
LONGEST_S: Final = 30.0
"""Of a window no more is looked at: at two CPUs it is 50 MB of stacks already."""
KEPT_BYTES: Final = 4 * 2**20
"""perf.data is kept beside what was made of it when it is no larger."""
BEGINNING_S: Final = 2.0
ENDING_S: Final = 20.0
READING_S: Final = 180.0
PMUS: Final = ("cpu", "cpu_core")
"""Hardware counters of CPUs, as the kernel names them."""


class Able(Record):
    """What this machine allows. `event` is None, or `blocks` false, where there is a remark that says why."""

    event: str | None
    blocks: bool
    remarks: tuple[str, ...]


def able() -> Able:
    """Ask perf by trying: it depends on the kernel, its settings, and what may be done in this container or virtual machine."""
    if shutil.which("perf") is None:
        why = "no profile: there is no program perf (Debian: apt install linux-perf)"
        return Able(event=None, blocks=False, remarks=(why,))
    counters = any(Path("/sys/bus/event_source/devices", name).exists() for name in PMUS)
    event = "cycles" if counters else "cpu-clock"
    remarks = [] if counters else ["this machine shows no hardware counters (no PMU): samples were taken by the CPU’s clock"]
    stacks = _tried("-e", event, "--call-graph", f"dwarf,{STACK_BYTES}")
    blocks = _tried("-e", block_trace.EVENTS[0], "-a")
    if stacks:
        setting = Path("/proc/sys/kernel/perf_event_paranoid")
        level = f"; perf_event_paranoid is {setting.read_text().strip()}" if setting.exists() else ""
        remarks = [f"no stacks: perf cannot record {event} here: {stacks}{level}"]
    if blocks:
        remarks.append(f"no disk was traced: perf cannot record the kernel’s block events here: {blocks}")
    return Able(event=None if stacks else event, blocks=not blocks, remarks=tuple(remarks))


def _tried(*options: str) -> str:
    """Why perf cannot record so; empty when it can."""
    with tempfile.TemporaryDirectory() as folder:
        line = ["perf", "record", *options, "-F", str(HERTZ), "-o", f"{folder}/perf.data", "--", "true"]
        if "-a" in options:
            line = [word for word in line if word not in ("-F", str(HERTZ))]
        done = subprocess.run(line, capture_output=True, text=True, timeout=READING_S, check=False)
    said = [text.strip() for text in done.stderr.splitlines() if text.strip()]
    return (said[0] if said else f"status {done.returncode}") if done.returncode else ""


class Profiler:
    """Profiles the chosen step of every layout, once, but where it is among the `whole` ones, which were measured before.

    `allowed`: what this machine allows.
    """

    def __init__(self, chosen: Chosen, store: RunStore, allowed: Able, *, whole: Collection[StepKey] = ()) -> None:
        self._chosen = chosen
        self._store = store
        self._able = allowed
        self._done = {key.layout for key in whole if self._is(key)}

    def _is(self, key: StepKey) -> bool:
        return (key.workload, key.workers, key.layer) == (self._chosen.workload, self._chosen.workers, None)

    @contextmanager
    def step(self, deployment: Deployment, tiers: Mapping[str, str], key: StepKey) -> Iterator[Heard]:
        """Profile while the block runs, if this is the step; what is given wants to hear all progress of it."""
        if not self._is(key) or key.layout in self._done:
            yield _nothing
            return
        self._done.add(key.layout)
        if not deployment.hardware.of.contained:
            self._event(key, "not profiled: processes are seen only of hosts that this machine raised as containers")
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
            folder, self._able, programs_of(deployment, tiers), _disk_of(deployment, tiers), deployment.standing.profile_remark
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
    """The processes of a lab's hosts that serve, by their number on this machine; what hosts are held by is left out."""
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
                found[pid] = ProfiledProgram(kind="storage" if tiers[name] == "storage" else "gateway", host=name, name=called)
    return found


def _disk_of(deployment: Deployment, tiers: Mapping[str, str]) -> _Disk | None:
    """The last disk of the first storage host: where a host has several, its first may hold databases or a journal."""
    from weighbridge.topologies.lab.host import LabHost  # noqa: PLC0415 - as above

    for name, host in deployment.hosts.items():
        if isinstance(host, LabHost) and tiers.get(name) in ("storage", "shared") and host.bundle.disks:
            disk = host.bundle.disks[-1]
            return _Disk(name, disk.path.rpartition("/")[2], disk.major, disk.minor)
    return None


@dataclass
class _Perf:
    """A perf that records until it is told to stop."""

    data: Path
    process: subprocess.Popen[bytes]
    orders: int
    answers: int
    """Pipes: what it is told, and that it has done it."""
    cpu_s: float = 0.0

    @classmethod
    def start(cls, data: Path, options: Sequence[str]) -> _Perf:
        """Start one that is ready and does not record yet. Raises OSError."""
        orders_out, orders_in = os.pipe()
        answers_out, answers_in = os.pipe()
        # -N and -B: it keeps no copies of programs in the home folder. -D -1: it waits until it is told to begin.
        line = ["perf", "record", "-N", "-B", "-D", "-1", f"--control=fd:{orders_out},{answers_in}", "-o", str(data), *options]
        try:
            with data.with_suffix(".log").open("wb") as log:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(orders_out, answers_in),
                    # Ctrl-C in the conductor's terminal is the conductor's to decide about.
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
        """Have it record from now on; whether it does. One that takes long to start up (a busy machine) is not waited for."""
        try:
            os.write(self.orders, b"enable\n")
        except BrokenPipeError:
            return False
        ready, _, _ = select.select([self.answers], [], [], BEGINNING_S)
        return bool(ready and os.read(self.answers, 64))

    def stop(self) -> None:
        """Have it write what it has and end."""
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
        """End it whatever it does."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            self._close()

    def _close(self) -> None:
        os.close(self.orders)
        os.close(self.answers)

    def told(self, *options: str) -> str:
        """What was recorded, in words. Raises OSError, subprocess.SubprocessError."""
        # Names are looked up where the processes are: perf goes into their mount namespaces, so they must still be there. No
        # debug symbols are fetched from anywhere, and inlined functions, which cost minutes to find, are not told.
        line = ["perf", "script", "--no-inline", "-i", str(self.data), *options]
        environment = {**os.environ, "DEBUGINFOD_URLS": ""}
        done = subprocess.run(
            line, capture_output=True, text=True, errors="replace", timeout=READING_S, check=True, env=environment
        )
        return done.stdout

    def words(self) -> str:
        """What it said to people, in one line."""
        log = self.data.with_suffix(".log")
        return " ".join(log.read_text(errors="replace").split())[:300] if log.exists() else ""


@dataclass
class _Recording:
    """One step's profile while it is taken."""

    folder: Path
    able: Able
    programs: Mapping[int, ProfiledProgram]
    disk: _Disk | None
    remark: str = ""
    """What there is to say of profiles of these programs."""
    stacks: _Perf | None = None
    blocks: _Perf | None = None
    ready: bool = False
    started: float = 0.0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)

    def heard(self, progress: Progress) -> None:
        """Get ready in the warm-up, begin with the window, end with it or when it has been long enough."""
        if progress.phase in ("warm-up", "measure") and not self.ready:
            self._ready()
        if progress.phase == "measure" and not self.started:
            self._begin()
        elif self.started and not self.seconds and (progress.phase != "measure" or self._age_s > LONGEST_S):
            self._stop()

    @property
    def _age_s(self) -> float:
        return time.monotonic() - self.started

    def _ready(self) -> None:
        self.ready = True
        try:
            if self.able.event is not None and self.programs:
                pids = ",".join(map(str, self.programs))
                options = ["-e", self.able.event, "-F", str(HERTZ), "--call-graph", f"dwarf,{STACK_BYTES}", "-p", pids]
                self.stacks = _Perf.start(self.folder / "perf.data", options)
            if self.able.blocks and self.disk is not None:
                only = f"dev == {self.disk.major << 20 | self.disk.minor}"
                options = [word for event in block_trace.EVENTS for word in ("-e", event, "--filter", only)]
                self.blocks = _Perf.start(self.folder / "blocks.data", ["-a", *options])
        except OSError as error:
            self.remarks.append(f"perf could not be started: {error}")

    def _begin(self) -> None:
        for perf in (self.stacks, self.blocks):
            if perf is not None and not perf.begin():
                self.remarks.append(f"perf was not ready when the window opened: some of it is missing. {perf.words()}".strip())
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
        """Write what was found; returns what there is to say of it. Nothing is raised but what StoreError tells."""
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
            write_whole(self.folder / "flame.svg", flame(stacks, title=f"{key.layout}, {key.workload}, {key.workers} workers"))
        if disk is not None:
            write_whole(self.folder / "disk.csv", disk_csv(disk))
        write_whole(self.folder / "profile.json", profile.model_dump_json(indent=1) + "\n")
        self._tidy()
        said = f"{profile.samples} samples of {len(self.programs)} processes in {self.seconds:.1f} s of the window"
        return (said, *profile.remarks)

    def _read_stacks(self) -> tuple[Stack, ...]:
        if self.stacks is None:
            return ()
        try:
            return fold(self.stacks.told("-F", "comm,pid,tid,time,ip,sym,dso"), self.programs)
        except (OSError, subprocess.SubprocessError) as error:
            self.remarks.append(f"no stacks: {_why(error)} {self.stacks.words()}")
            return ()

    def _read_blocks(self) -> DiskTrace | None:
        if self.blocks is None or self.disk is None:
            return None
        try:
            told = self.blocks.told("-F", "time,event,trace")
        except (OSError, subprocess.SubprocessError) as error:
            self.remarks.append(f"no disk was traced: {_why(error)} {self.blocks.words()}")
            return None
        return block_trace.parse(told, device=self.disk.device, host=self.disk.host, disk=self.disk.name, seconds=self.seconds)

    def _tidy(self) -> None:
        """Keep perf's own file where it is small, so that one may look at it by other tools."""
        for perf in (self.stacks, self.blocks):
            if perf is not None:
                perf.data.with_suffix(".log").unlink(missing_ok=True)
                perf.data.with_name(f"{perf.data.name}.old").unlink(missing_ok=True)
                if perf.data.exists() and perf.data.stat().st_size > KEPT_BYTES:
                    perf.data.unlink()


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"perf script ended with {error.returncode}: {str(error.stderr).strip()[-300:]}"
    return f"perf script: {error}"
