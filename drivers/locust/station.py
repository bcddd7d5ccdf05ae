"""A station: one process's share of a step, whether it is the only process or one Locust worker of
many.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

import gevent
import gevent.event
from locust import User, task
from locust.env import Environment
from pydantic import Field, NonNegativeInt

from weighbridge.common.errors import DriverError
from weighbridge.common.record import Record
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.object_servers import account_at
from weighbridge.drivers.locust.worker_group import NativeCrew, Window, WorkerGroup, WorkerProgress
from weighbridge.drivers.order import Setup
from weighbridge.suites import Workload

log = logging.getLogger(__name__)

DELETE_PARALLEL = 8
RENEW_APART_S = 1.0
"""A token is asked for so much later than the last one at the earliest: who is refused that as well
does not become load.
"""


class Begin(Record):
    """What a station is told of a step.

    Its workers are numbers `rank`, `rank + stations`, ... of the step's `workers`.
    """

    workload: Workload
    workers: Annotated[int, Field(ge=1)]
    repeat: NonNegativeInt
    rank: NonNegativeInt = 0
    stations: Annotated[int, Field(ge=1)] = 1

    @property
    def share(self) -> int:
        """How many of the workers are this station's."""
        return len(range(self.rank, self.workers, self.stations))


class Nothing(Record):
    """No argument, or no answer."""


class End(Record):
    """How long requests in hand may take to end, in seconds."""

    timeout_s: Annotated[float, Field(ge=0)]


class Cut(Record):
    """How many of the requests in hand at the end of the window were never answered: cut off, or
    out of time in the drain.
    """

    requests: NonNegativeInt
    renewed: NonNegativeInt = 0
    """How often a new token was got, since the gateway had forgotten the one before."""


class Deleted(Record):
    """How many objects were deleted, and how many could not be."""

    deleted: NonNegativeInt = 0
    failed: NonNegativeInt = 0


Told = TypeVar("Told", bound=Record)
Answer = TypeVar("Answer", bound=Record)


class Station:
    """Holds a Locust environment, whose users are the workers of a crew, and does what the step
    asks of it.

    What it can be asked is in QUESTIONS: from this process directly, or in Locust's messages from
    the master.
    """

    def __init__(self, setup: Setup, allowance: CpuAllowance) -> None:
        self.setup = setup
        self._allowance = allowance
        self._cpus = allowance.cpus / setup.processes
        self._begin: Begin | None = None
        self._crew: WorkerGroup | None = None
        self._left_behind: list[WorkerGroup] = []
        self._next = 0
        self._fault = ""
        self._deleted = Deleted()
        self._cpu_at_open_s = 0.0
        self._timeouts_at_close = 0
        self._account: Account | None = None
        self._renewing: gevent.Greenlet | None = None
        self._renewed, self._renewed_s, self._refused = 0, 0.0, 0
        self.environment = Environment(user_classes=[_user_class(self)], catch_exceptions=True)

    def begin(self, order: Begin) -> Nothing:
        """Make the crew of a step: its workers are added when Locust starts their users."""
        account = account_at(self.setup)
        account.authenticate()
        self._account, self._renewed, self._renewed_s, self._refused = account, 0, 0.0, 0
        self._begin = order
        self._next = order.rank
        if self.setup.users == "engine":
            self._crew = NativeCrew(self.setup, account, order.workload, self._cpus)
        else:
            from weighbridge.drivers.locust.sdk import SdkCrew  # noqa: PLC0415 - not wanted by engine users

            self._crew = SdkCrew(self.setup, account, order.workload, order.share)
        return Nothing()

    def user_joins(self) -> int:
        """A Locust user has started: give it the next worker of this station.

        Returns its number.
        """
        begin, crew = self._running()
        index = self._next
        if index >= begin.workers:
            raise DriverError(
                f"Locust started more users here than this station's share of {begin.workers}"
            )
        self._next += begin.stations
        try:
            crew.add_worker(index, begin.workers, begin.repeat)
        except (ValueError, OSError) as error:
            # Raised to Locust alone it would end the user and be forgotten in a log.
            self._fault = f"worker {index} of {begin.workers} cannot be started: {error}"
            raise
        return index

    def check(self) -> None:
        """Raise DriverError when a worker could not be started."""
        if self._fault:
            raise DriverError(self._fault)

    def user_leaves(self, index: int) -> None:
        """Its Locust user is stopped: let a worker finish what it has in hand."""
        if self._crew is not None:
            self._crew.remove_worker(index)

    def pulse(self) -> WorkerProgress:
        """How the crew is getting on.

        Where its token was refused since the last time, a new one is being got.
        """
        self.check()
        crew = self._running()[1]
        pulse = crew.pulse()
        refused = pulse.errors.get("http-401", 0)
        if refused > self._refused and self._account is not None and self._account.renewable:
            now_s = time.monotonic()
            if (
                self._renewing is None or self._renewing.ready()
            ) and now_s - self._renewed_s >= RENEW_APART_S:
                self._refused, self._renewed_s = refused, now_s
                # Auth that hangs must not lengthen the window, which ends by who asks for pulses.
                self._renewing = gevent.spawn(self._renew, crew, self._account)
        return pulse

    def _renew(self, crew: WorkerGroup, account: Account) -> None:
        try:
            account.authenticate()
        except DriverError as error:
            # The step goes on with what it has: what is refused is counted, and its last error says
            # more.
            log.warning("no new token: %s", error)
            return
        crew.renew(account)
        self._renewed += 1

    def open_window(self) -> Nothing:
        """Record from now on."""
        crew = self._running()[1]
        self._cpu_at_open_s = time.process_time()
        crew.open_window()
        return Nothing()

    def close_window(self) -> Window:
        """Record no more; returns what was."""
        crew = self._running()[1]
        crew.close_window()
        self._timeouts_at_close = crew.pulse().errors.get("timeout", 0)
        cpu_s = time.process_time() - self._cpu_at_open_s
        used = {"cpu_s": cpu_s, "cpu_limit": self._allowance.cpus, "note": self._allowance.note}
        return crew.snapshot().model_copy(update=used)

    def end(self, order: End) -> Cut:
        """End the crew. What it wrote is remembered for `delete_written`."""
        begin, crew = self._running()
        self._crew = None
        if self._renewing is not None:
            self._renewing.kill()
        cut = crew.stop(order.timeout_s)
        # The window had closed when these ran out of time: a gateway that hangs at the end would
        # show no error at all.
        late = crew.pulse().errors.get("timeout", 0) - self._timeouts_at_close
        if "write" in begin.workload.operations:
            self._left_behind.append(crew)
        return Cut(requests=min(begin.share, cut + late), renewed=self._renewed)

    def delete_written(self) -> Deleted:
        """Delete what crews wrote and did not delete.

        A crew that could not delete all is forgotten all the same.
        """
        self._deleted = Deleted()
        while self._left_behind:
            crew = self._left_behind.pop()
            earlier, before = self._deleted, crew.pulse()
            crew.delete_written(DELETE_PARALLEL)
            running = True
            while running:
                now = crew.pulse()
                running = now.running > 0
                self._deleted = Deleted(
                    deleted=earlier.deleted + now.done - before.done,
                    failed=earlier.failed + now.failed - before.failed,
                )
                gevent.sleep(0.02 if running else 0)
        return self._deleted

    def deleted(self) -> Deleted:
        """How far `delete_written` is."""
        return self._deleted

    def close(self) -> None:
        """End whatever runs, at once."""
        if self._renewing is not None:
            self._renewing.kill()
        if self._crew is not None:
            self._crew.stop(0.0)
            self._crew = None

    def _running(self) -> tuple[Begin, WorkerGroup]:
        if self._begin is None or self._crew is None:
            raise DriverError("no step has begun at this station")
        return self._begin, self._crew


def _user_class(station: Station) -> type[User]:
    class Worker(User):
        """One Locust user is one worker of the crew, which makes its requests without it: the user
        only waits.
        """

        index = -1

        def on_start(self) -> None:
            self.index = station.user_joins()

        def on_stop(self) -> None:
            station.user_leaves(self.index)

        @task
        def wait_for_the_end(self) -> None:
            gevent.event.Event().wait()

    return Worker


@dataclass(frozen=True)
class Question(Generic[Told, Answer]):
    """Something that every station can be asked: its name in messages, what is told with it, what
    is answered, and by whom.
    """

    name: str
    told: type[Told]
    answer: type[Answer]
    do: Callable[[Station, Told], Answer]


HERE: Final = Question("here", Nothing, Nothing, lambda _station, nothing: nothing)
BEGIN: Final = Question("begin", Begin, Nothing, Station.begin)
PULSE: Final = Question("pulse", Nothing, WorkerProgress, lambda station, _: station.pulse())
OPEN: Final = Question("open", Nothing, Nothing, lambda station, _: station.open_window())
CLOSE: Final = Question("close", Nothing, Window, lambda station, _: station.close_window())
END: Final = Question("end", End, Cut, Station.end)
DELETE_WRITTEN: Final = Question(
    "delete-written", Nothing, Deleted, lambda station, _: station.delete_written()
)
DELETED: Final = Question("deleted", Nothing, Deleted, lambda station, _: station.deleted())
QUESTIONS: Final[Mapping[str, Question[Any, Any]]] = {
    one.name: one for one in (HERE, BEGIN, PULSE, OPEN, CLOSE, END, DELETE_WRITTEN, DELETED)
}
