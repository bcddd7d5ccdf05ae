"""Users of Locust, a worker each: WorkerUser's requests are the engine's, or an SDK's."""

from __future__ import annotations

from typing import ClassVar, Final

import gevent
from locust import User, constant, task
from locust.exception import StopUser

from weighbridge.drivers.locust.worker_process import WorkerProcess
from weighbridge.drivers.protocol import Setup

A_DAY_S: Final = 86400


class _JoiningUser(User):
    abstract = True
    process: ClassVar[WorkerProcess | None] = None
    """Whose workers its users are; None: no load is to be made in this process now."""
    index: int | None = None

    def on_start(self) -> None:
        if self.process is not None:
            self.index = self.process.user_joins()

    def on_stop(self) -> None:
        if self.process is not None and self.index is not None:
            self.process.user_leaves(self.index)


class WorkerUser(_JoiningUser):
    """Waits while its worker makes requests: Locust stops at once whoever waits between tasks."""

    abstract = True
    wait_time = constant(A_DAY_S)

    @task
    def idle(self) -> None:
        """Nothing: its worker makes the requests."""


class SdkWorkerUser(_JoiningUser):
    """Makes each request as a task, by an SDK, and fires Locust's event `request` for it."""

    abstract = True

    def wait_time(self) -> float:
        group = None if self.process is None else self.process.sdk
        return 0.0 if group is None or self.index is None else group.wait_s(self.index)

    @task
    def request(self) -> None:
        """Make the worker's next request. Raises StopUser where there is none, or no load."""
        # Whom Locust stops while it waits is killed a turn later: now, instead of in a request that
        # would count as unfinished.
        gevent.sleep(0)
        group = None if self.process is None else self.process.sdk
        done = None if group is None or self.index is None else group.request(self.index)
        if group is None or done is None:
            raise StopUser
        self.environment.events.request.fire(
            request_type=done.operation,
            name=group.workload.name,
            response_time=done.latency_ms,
            response_length=done.moved_bytes,
            exception=done.error,
            context=self.context(),
        )


def user_class(setup: Setup, process: WorkerProcess | None) -> type[User]:
    """The user class of a driver's process; by its name Locust sends numbers of users."""
    kind = WorkerUser if setup.users == "engine" else SdkWorkerUser
    return type("Worker", (kind,), {"process": process})
