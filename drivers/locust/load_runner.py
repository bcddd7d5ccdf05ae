"""Runs a step's users: in this process, or in worker processes of a Locust master here."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import gevent
import gevent.event
from locust.env import Environment
from pydantic import SecretStr
from zmq.error import ZMQError

from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.encryption import encrypt_master
from weighbridge.drivers.locust.users import user_class
from weighbridge.drivers.locust.worker_process import (
    BEGIN,
    PING,
    Answer,
    Argument,
    Begin,
    Empty,
    Question,
    WorkerProcess,
)
from weighbridge.drivers.process import how_it_ended
from weighbridge.drivers.protocol import Joining, Listening, Progress, Setup

LOOPBACK = "127.0.0.1"
ASK = "weighbridge-ask"
ANSWER = "weighbridge-answer"
ARRIVED = "weighbridge-here"
START_S = 60.0
"""Time for worker processes to start, and for users to stop: seconds on a fraction of a CPU."""
USERS_S = 50.0
"""Time for users to start; the conductor waits a minute for a silent driver."""
ANSWER_S = 10.0
"""A worker process that does not answer for so long is given up: it or its host hangs."""
SEND_S = 0.5

Send = Callable[[Listening | Progress], None]


class LoadRunner(ABC):
    """Asks all worker processes at once, and has Locust start and stop the users."""

    environment: Environment
    clients: tuple[str, ...]
    """The client of each worker process, in the order of their answers; "" without a name."""

    @abstractmethod
    def begin(self, command: Begin) -> None:
        """Give every worker process its share of a step's workers.

        Raises DriverError, as all of these do.
        """

    @abstractmethod
    def ask(
        self, question: Question[Argument, Answer], argument: Argument, timeout_s: float
    ) -> list[Answer]:
        """Ask all worker processes; their answers are in the order of `clients`."""

    @abstractmethod
    def start_users(self, count: int) -> None:
        """Have Locust start `count` users, and wait until they have started."""

    @abstractmethod
    def stop_users(self) -> None:
        """Have Locust stop all users."""

    @abstractmethod
    def own_cpu_s(self) -> float:
        """CPU seconds of this process so far, unless a worker process counts them."""

    @abstractmethod
    def close(self) -> None:
        """End everything, on any path."""


class LocalLoadRunner(LoadRunner):
    """This process makes the load: Locust's local runner."""

    def __init__(self, setup: Setup) -> None:
        self._process = WorkerProcess(setup)
        self.clients = (setup.client_of(0),)
        self.environment = Environment(user_classes=[user_class(self._process)])
        self._runner = self.environment.create_local_runner()

    def begin(self, command: Begin) -> None:
        """See LoadRunner."""
        self._process.begin(command)

    def ask(
        self, question: Question[Argument, Answer], argument: Argument, timeout_s: float
    ) -> list[Answer]:
        """See LoadRunner."""
        return [question.do(self._process, argument)]

    def start_users(self, count: int) -> None:
        """See LoadRunner."""
        self._runner.start(count, spawn_rate=count)
        _wait(
            lambda: self._runner.user_count == count and self._runner.state == "running",
            START_S,
            f"{count} users to be started",
            self._process.check,
        )

    def stop_users(self) -> None:
        """See LoadRunner."""
        self._runner.stop()

    def own_cpu_s(self) -> float:
        """See LoadRunner."""
        return 0.0

    def close(self) -> None:
        """See LoadRunner."""
        self._process.close()
        self._runner.quit()


class DistributedLoadRunner(LoadRunner):
    """Worker processes connected by Locust's messages, over loopback or the deployment's network.

    Those of this host are started here; `send` has the conductor start the others.
    """

    def __init__(self, setup: Setup, send: Send) -> None:
        self._setup = setup
        self._answers: dict[int, tuple[str, gevent.event.AsyncResult]] = {}
        self._nodes: dict[int, str] = {}
        """Locust's names of the connected worker processes, by number."""
        self._asked = 0
        self._lost = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self.clients = tuple(setup.client_of(number) for number in range(setup.worker_processes))
        self.environment = Environment(user_classes=[user_class(None)])
        # One address only, and any free port: Locust's own server chooses one for 0.
        address = host_of(setup.listen or LOOPBACK)
        try:
            key = encrypt_master()
            self._runner = self.environment.create_master_runner(address, 0)
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

    def begin(self, command: Begin) -> None:
        """See LoadRunner. Ranks follow Locust's own order of dispatch."""
        self.ask(PING, Empty(), ANSWER_S)
        ranked = dispatch_order(self._nodes.values())
        shares = {
            number: command.model_copy(
                update={"rank": ranked.index(node), "processes": len(ranked)}
            )
            for number, node in self._nodes.items()
        }
        self._ask_each(BEGIN, shares, START_S + self._setup.request_timeout_s)

    def ask(
        self, question: Question[Argument, Answer], argument: Argument, timeout_s: float
    ) -> list[Answer]:
        """See LoadRunner."""
        return self._ask_each(question, dict.fromkeys(self._nodes, argument), timeout_s)

    def start_users(self, count: int) -> None:
        """See LoadRunner."""
        _wait(self._all_ready, START_S, "all worker processes to be ready", self._check)
        self._runner.start(count, spawn_rate=count)
        _wait(
            lambda: self._runner.user_count == count,
            USERS_S,
            f"{count} users to be started",
            self._check,
        )

    def stop_users(self) -> None:
        """See LoadRunner."""
        stopping = gevent.spawn(self._runner.stop)
        _wait(stopping.ready, START_S, "all users to be stopped", self._check)
        _wait(self._all_ready, START_S, "all worker processes to be ready again", self._check)

    def own_cpu_s(self) -> float:
        """See LoadRunner."""
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

    def name_of(self, number: int) -> str:
        """A worker process, counted from 0, in words: `client-2: worker process 3 of 4`."""
        client = self.clients[number]
        return f"{client}{': ' if client else ''}worker process {number + 1} of {len(self.clients)}"

    def _await_workers(self, send: Send) -> None:
        """Wait until all worker processes have connected, and report how many have."""
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

        _wait(self._all_ready, START_S, f"{total} worker processes to be ready", check, late)

    def _all_ready(self) -> bool:
        return len(self._nodes) == self._setup.worker_processes == len(self._runner.clients.ready)

    def _check(self) -> None:
        """Raise DriverError when a worker process of this host has ended, or one was given up."""
        if self._lost:
            raise DriverError(self._lost)
        for number, process in enumerate(self._processes):
            code = process.poll()
            if code is not None:
                raise DriverError(f"{self.name_of(number)} {how_it_ended(code)}")

    def _ask_each(
        self, question: Question[Argument, Answer], each: dict[int, Argument], timeout_s: float
    ) -> list[Answer]:
        """Ask worker processes by number; returns their answers in the order of the numbers.

        One that does not answer is given up.
        """
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
            self._runner.send_message(ASK, data, client_id=self._nodes[number])

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

    def _arrived(self, environment: Environment, msg: Any) -> None:
        # Another process under the same number is not one that was started.
        if (number := msg.data["number"]) in range(self._setup.worker_processes):
            self._nodes.setdefault(number, msg.node_id)


def dispatch_order(nodes: Iterable[str]) -> list[str]:
    """Names of Locust's workers in the order in which it gives them users.

    The first of each host (the part of a name before its first underscore), then the second of
    each, and so on, each time by name: so `locust.dispatch` sorts them, as of 2.16. Users are
    assigned in turn, so that worker processes, and clients, differ by at most one user a process.
    """
    places: Counter[str] = Counter()
    placed: list[tuple[int, str]] = []
    for node in sorted(nodes):
        host = node.split("_", 1)[0]
        placed.append((places[host], node))
        places[host] += 1
    return [node for _, node in sorted(placed)]


def host_of(address: str) -> str:
    """An address as ZeroMQ expects it before a port."""
    return f"[{address}]" if ":" in address else address


def _spawn(setup: Setup, listening: Listening, number: int) -> subprocess.Popen[bytes]:
    address = setup.listen or LOOPBACK
    argv = (
        *(sys.executable, "-m", "weighbridge.drivers.locust"),
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
            raise _Timeout(f"waited {timeout_s:g} s in vain for {what}{late()}")
        gevent.sleep(0.005)
        now_s = time.monotonic()
        passed_s, at_s = passed_s + min(now_s - at_s, 1.0), now_s
