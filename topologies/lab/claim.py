"""A deployment's claim on this machine: one runs at a time, and records what it uses beforehand."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.record import Record
from weighbridge.common.safe_files import open_lock
from weighbridge.topologies.hosts import LABEL, Label
from weighbridge.topologies.lab.cgroup import Write
from weighbridge.topologies.lab.runc import Runc

STATE = Path("/run/weighbridge")
"""For what must not survive a reboot: the lock, the claims, runc's state."""
RETRY_S = 0.02
CHECK_S = 1.0
"""More than another process needs to check whether there is a run."""


class ClaimedMachine(Record):
    """What a deployment uses of this machine beside containers; `pid` is its conductor's."""

    deployment: Label
    pid: int
    since: str
    folder: Path
    root_limits: tuple[Write, ...] = ()
    handed_on: frozenset[str] | None = None
    """Controllers that cgroups below the root had before the lab's were made; None: not known."""

    def write(self, state: Path) -> None:
        path = path_of(state, self.deployment)
        path.parent.mkdir(parents=True, exist_ok=True)
        safe_files.write(path.parent, path.name, self.model_dump_json().encode())

    def forget(self, state: Path) -> None:
        """Remove it: nothing is left of the deployment."""
        path_of(state, self.deployment).unlink(missing_ok=True)


def claims(state: Path) -> tuple[ClaimedMachine, ...]:
    """All claims here, also of ended conductors. Raises TargetError for an unreadable one."""
    found = []
    for path in sorted((state / "claims").glob("*.json")):
        try:
            found.append(ClaimedMachine.model_validate_json(path.read_text()))
        except FileNotFoundError:
            continue
        except (OSError, ValidationError) as error:
            raise TargetError(f"{path} is not a claim of a deployment: {error}") from error
    return tuple(found)


class MachineHold:
    """A run's hold on this machine, which keeps others away between two of its deployments."""

    def __init__(self, state: Path) -> None:
        """Acquire it. Raises MachineInUse naming the run that has it."""
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A process that only checks for a run (see Claim) holds it briefly without a name.
        self._lock = _acquired(state / "run", CHECK_S)
        self._since = _now()
        self.describe("")

    def describe(self, run: str) -> None:
        _describe(self._lock, f"the run {run}" if run else "a run", self._since)

    def release(self) -> None:
        """Release it; the kernel does so too when this process ends."""
        os.ftruncate(self._lock, 0)
        os.close(self._lock)


class Claim:
    """The only claim there can be, held until it is released or this process ends."""

    def __init__(
        self, deployment: str, folder: Path, state: Path, handed_on: frozenset[str] | None = None
    ) -> None:
        """Acquire it. Raises UsageError naming another deployment that is running or starting."""
        if not LABEL.fullmatch(deployment):
            raise UsageError(
                f"{deployment!r} is not a deployment's label: lower case letters, digits, hyphens"
            )
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.state = state
        try:
            os.close(_acquired(state / "run"))  # another process's run holds it between deployments
        except MachineInUse as busy:
            if busy.pid != str(os.getpid()):
                raise
        self._lock: int | None = _acquired(state / "lock")
        try:
            _refuse_leftovers(state)
            since = _now()
            self.claimed = ClaimedMachine(
                deployment=deployment,
                pid=os.getpid(),
                since=since,
                folder=folder,
                handed_on=handed_on,
            )
            _describe(self._lock, deployment, since)
            self.claimed.write(state)
        except BaseException:
            self._unlock()
            raise

    def put(self, limits: tuple[Write, ...]) -> None:
        """Record limits in the root cgroup, and put them on. Raises TargetError."""
        self._record((*self.claimed.root_limits, *limits))
        for limit in limits:
            limit.apply()

    def lift(self) -> None:
        """Remove the limits in the root cgroup. Raises TargetError."""
        for limit in self.claimed.root_limits:
            limit.lift()
        self._record(())

    def _record(self, limits: tuple[Write, ...]) -> None:
        self.claimed = self.claimed.model_copy(update={"root_limits": limits})
        self.claimed.write(self.state)

    @property
    def descriptor(self) -> int:
        """The lock's descriptor, for processes that start hosts: they keep cleanups away."""
        if self._lock is None:
            raise ValueError("the claim has been released")
        return self._lock

    def release(self) -> None:
        """Release it: nothing of the deployment is left."""
        if self._lock is not None:
            self.claimed.forget(self.state)
            os.ftruncate(self._lock, 0)
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def exclude_conductors(state: Path, *, wait_s: float = 60) -> Iterator[None]:
    """Hold the lock while leftovers are removed.

    Raises UsageError while a conductor is running. If it was killed, a host may still be starting:
    its `runc` holds the lock too, and this waits for it.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = _acquired(state / "lock", wait_s)
    try:
        yield
    finally:
        os.close(descriptor)


class MachineInUse(UsageError):
    """Another process holds the lock. `alive`: it is the conductor, not something it left."""

    def __init__(self, said: bytes) -> None:
        """`said`: what the lock's file has, as `_describe` writes it."""
        try:
            holder = {name: str(value) for name, value in json.loads(said).items()}
        except ValueError:
            holder = {}
        self.pid = pid = holder.get("pid", "")
        self.alive = not pid or Path(f"/proc/{pid}").exists()
        deployment = holder.get("deployment", "another deployment")
        since = f" since {holder['since']}" if "since" in holder else ""
        super().__init__(
            f"{deployment} has been running on this machine{since} (process "
            f"{pid or 'not known yet'}), and only one can run at a time",
            advice="wait for that process, or end it: it tears its deployment down; `weighbridge "
            "down` removes what it may leave",
        )


def deployments(state: Path) -> set[str]:
    """Deployments with a claim or containers here. Raises TargetError, CommandFailed."""
    containers = Runc(state / "runc").containers()
    return {one.deployment for one in claims(state)} | {one.deployment for one in containers}


def _refuse_leftovers(state: Path) -> None:
    if left := deployments(state):
        raise UsageError(
            f"{', '.join(sorted(left))}: left running on this machine, and only one deployment "
            "can run at a time",
            advice="`weighbridge down` tears it down",
        )


def _acquired(path: Path, wait_s: float = 0.0) -> int:
    """A descriptor that holds the lock; waits for holders that have ended or are not named yet.

    Raises MachineInUse at once if a named process that is alive holds it, else after `wait_s`.
    """
    deadline = time.monotonic() + wait_s
    while True:
        descriptor = open_lock(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy = MachineInUse(os.pread(descriptor, 4096, 0))
            os.close(descriptor)
            if (busy.pid and busy.alive) or time.monotonic() >= deadline:
                raise busy from None
        else:
            return descriptor
        time.sleep(RETRY_S)


def _describe(descriptor: int, deployment: str, since: str) -> None:
    about = {"deployment": deployment, "pid": os.getpid(), "since": since}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(about).encode(), 0)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def path_of(state: Path, deployment: str) -> Path:
    """The file of a deployment's claim."""
    return state / "claims" / f"{deployment}.json"
