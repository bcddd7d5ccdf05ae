"""The disks of a deployment that have a model: files of one FUSE program, `vdisk_server`.

The program runs in a mount namespace of its own, so that its mount ends with it, and in a cgroup of
the deployment, by which leftovers are found. Loop devices are attached to its files; closing the
last of them ends it once it was asked to.

With a journal, these disks' power can be cut: `record`, `mark` as often as wanted under one load,
`cut`, and for each mark `restore` and, when the disks were used, `cut` again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from weighbridge.common.errors import MissingPrerequisite, ServiceFailed, TargetError
from weighbridge.common.host import ModelDiskCounters
from weighbridge.common.program_lines import NoLine, ProgramLines, last_lines
from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.common.structure import CutDisk
from weighbridge.common.tool_output import json_value
from weighbridge.topologies.disk_models import PROGRAM, DiskModel
from weighbridge.topologies.hardware import Disk
from weighbridge.topologies.lab.cgroup import TREE, Cgroups
from weighbridge.topologies.lab.program import LabProcess, send
from weighbridge.topologies.lab.runc import PRIVATE

FUSE: Final = Path("/dev/fuse")
GROUP: Final = "_disks"
"""Its cgroup below the deployment's, and its folder below the bundles: no host's name."""
ANSWER_S: Final = 30.0
"""It answers in a millisecond, and even on a very busy machine in less than this."""
_FIRST: Final = ("nice", "-n", "-20")
"""Disks do not wait for the programs that use them: a late answer would be a slower disk. Where
that is not allowed, `nice` says so in the log and goes on.
"""
LOG: Final = "vdisk.out"

# Writes itself into the cgroup before it becomes the program: it has the label from its start, and
# holds the claim's lock until then, also if the conductor is killed meanwhile. In bash, since sh
# closes no descriptor above 9.
_START: Final = 'echo $$ >"$1"; eval "exec $2<&-"; shift 2; exec "$@"'


@dataclass(frozen=True)
class WantedDisk:
    """A disk to serve. `name` is unique on this machine: it begins with the deployment's label."""

    name: str
    file: Path
    size_bytes: int
    model: DiskModel

    @property
    def asked(self) -> dict[str, Any]:
        """As the program reads it."""
        model = self.model.model_dump(mode="json")
        given = {"name": self.name, "file": str(self.file), "bytes": self.size_bytes}
        return {**given, "model": model}


class DiskAtMark(Record):
    """What a disk had been given at a mark, since it was recorded."""

    name: str
    """As in `WantedDisk`."""
    writes: Count
    flushes: Count
    unflushed_blocks: Count
    """Blocks of 4 KiB that had been written and not flushed."""


class Mark(Record):
    """An instant, the same for all disks, at which their power can be cut afterwards."""

    number: int
    """From 1 on."""
    disks: tuple[DiskAtMark, ...]
    """In the order in which they were wanted."""


class _Restored(Record):
    disks: tuple[CutDisk, ...]


Answer = TypeVar("Answer", bound=Record)


def file_name(deployment: str, host: str, index: int) -> str:
    """The name of a disk: it tells whose a loop device is, also after the mount is gone."""
    return f"{deployment}.{host}.{index}"


def wanted_disks(
    deployment: str, disks: Mapping[str, Sequence[Disk]], folder: Path
) -> tuple[WantedDisk, ...]:
    """Those of all hosts' disks that have a model, with files in `folder`."""
    return tuple(
        WantedDisk(file_name(deployment, host, index), folder / f"{host}.{index}", size, model)
        for host, own in disks.items()
        for index, disk in enumerate(own)
        if (model := disk.model) is not None and (size := disk.size) is not None
    )


def group_of(deployment: str) -> str:
    """The cgroup of the program."""
    return f"/{TREE}/{deployment}/{GROUP}"


class ModelDisks:
    """The running program. `pid` is its process; orders may come from several threads."""

    def __init__(self, process: subprocess.Popen[bytes], mount: Path, log: Path) -> None:
        self._process = process
        self._mount = mount
        self._log = log
        self._lock = threading.Lock()
        self._first = LabProcess.of(process.pid)
        self._lines = ProgramLines(process)

    @classmethod
    def start(
        cls,
        deployment: str,
        disks: Sequence[WantedDisk],
        *,
        cgroups: Cgroups,
        folder: Path,
        log: Path,
        lock: int,
        journal: bool = False,
    ) -> ModelDisks:
        """Serve disks at a folder, which is made. `lock` is the claim's descriptor. With a
        `journal`, their power can be cut, and they take no time whatever their models.

        Raises MissingPrerequisite where this machine refuses them, TargetError otherwise.
        """
        require()
        mount = folder / "mount"
        mount.mkdir(parents=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        group = cgroups.make(group_of(deployment))
        argv = ["bash", "-ec", _START, "bash", str(group / "cgroup.procs"), str(lock)]
        with log.open("ab") as out:
            process = subprocess.Popen(
                [*argv, *_FIRST, *PRIVATE, str(PROGRAM), "serve", str(mount)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                pass_fds=(lock,),
                start_new_session=True,
            )
        started = cls(process, mount, log)
        asked: dict[str, Any] = {"disks": [disk.asked for disk in disks]}
        if journal:
            asked["journal"] = str(folder / "journal")
        try:
            started._ask(asked, "ready")
        except BaseException:
            started.kill()
            raise
        return started

    @property
    def pid(self) -> int:
        return self._process.pid

    def path(self, name: str) -> Path:
        """Where this process can open the file of a disk: in the program's mount namespace."""
        return Path(f"/proc/{self.pid}/root{self._mount}") / name

    def is_up(self) -> bool:
        """Whether it is running; without it all I/O to its disks fails."""
        return self._first is not None and self._first.running

    def pace(self, *, on: bool) -> None:
        """Let disks take the time of their models, or none. Raises TargetError."""
        self._ask({"order": "pace", "on": on}, "paced")

    def counts(self) -> Mapping[str, ModelDiskCounters]:
        """What each disk has done, by name. Raises TargetError."""
        answer = self._ask({"order": "count"}, "disks")
        try:
            return {
                one.pop("name"): ModelDiskCounters(**one) for one in map(dict[str, Any], answer)
            }
        except (TypeError, KeyError) as error:
            raise TargetError(f"vdisk: unknown counters: {error}") from error

    def fail(self, name: str, *, on: bool) -> None:
        """Let all I/O to a disk fail, or have it answer again as it was. Raises TargetError."""
        self._ask({"order": "fail", "disk": name, "on": on}, "failed")

    def record(self, *, flushes: bool = True) -> None:
        """Remember what is written and flushed from now on, once. Without `flushes`, disks answer
        those, and lose what they flushed like all the rest. Raises TargetError.
        """
        self._ask({"order": "record", "flushes": flushes}, "recording")

    def mark(self) -> Mark:
        """Remember this instant: requests that were answered before are in it, and none that are
        sent after this returns. Raises TargetError.
        """
        return _checked(Mark, self._ask({"order": "mark"}, "marked"))

    def cut(self) -> None:
        """Let all I/O fail from now on. Raises TargetError, also if a write was not recorded since
        the journal's file system is full.
        """
        self._ask({"order": "cut"}, "cut")

    def restore(self, mark: int, *, keep: float, seed: int) -> tuple[CutDisk, ...]:
        """Let disks be, after `cut`, as if their power was cut at a mark. Each block that was not
        flushed then is kept with a chance of `keep`, in any of its versions; `seed` decides which.

        What is written to them from now on is gone at the next `restore`, of any mark. Raises
        TargetError, also while a disk is open, for which it waits some seconds.
        """
        order = {"order": "restore", "mark": mark, "keep": keep, "seed": seed}
        return _checked(_Restored, self._ask(order, "restored")).disks

    def check(self) -> None:
        """Raise ServiceFailed if it has ended: I/O to its disks fails from then on."""
        if not self.is_up():
            tail = last_lines(self._log, 15)
            what = "the program of the disks has ended"
            raise ServiceFailed("this machine", "vdisk", what, log=str(self._log), tail=tail)

    def kill(self) -> None:
        """End it at once; all I/O to its disks fails."""
        self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Close the pipes and reap it, after it was ended. Idempotent."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0)

    def _ask(self, order: Mapping[str, object], expected: str) -> Any:
        with self._lock:
            try:
                self._lines.send(json.dumps(order), ANSWER_S)
                line = self._lines.next(ANSWER_S)
            except NoLine as error:
                tail = "; ".join(last_lines(self._log, 5)) or f"{self._log} is empty"
                raise TargetError(f"vdisk {error}: {tail}") from None
        answer = json_value("vdisk", line, TargetError)
        if expected not in answer:
            raise TargetError(f"vdisk: {answer.get('error', answer)}")
        return answer[expected]


def _checked(kind: type[Answer], answer: object) -> Answer:
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        raise TargetError(f"vdisk: an unknown answer: {error}") from error


def end(pids: Sequence[int]) -> None:
    """Ask programs of disks to end when the last disk is closed, and to take no time until then."""
    for process in filter(None, map(LabProcess.of, pids)):
        send(process, signal.SIGTERM)


def require() -> None:
    """Raise MissingPrerequisite where this machine cannot have disks with a model."""
    missing = lacking()
    if missing is not None:
        raise MissingPrerequisite(
            f"a disk of the hardware has a model, which this machine cannot have: {missing}",
            advice="Load FUSE (modprobe fuse; a container needs /dev/fuse and the right to mount), "
            "or limit the disk by `iops` and `bandwidth` instead of `model`.",
        )


def lacking() -> str | None:
    """What this machine lacks for disks with a model; None: nothing. Mounts once, and unmounts."""
    if not PROGRAM.is_file():
        return f"{PROGRAM} is missing: run `make setup`"
    if not FUSE.is_char_device():
        return f"there is no {FUSE}"
    if os.geteuid() != 0:
        return "it needs root"
    with tempfile.TemporaryDirectory(prefix="weighbridge-vdisk-") as folder:
        try:
            done = subprocess.run(
                [*PRIVATE, str(PROGRAM), "try", folder],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=ANSWER_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"its program does not run: {error}"
    return None if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"
