"""Runs a step's users: in this process, or in worker processes of a Locust master here."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, TypeAlias

import gevent
import gevent.event
from locust.env import Environment
from locust.runners import LocalRunner, MasterRunner
from pydantic import SecretStr
from zmq.error import ZMQError

from weighbridge.common.endpoint import bracketed
from weighbridge.common.errors import DriverError
from weighbridge.common.host import PYTHON
from weighbridge.drivers.locust.messages import (
    ANSWER,
    ARRIVED,
    ASK,
    answer_questions,
    encrypt_master,
)
from weighbridge.drivers.locust.users import user_class
from weighbridge.drivers.locust.worker_process import (
    BEGIN,
    Answer,
    Argument,
    Begin,
    Question,
    WorkerProcess,
)
from weighbridge.drivers.process import how_it_ended
from weighbridge.drivers.protocol import Joining, Listening, Progress, Setup

LOOPBACK = "127.0.0.1"
LOCAL: Final = "local"
"""Locust's name of the only process, in its messages to itself."""
AT_ONCE: Final = 1_000_000
"""Users that may start or stop a second: also the rate at which Locust stops them."""
START_S = 60.0
"""Time for worker processes to start, and for users to stop: seconds on a fraction of a CPU."""
USERS_S = 50.0
"""Time for users to start; the conductor waits a minute for a silent driver."""
ANSWER_S = 10.0
"""A worker process that does not answer for so long is given up: it or its host hangs."""
SEND_S = 0.5

Send: TypeAlias = Callable[[Listening | Progress], None]


class LoadRunner(ABC):
    """Asks worker processes, and has users start and stop, by messages. Raises DriverError."""

    clients: tuple[str, ...]
    """The client of each worker process, in the order of their answers; "" without a name."""

    def __init__(self, setup: Setup, environment: Environment) -> None:
        self._setup = setup
        self.environment = environment
        self.clients = tuple(setup.client_of(number) for number in range(setup.worker_processes))
        self._answers: dict[int, tuple[str, gevent.event.AsyncResult]] = {}
        self._nodes: dict[int, str] = {}
        """Locust's names of the worker processes that are there, by number."""
        self._asked = 0
        self._lost = ""

    def begin(self, command: Begin) -> None:
        """Give each worker process the workers of its users, which have started."""
        first, shares = 0, {}
        for number, count in sorted(self._users().items()):
            shares[number] = command.model_copy(update={"first": first, "count": count})
            first += count
        self._ask_each(BEGIN, shares, START_S + self._setup.request_timeout_s)

    def ask(
        self, question: Question[Argument, Answer], argument: Argument, timeout_s: float
    ) -> list[Answer]:
        """Ask all worker processes; their answers are in the order of `clients`."""
        return self._ask_each(question, dict.fromkeys(self._nodes, argument), timeout_s)

    def start_users(self, count: int) -> None:
        self._have(count, USERS_S, f"{count} users to be started")

    def stop_users(self, patience_s: float) -> None:
        """Have Locust stop all users; a task may take so long to end."""
        self.environment.stop_timeout = patience_s
        # Not by its `stop`, which a master looks at only once a second.
        self._have(0, patience_s + START_S, "all users to be stopped")

    def own_cpu_s(self) -> float:
        """CPU seconds of this process so far, unless a worker process counts them."""
        return 0.0

    @abstractmethod
    def close(self) -> None:
        """End everything, on any path."""

    @abstractmethod
    def _users(self) -> Mapping[int, int]:
        """The users of each worker process, by its number."""

    @abstractmethod
    def _have(self, count: int, timeout_s: float, what: str) -> None:
        """Have Locust start or stop users until there are so many."""

    @abstractmethod
    def _check(self) -> None:
        """Raise DriverError when a worker process is lost."""

    def _send(self, number: int, data: Mapping[str, object]) -> None:
        runner = self.environment.runner
        if runner is not None:
            runner.send_message(ASK, dict(data), client_id=self._nodes[number])

    def name_of(self, number: int) -> str:
        """A worker process, counted from 0, in words: `client-2: worker process 3 of 4`."""
        client = self.clients[number]
        return f"{client}{': ' if client else ''}worker process {number + 1} of {len(self.clients)}"

    def _ask_each(
        self, question: Question[Argument, Answer], each: Mapping[int, Argument], timeout_s: float
    ) -> list[Answer]:
        waiting: dict[int, tuple[int, gevent.event.AsyncResult]] = {}
        for number, argument in sorted(each.items(), key=itemgetter(0)):
            self._asked += 1
            answer = gevent.event.AsyncResult()
            self._answers[self._asked] = (self._nodes[number], answer)
            waiting[number] = self._asked, answer
            data = {
                "id": self._asked,
                "verb": question.name,
                "argument": argument.model_dump_json(),
            }
            self._send(number, data)

        def late() -> str:
            silent = [
                self.name_of(number)
                for number, (_, answer) in waiting.items()
                if not answer.ready()
            ]
            return f" from {', '.join(silent)}" if silent else ""

        try:
            _wait(
                lambda: all(answer.ready() for _, answer in waiting.values()),
                timeout_s,
                f"an answer to {question.name!r}",
                self._check,
                late,
            )
            return [
                question.answer.model_validate_json(answer.get()) for _, answer in waiting.values()
            ]
        except _Timeout as error:
            # From now on nothing is waited for: users and groups elsewhere end with this process.
            self._lost = error.message
            raise
        finally:
            for asked, _ in waiting.values():
                self._answers.pop(asked, None)

    def _answered(self, environment: Environment, msg: Any) -> None:
        expected, answer = self._answers.get(msg.data["id"], ("", None))
        if answer is None or expected != msg.node_id:
            return
        if msg.data["error"]:
            answer.set_exception(DriverError(msg.data["error"]))
        else:
            answer.set(msg.data["answer"])


class LocalLoadRunner(LoadRunner):
    """This process makes the load: Locust's local runner."""

    def __init__(self, setup: Setup) -> None:
        self._process = WorkerProcess(setup)
        super().__init__(setup, Environment(user_classes=[user_class(setup, self._process)]))
        self._runner: LocalRunner = self.environment.create_local_runner()
        self._nodes = {0: LOCAL}
        answer_questions(self._runner, self._process)
        self._runner.register_message(ANSWER, self._answered)

    def _users(self) -> Mapping[int, int]:
        return {0: self._runner.user_count}

    def _have(self, count: int, timeout_s: float, what: str) -> None:
        self._runner.start(count, spawn_rate=AT_ONCE)
        # Users that ended by themselves are none of these: Locust must have seen that, too.
        spawning = self._runner.spawning_greenlet
        _wait(
            lambda: self._runner.user_count == count and (spawning is None or spawning.ready()),
            timeout_s,
            what,
        )

    def _check(self) -> None:
        self._process.check()

    def close(self) -> None:
        self._process.close()
        self.environment.stop_timeout = 0.0
        self._runner.quit()


class DistributedLoadRunner(LoadRunner):
    """Worker processes by messages; this host's are started here, others by `send`."""

    def __init__(self, setup: Setup, send: Send) -> None:
        super().__init__(setup, Environment(user_classes=[user_class(setup, None)]))
        self._processes: list[subprocess.Popen[bytes]] = []
        # One address only. For port 0 Locust's own server chooses any that is free.
        address = bracketed(setup.listen or LOOPBACK)
        try:
            key = encrypt_master()
            self._runner: MasterRunner = self.environment.create_master_runner(address, 0)
        except ZMQError as error:
            raise DriverError(
                f"Locust's master cannot listen on {address}: {error.strerror}"
            ) from error
        self._runner.register_message(ANSWER, self._answered)
        self._runner.register_message(ARRIVED, self._arrived)
        try:
            listening = Listening(port=self._runner.server.port, key=SecretStr(key))
            for number in range(setup.processes):
                self._processes.append(_spawn(setup, listening, number))
            if setup.worker_processes > setup.processes:
                send(listening)
            self._await_workers(send)
        except BaseException:
            self.close()
            raise

    def own_cpu_s(self) -> float:
        return time.process_time()

    def close(self) -> None:
        """See LoadRunner. Worker processes end when their stdin closes, or are killed by pid."""
        for process in self._processes:
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        deadline_s = time.monotonic() + 3.0
        for process in self._processes:
            try:
                process.wait(max(0.1, deadline_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._runner.greenlet.kill(block=True)
        self._runner.server.close(linger=0)  # type: ignore[no-untyped-call]

    def _users(self) -> Mapping[int, int]:
        clients = self._runner.clients
        return {number: clients[node].user_count for number, node in self._nodes.items()}

    def _have(self, count: int, timeout_s: float, what: str) -> None:
        self._check()
        self._runner.start(count, spawn_rate=AT_ONCE)
        _wait(lambda: self._runner.user_count == count, timeout_s, what, self._check)

    def _await_workers(self, send: Send) -> None:
        total = self._setup.worker_processes
        sent_s = time.monotonic()

        def check() -> None:
            nonlocal sent_s
            self._check()
            if time.monotonic() - sent_s > SEND_S:
                sent_s = time.monotonic()
                send(Progress(phase="prepare", done=len(self._nodes), total=total))

        def late() -> str:
            missing = [self.name_of(number) for number in range(total) if number not in self._nodes]
            if not missing:
                return "; others that nobody started have connected"
            return f"; missing: {', '.join(missing)}"

        _wait(
            lambda: len(self._nodes) == total == len(self._runner.clients.ready),
            START_S,
            f"{total} worker processes to be ready",
            check,
            late,
        )

    def _check(self) -> None:
        """See LoadRunner: one of this host has ended, or one was given up."""
        if self._lost:
            raise DriverError(self._lost)
        for number, process in enumerate(self._processes):
            code = process.poll()
            if code is not None:
                raise DriverError(f"{self.name_of(number)} {how_it_ended(code)}")

    def _arrived(self, environment: Environment, msg: Any) -> None:
        # Another process under the same number is not one that was started.
        if (number := msg.data["number"]) in range(self._setup.worker_processes):
            self._nodes.setdefault(number, msg.node_id)


def _spawn(setup: Setup, listening: Listening, number: int) -> subprocess.Popen[bytes]:
    address = setup.listen or LOOPBACK
    argv = (
        *(*PYTHON, "-m", "weighbridge.drivers.locust"),
        *("worker", address, str(listening.port), str(number), str(os.getpid())),
    )
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    if process.stdin is None:
        raise DriverError("a worker process has no stdin")
    # By the pipe: it contains keys, which belong on no command line and no socket.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(
            Joining(setup=setup, key=listening.key).model_dump_json().encode() + b"\n"
        )
        process.stdin.flush()
    return process


class _Timeout(DriverError):
    """A condition was not met in time."""


def _wait(
    met: Callable[[], bool],
    timeout_s: float,
    what: str,
    check: Callable[[], None] = lambda: None,
    late: Callable[[], str] = lambda: "",
) -> None:
    """Wait for a condition. Raises DriverError after `timeout_s`, and what `check` raises.

    `late` ends its message: who is missing. While this process is not scheduled, no more than a
    second counts: others may have answered.
    """
    passed_s, at_s = 0.0, time.monotonic()
    while not met():
        check()
        if passed_s > timeout_s:
            raise _Timeout(f"gave up after waiting {timeout_s:g} s for {what}{late()}")
        gevent.sleep(0.005)
        now_s = time.monotonic()
        passed_s, at_s = passed_s + min(now_s - at_s, 1.0), now_s
