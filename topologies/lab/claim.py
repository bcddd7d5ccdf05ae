"""The claim of a deployment on this machine: one stands at a time, and what it takes is written
down before it is taken.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from weighbridge.common import inside
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.locks import open_lock
from weighbridge.common.record import Record
from weighbridge.topologies.lab.cgroup import Write
from weighbridge.topologies.lab.runc import Runc

STATE = Path("/run/weighbridge")
"""What must not survive a reboot, since nothing of what it tells of does: the lock, the claims,
runc's state.
"""
LOOK_AGAIN_S = 0.02
GLANCE_S = 1.0
"""Longer than it takes to look whether a run is there."""
LABEL = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")


class RootLimit(Record):
    """A limit in a file of the root cgroup, as `7:3 10485760`; it is taken away by writing the
    device and 0.
    """

    path: Path
    text: str

    def lift(self) -> None:
        """Take the limit away where it is still this one: the device may be another's by now.

        Raises TargetError.
        """
        with contextlib.suppress(FileNotFoundError):
            if self.text in self.path.read_text().splitlines():
                Write(self.path, f"{self.text.split()[0]} 0").apply()


class ClaimedMachine(Record):
    """What a deployment has of this machine beside containers and their cgroups.

    `pid` is its conductor.
    """

    deployment: str
    pid: int
    since: str
    folder: Path
    root_limits: tuple[RootLimit, ...] = ()

    def write(self, state: Path) -> None:
        """Write it whole or not at all."""
        path = _path(state, self.deployment)
        path.parent.mkdir(parents=True, exist_ok=True)
        inside.write(path.parent, path.name, self.model_dump_json().encode())

    def forget(self, state: Path) -> None:
        """Remove it: there is nothing left of the deployment."""
        _path(state, self.deployment).unlink(missing_ok=True)


def claims(state: Path) -> tuple[ClaimedMachine, ...]:
    """What is claimed on this machine, also by conductors that are gone.

    Raises TargetError for a claim that cannot be read.
    """
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
    """The hold of a run on this machine: between two of its deployments nothing stands, and nobody
    else's may.
    """

    def __init__(self, state: Path) -> None:
        """Take it. Raises AtWork naming the run that has it."""
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        deadline = time.monotonic() + GLANCE_S
        while True:
            try:
                self._lock = _locked(state / "run")
                break
            except AtWork as busy:
                # Who only looks whether there is a run (see Claim) holds it for a moment, and says
                # nothing of itself.
                if (busy.pid and busy.alive) or time.monotonic() > deadline:
                    raise
            time.sleep(LOOK_AGAIN_S)
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self.tell("")

    def tell(self, run: str) -> None:
        """Have others be told in which folder the run is."""
        about = {
            "deployment": f"the run {run}" if run else "a run",
            "pid": os.getpid(),
            "since": self._since,
        }
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(about).encode(), 0)

    def release(self) -> None:
        """Give it back; the kernel does when this process ends."""
        os.ftruncate(self._lock, 0)
        os.close(self._lock)


class Claim:
    """The one claim that may be made; held until it is released or this process ends."""

    def __init__(self, deployment: str, folder: Path, state: Path) -> None:
        """Take it. Raises UsageError when another deployment stands or is being raised, naming
        it.
        """
        if not LABEL.fullmatch(deployment):
            raise UsageError(
                f"{deployment!r} cannot be the label of a deployment: lower case letters, digits "
                "and hyphens"
            )
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.state = state
        _refuse_another_run(state)
        self._lock: int | None = _locked(state / "lock")
        try:
            _refuse_what_stands(state)
            since = datetime.now(UTC).isoformat(timespec="seconds")
            self.claimed = ClaimedMachine(
                deployment=deployment, pid=os.getpid(), since=since, folder=folder
            )
            about = {"deployment": deployment, "pid": os.getpid(), "since": since}
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, json.dumps(about).encode(), 0)
            self.claimed.write(state)
        except BaseException:
            self._unlock()
            raise

    def add(self, limits: tuple[RootLimit, ...]) -> None:
        """Write down limits that are about to be put on in the root cgroup."""
        self.claimed = self.claimed.model_copy(
            update={"root_limits": (*self.claimed.root_limits, *limits)}
        )
        self.claimed.write(self.state)

    def lift(self) -> None:
        """Take the limits in the root cgroup off. Raises TargetError."""
        for limit in self.claimed.root_limits:
            limit.lift()
        self.claimed = self.claimed.model_copy(update={"root_limits": ()})
        self.claimed.write(self.state)

    @property
    def descriptor(self) -> int:
        """The lock's, for processes that start hosts: while one of them is at work, nothing may be
        swept.
        """
        if self._lock is None:
            raise ValueError("the claim has been released")
        return self._lock

    def release(self) -> None:
        """Give it back: nothing of the deployment is left."""
        if self._lock is not None:
            self.claimed.forget(self.state)
            os.ftruncate(self._lock, 0)
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def nobody_at_work(state: Path, *, wait_s: float = 60) -> Iterator[None]:
    """Hold the lock while leftovers are taken away.

    Raises UsageError while a conductor is at work. Of one that was killed, a host may still be
    starting: its `runc` holds the lock too, and is waited for.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            descriptor = _locked(state / "lock")
            break
        except AtWork as busy:
            # Who has not said yet who it is, or does not say it any more, is asked again.
            if (busy.pid and busy.alive) or time.monotonic() > deadline:
                raise
        time.sleep(LOOK_AGAIN_S)
    try:
        yield
    finally:
        os.close(descriptor)


class AtWork(UsageError):
    """Another process holds the claim.

    `alive`: whether that is the conductor, not something it left.
    """

    def __init__(self, told: Mapping[str, str]) -> None:
        self.pid = pid = told.get("pid", "")
        self.alive = not pid or Path(f"/proc/{pid}").exists()
        super().__init__(
            f"{told.get('deployment', 'another deployment')} stands on this machine since "
            f"{told.get('since', 'just now')} "
            f"(process {pid or 'not known yet'}), and only one stands at a time",
            advice="wait for that process, or end it: it takes its deployment away; `weighbridge "
            "down` removes what it may leave",
        )


def _refuse_another_run(state: Path) -> None:
    """Raise AtWork where a run of another process holds the machine, whether anything of it stands
    in this moment or not.
    """
    try:
        os.close(_locked(state / "run"))
    except AtWork as busy:
        if busy.pid != str(os.getpid()):
            raise


def _refuse_what_stands(state: Path) -> None:
    standing = {one.deployment for one in claims(state)} | {
        one.deployment for one in Runc(state / "runc").containers()
    }
    if standing:
        raise UsageError(
            f"{', '.join(sorted(standing))}: left standing on this machine, and only one "
            "deployment stands at a time",
            advice="`weighbridge down` takes it away",
        )


def _locked(path: Path) -> int:
    """A descriptor that holds the lock. Raises AtWork."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        told = _told(descriptor)
        os.close(descriptor)
        raise AtWork(told) from None
    return descriptor


def _told(descriptor: int) -> dict[str, str]:
    """What the holder of the lock wrote into it; empty in the moment before it has."""
    try:
        return {
            name: str(value) for name, value in json.loads(os.pread(descriptor, 4096, 0)).items()
        }
    except ValueError:
        return {}


def _path(state: Path, deployment: str) -> Path:
    return state / "claims" / f"{deployment}.json"
