"""A user of Locust is one worker: Locust starts and stops it, a worker group makes its requests."""

from __future__ import annotations

from typing import ClassVar, Final

from locust import User, constant, task

from weighbridge.drivers.locust.worker_process import WorkerProcess

A_DAY_S: Final = 86400


class WorkerUser(User):
    """Waits while its worker makes requests: Locust stops at once whoever waits between tasks."""

    abstract = True
    wait_time = constant(A_DAY_S)
    process: ClassVar[WorkerProcess | None] = None
    """Whose workers its users are; None: no load is to be made in this process now."""
    index: int | None = None

    def on_start(self) -> None:
        """Start its worker, unless there is no load."""
        if self.process is not None:
            self.index = self.process.user_joins()

    def on_stop(self) -> None:
        """Let its worker complete its outstanding request and end."""
        if self.process is not None and self.index is not None:
            self.process.user_leaves(self.index)

    @task
    def idle(self) -> None:
        """Nothing: its worker makes the requests."""


def user_class(process: WorkerProcess | None) -> type[User]:
    """The user class of a process of the driver; a master, which starts no users, has none.

    Its name is the same in all processes: Locust sends it with the numbers of users.
    """
    return type("Worker", (WorkerUser,), {"process": process})
