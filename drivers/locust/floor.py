"""The floor: all stations of this driver. One in this process, or a Locust master here and stations in worker processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import gevent
import gevent.event
from locust import User, task
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from drivers.locust.allowance import Allowance
from drivers.locust.station import Begin, Station
from drivers.order import Setup
from ground.errors import DriverError

ASK = "weighbridge-ask"
ANSWER = "weighbridge-answer"
HERE = "weighbridge-here"
START_S = 60.0
"""How long worker processes may take to start, and users to be spawned or stopped: on a share of a CPU it is seconds."""


class Floor(ABC):
    """Where a step's users are: asks all stations at once, and has Locust start and stop the users."""

    environment: Environment

    @abstractmethod
    def begin(self, order: Begin) -> None:
        """Give every station its share of a step's workers. Raises DriverError, as all of these do."""

    @abstractmethod
    def ask(self, verb: str, argument: str, timeout_s: float) -> list[str]:
        """Have all stations do something; returns their answers."""

    @abstractmethod
    def start_users(self, count: int) -> None:
        """Have Locust start so many users and wait until they are there."""

    @abstractmethod
    def stop_users(self) -> None:
        """Have Locust stop all users."""

    @abstractmethod
    def own_cpu_s(self) -> float:
        """CPU seconds of this process so far, where no station counts them already."""

    @abstractmethod
    def close(self) -> None:
        """End everything, on any path."""


class OneStation(Floor):
    """This process is the only station: Locust's local runner."""

    def __init__(self, setup: Setup, allowance: Allowance) -> None:
        self._station = Station(setup, allowance)
        self.environment = self._station.environment
        self._runner = self.environment.create_local_runner()

    def begin(self, order: Begin) -> None:
        """See Floor."""
        self._station.begin(order)

    def ask(self, verb: str, argument: str, timeout_s: float) -> list[str]:
        """See Floor."""
        return [self._station.do(verb, argument)]

    def start_users(self, count: int) -> None:
        """See Floor."""
        self._runner.start(count, spawn_rate=count)
        _wait(
            lambda: self._runner.user_count == count and self._runner.state == "running",
            START_S,
            f"{count} users to be started",
            self._station.check,
        )

    def stop_users(self) -> None:
        """See Floor."""
        self._runner.stop()

    def own_cpu_s(self) -> float:
        """See Floor."""
        return 0.0

    def close(self) -> None:
        """See Floor."""
        self._station.close()
        self._runner.quit()


class PatientMaster(MasterRunner):
    """Locust's master, but for its heartbeats: three late ones make it give a worker up, and stop the test with the last.

    A process on a share of a CPU may well be held up for that long. Whether one has died is asked of the process itself.
    """

    def heartbeat_worker(self) -> NoReturn:
        """Judge nobody."""
        gevent.event.Event().wait()
        raise AssertionError("nobody sets the event")


class PatientWorker(WorkerRunner):
    """Locust's worker, but for its heartbeats, which go by a clock that may be set: it ends with its parent anyway."""

    def heartbeat_timeout_checker(self) -> NoReturn:
        """Judge nobody."""
        gevent.event.Event().wait()
        raise AssertionError("nobody sets the event")


class ManyStations(Floor):
    """Stations in processes of their own, joined to this one by Locust's messages over loopback."""

    def __init__(self, setup: Setup, allowance: Allowance) -> None:
        del allowance  # the stations find their own
        self._setup = setup
        self._answers: dict[int, tuple[str, gevent.event.AsyncResult]] = {}
        self._clients: dict[int, str] = {}
        self._asked = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self.environment = Environment(user_classes=[_no_user_here()])
        # Loopback only, at a port that is free: 0 has Locust's own server choose it.
        self._runner = PatientMaster(self.environment, "127.0.0.1", 0)
        self.environment.runner = self._runner
        self._runner.register_message(ANSWER, self._answered)
        self._runner.register_message(HERE, self._arrived)
        try:
            port = self._runner.server.port
            for number in range(setup.processes):
                self._processes.append(_spawn(setup, port, number))
            _wait(self._all_ready, START_S, f"{setup.processes} worker processes to be ready", self._check)
        except BaseException:
            self.close()
            raise

    def begin(self, order: Begin) -> None:
        """See Floor. Locust deals users out in the order of its own names of the workers: ranks follow that order."""
        ranks = {number: rank for rank, (_, number) in enumerate(sorted((name, number) for number, name in self._clients.items()))}
        shares = {
            number: order.model_copy(update={"rank": rank, "stations": len(ranks)}).model_dump_json()
            for number, rank in ranks.items()
        }
        self._ask_each("begin", shares, START_S + self._setup.request_timeout_s)

    def ask(self, verb: str, argument: str, timeout_s: float) -> list[str]:
        """See Floor."""
        return self._ask_each(verb, dict.fromkeys(self._clients, argument), timeout_s)

    def start_users(self, count: int) -> None:
        """See Floor."""
        _wait(self._all_ready, START_S, "all worker processes to be ready", self._check)
        self._runner.start(count, spawn_rate=count)
        _wait(lambda: self._runner.user_count == count, START_S, f"{count} users to be started", self._check)

    def stop_users(self) -> None:
        """See Floor."""
        stopping = gevent.spawn(self._runner.stop)
        _wait(stopping.ready, START_S, "all users to be stopped", self._check)
        _wait(self._all_ready, START_S, "all worker processes to be ready again", self._check)

    def own_cpu_s(self) -> float:
        """See Floor."""
        return time.process_time()

    def close(self) -> None:
        """See Floor. Closing a worker's stdin tells it to end; one that does not is killed by its pid."""
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

    def _all_ready(self) -> bool:
        return len(self._clients) == self._setup.processes == len(self._runner.clients.ready)

    def _check(self) -> None:
        """Raise DriverError when a worker process is gone."""
        for number, process in enumerate(self._processes):
            code = process.poll()
            if code is not None:
                how = f"by signal {-code}" if code < 0 else f"with exit status {code}"
                raise DriverError(f"worker {number + 1} of {len(self._processes)} ended {how}")

    def _ask_each(self, verb: str, arguments: dict[int, str], timeout_s: float) -> list[str]:
        waiting: list[tuple[int, gevent.event.AsyncResult]] = []
        for number, argument in arguments.items():
            self._asked += 1
            answer = gevent.event.AsyncResult()
            self._answers[self._asked] = (self._clients[number], answer)
            waiting.append((self._asked, answer))
            self._runner.send_message(ASK, {"id": self._asked, "verb": verb, "argument": argument}, client_id=self._clients[number])
        try:
            what = f"the worker processes to answer {verb!r}"
            _wait(lambda: all(answer.ready() for _, answer in waiting), timeout_s, what, self._check)
            return [str(answer.get()) for _, answer in waiting]
        finally:
            for number, _ in waiting:
                self._answers.pop(number, None)

    def _answered(self, environment: Environment, msg: Any) -> None:
        expected, answer = self._answers.get(msg.data["id"], ("", None))
        if answer is None or expected != msg.node_id:
            return
        if msg.data["error"]:
            answer.set_exception(DriverError(msg.data["error"]))
        else:
            answer.set(msg.data["answer"])

    def _arrived(self, environment: Environment, msg: Any) -> None:
        self._clients[msg.data["number"]] = msg.node_id


def serve(setup: Setup, port: int, number: int, until: gevent.event.Event, allowance: Allowance) -> None:
    """Be station `number` of a master at this port of loopback, until told to end."""
    station = Station(setup, allowance)
    runner = PatientWorker(station.environment, "127.0.0.1", port)
    station.environment.runner = runner
    # Locust would otherwise read its configuration files here, which are none of this suite's.
    station.environment.parsed_options = cast("Any", _Options())

    def asked(environment: Environment, msg: Any) -> None:  # noqa: ARG001 - Locust's signature
        answer, error = "", ""
        try:
            answer = station.do(msg.data["verb"], msg.data["argument"])
        except Exception as raised:  # noqa: BLE001 - whatever it is, the master must hear of it rather than wait
            error = str(raised) if isinstance(raised, DriverError) else f"{type(raised).__name__}: {raised}"
        runner.send_message(ANSWER, {"id": msg.data["id"], "answer": answer, "error": error})

    runner.register_message(ASK, asked, concurrent=True)
    runner.send_message(HERE, {"number": number})
    try:
        until.wait()
    finally:
        station.close()
        runner.greenlet.kill(block=True)


class _Options:
    """What Locust asks of its command line's options, had there been one."""

    def __init__(self) -> None:
        self.headless = True
        self.tags = None
        self.exclude_tags = None


def _no_user_here() -> type[User]:
    class Worker(User):
        """Stands for the stations' class of the same name: a master starts no users itself."""

        @task
        def nothing(self) -> None:
            """Without any task Locust warns."""

    return Worker


def _spawn(setup: Setup, port: int, number: int) -> subprocess.Popen[bytes]:
    argv: Sequence[str] = (sys.executable, "-m", "drivers.locust", "station", str(port), str(number), str(os.getpid()))
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    if process.stdin is None:
        raise DriverError("a worker process has no stdin")
    # Through the pipe: it holds the key, which is for no command line and no socket.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(setup.model_dump_json().encode() + b"\n")
        process.stdin.flush()
    return process


def _wait(met: Callable[[], bool], timeout_s: float, what: str, check: Callable[[], None] = lambda: None) -> None:
    """Wait for a condition with a deadline. Raises DriverError at the deadline, and what `check` raises."""
    deadline_s = time.monotonic() + timeout_s
    while not met():
        check()
        if time.monotonic() > deadline_s:
            raise DriverError(f"waited {timeout_s:g} s in vain for {what}")
        gevent.sleep(0.005)
