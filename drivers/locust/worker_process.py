"""One process's share of a step, whether it is the only process or one of many Locust workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeVar

import gevent
import gevent.event
from pydantic import Field, NonNegativeInt

from weighbridge.common.errors import DriverError
from weighbridge.common.record import Record
from weighbridge.drivers.locust.account import Account, account_at
from weighbridge.drivers.locust.cpu_allowance import allowance
from weighbridge.drivers.locust.prepared_objects import Renewal, VersionedBuckets
from weighbridge.drivers.locust.worker_group import (
    NativeWorkerGroup,
    Window,
    WorkerGroup,
    WorkerProgress,
)
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import TRAITS, Workload, remaining

if TYPE_CHECKING:
    from weighbridge.drivers.locust.sdk import SdkWorkerGroup

DELETE_PARALLEL = 8


class Begin(Record):
    """A worker process's share of a step: `count` of its `workers`, `apart` from `first` on."""

    workload: Workload
    workers: Annotated[int, Field(ge=1)]
    repeat: NonNegativeInt
    first: NonNegativeInt = 0
    count: NonNegativeInt
    apart: Annotated[int, Field(ge=1)] = 1


class Empty(Record):
    """No argument, or no answer."""


class End(Record):
    """How long outstanding requests may take to end, in seconds."""

    timeout_s: Annotated[float, Field(ge=0)]


class CutOff(Record):
    """Requests outstanding at the end of the window that were cut off or timed out in the drain."""

    requests: NonNegativeInt
    renewed: NonNegativeInt = 0
    """How often the token was renewed, since the gateway had forgotten the last one."""
    replaced: NonNegativeInt = 0
    """How often the token was renewed before the last one expired."""
    without: str = ""
    """How often there was no new token or key, and why; "" if never."""


class Deleted(Record):
    """How many objects were deleted, and how many deletions failed."""

    deleted: NonNegativeInt = 0
    failed: NonNegativeInt = 0


Argument = TypeVar("Argument", bound=Record)
Answer = TypeVar("Answer", bound=Record)


class WorkerProcess:
    """The workers of a group in this process. QUESTIONS lists what the master may ask."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._allowance = allowance()
        self._begin: Begin | None = None
        self._group: WorkerGroup | None = None
        self._left_behind: list[WorkerGroup] = []
        self.sdk: SdkWorkerGroup | None = None
        """The group, where its users make the requests themselves."""
        self._released = gevent.event.Event()
        self._joined = 0
        self._fault = ""
        self._deleted = Deleted()
        self._cpu_at_open_s = 0.0
        self._timeouts_at_close = 0
        self._renewal: Renewal | None = None

    @cached_property
    def _account(self) -> Account:
        """Of all steps: its last token may still be good where there is no new one."""
        return account_at(self.setup)

    def begin(self, command: Begin) -> Empty:
        """Create a step's worker group. Its workers are those of Locust's users, once released."""
        account = self._account
        fault = account.renew()
        # Of the step: limits are off while a driver starts.
        self._allowance = allowance()
        cpus = self._allowance.cpus / self.setup.processes
        self._begin = command
        self._joined = 0
        if self.setup.users == "engine":
            found = remaining(command.workload)
            self._group = group = NativeWorkerGroup(self.setup, account, found, cpus)
            if "read-version" in found.operations:
                group.know_versions(VersionedBuckets(self.setup, account, found).ids())
        else:
            from weighbridge.drivers.locust.sdk import SdkWorkerGroup  # noqa: PLC0415 - not wanted by engine users

            self.sdk = SdkWorkerGroup(self.setup, account, command.workload, command.count)
            self._group = self.sdk
        self._renewal = Renewal(account, self._group, fault)
        return Empty()

    def release(self) -> Empty:
        """Let the workers of all users begin, of those that wait and of those that come."""
        self._running()
        self._released.set()
        return Empty()

    def user_joins(self) -> int:
        """Start the next worker for a Locust user that has started, once released; its number."""
        self._released.wait()
        begin, group = self._running()
        if self._joined >= begin.count:
            raise DriverError(
                f"Locust started more users here than this process's share of {begin.count}"
            )
        index = begin.first + self._joined * begin.apart
        self._joined += 1
        try:
            group.add_worker(index, begin.workers, begin.repeat)
        except (ValueError, OSError) as error:
            # Locust alone would end the user and only log this.
            self._fault = f"worker {index} of {begin.workers} cannot be started: {error}"
            raise
        return index

    def check(self) -> None:
        """Raise DriverError when a worker could not be started."""
        if self._fault:
            raise DriverError(self._fault)

    def user_leaves(self, index: int) -> None:
        """Its Locust user is stopped: let a worker complete its outstanding request."""
        if self._group is not None:
            self._group.remove_worker(index)

    def progress(self) -> WorkerProgress:
        """The group's progress; asks for a new token when its own was refused, or expires soon."""
        self.check()
        progress = self._running()[1].progress()
        if self._renewal is not None:
            self._renewal.look(progress)
        return progress

    def open_window(self) -> Empty:
        group = self._running()[1]
        self._cpu_at_open_s = time.process_time()
        group.open_window()
        return Empty()

    def window_so_far(self) -> Window:
        return self._running()[1].snapshot()

    def close_window(self) -> Window:
        """Stop recording; returns the window."""
        group = self._running()[1]
        group.close_window()
        self._timeouts_at_close = group.progress().errors.get("timeout", 0)
        cpu_s = time.process_time() - self._cpu_at_open_s
        used = {"cpu_s": cpu_s, "cpu_limit": self._allowance.cpus, "note": self._allowance.note}
        return group.snapshot().model_copy(update=used)

    def end(self, command: End) -> CutOff:
        """End the group. What it wrote is remembered for `delete_written`."""
        begin, group = self._running()
        self._group = self.sdk = None
        self._released.clear()
        renewal = self._renewal
        if renewal is not None:
            renewal.end()
        cut = group.stop(command.timeout_s)
        # These timed out after the window had closed: otherwise a gateway that hangs at the end
        # would show no error at all.
        late = group.progress().errors.get("timeout", 0) - self._timeouts_at_close
        # A deletion would add one more version: those that were not prepared are listed instead.
        makes = any(TRAITS[one].makes for one in begin.workload.operations)
        if makes and not begin.workload.versions:
            self._left_behind.append(group)
        requests = min(begin.count, cut + late)
        if renewal is None:
            return CutOff(requests=requests)
        return CutOff(
            requests=requests,
            renewed=renewal.forgotten,
            replaced=renewal.expired,
            without=renewal.note,
        )

    def delete_written(self) -> Deleted:
        """Delete what groups wrote and did not delete; a group is forgotten even if that fails."""
        self._deleted = Deleted()
        account = self._account
        if self._left_behind and account.renewable:
            account.renew()
        while self._left_behind:
            group = self._left_behind.pop()
            if account.renewable:
                group.renew(account)
            renewal = Renewal(account, group)
            earlier, before = self._deleted, group.progress()
            group.delete_written(DELETE_PARALLEL)
            running = True
            while running:
                now = group.progress()
                renewal.look(now)
                running = now.running > 0
                self._deleted = Deleted(
                    deleted=earlier.deleted + now.done - before.done,
                    failed=earlier.failed + now.failed - before.failed,
                )
                gevent.sleep(0.02 if running else 0)
            renewal.end()
        return self._deleted

    def deleted(self) -> Deleted:
        return self._deleted

    def close(self) -> None:
        if self._renewal is not None:
            self._renewal.end()
        if self._group is not None:
            self._group.stop(0.0)
            self._group = self.sdk = None

    def _running(self) -> tuple[Begin, WorkerGroup]:
        if self._begin is None or self._group is None:
            raise DriverError("no step is running in this worker process")
        return self._begin, self._group


@dataclass(frozen=True)
class Question(Generic[Argument, Answer]):
    """A question to every worker process: its name in messages, argument, answer, and function."""

    name: str
    argument: type[Argument]
    answer: type[Answer]
    do: Callable[[WorkerProcess, Argument], Answer]


BEGIN: Final = Question("begin", Begin, Empty, WorkerProcess.begin)
RELEASE: Final = Question("release", Empty, Empty, lambda process, _: process.release())
PROGRESS: Final = Question("progress", Empty, WorkerProgress, lambda process, _: process.progress())
OPEN: Final = Question("open", Empty, Empty, lambda process, _: process.open_window())
CLOSE: Final = Question("close", Empty, Window, lambda process, _: process.close_window())
END: Final = Question("end", End, CutOff, WorkerProcess.end)
DELETE_WRITTEN: Final = Question(
    "delete-written", Empty, Deleted, lambda process, _: process.delete_written()
)
DELETED: Final = Question("deleted", Empty, Deleted, lambda process, _: process.deleted())
QUESTIONS: Final[Mapping[str, Question[Any, Any]]] = {
    one.name: one for one in (BEGIN, RELEASE, PROGRESS, OPEN, CLOSE, END, DELETE_WRITTEN, DELETED)
}
