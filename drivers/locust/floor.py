"""The floor: all stations of this driver.

One in this process, or a Locust master here and stations in worker processes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import gevent
import gevent.event
from locust import User, task
from locust.env import Environment
from pydantic import SecretStr
from zmq.error import ZMQError

from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.sealed import seal_master
from weighbridge.drivers.locust.station import (
    BEGIN,
    HERE,
    Answer,
    Begin,
    Nothing,
    Question,
    Station,
    Told,
)
from weighbridge.drivers.order import Joining, Listening, Progress, Setup
from weighbridge.drivers.process import how_it_ended

LOOPBACK = "127.0.0.1"
ASK = "weighbridge-ask"
ANSWER = "weighbridge-answer"
ARRIVED = "weighbridge-here"
START_S = 60.0
"""How long stations may take to start, and users to be stopped: on a share of a CPU it is seconds.
"""
USERS_S = 50.0
"""How long users may take to be started; the conductor waits a minute for a driver that says
nothing.
"""
ANSWER_S = 10.0
"""A station that is asked how it is and does not answer for so long is given up: it is stuck, or
its host is gone.
"""
SAY_S = 0.5

Say = Callable[[Listening | Progress], None]


class Floor(ABC):
    """Where a step's users are: asks all stations at once, and has Locust start and stop the
    users.
    """

    environment: Environment
    clients: tuple[str, ...]
    """The client that each station is on, in the order of their answers; an empty name where that
    was not told.
    """

    @abstractmethod
    def begin(self, order: Begin) -> None:
        """Give every station its share of a step's workers.

        Raises DriverError, as all of these do.
        """

    @abstractmethod
    def ask(self, question: Question[Told, Answer], told: Told, timeout_s: float) -> list[Answer]:
        """Ask all stations; returns their answers in the order of `clients`."""

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

    def __init__(self, setup: Setup, allowance: CpuAllowance) -> None:
        self._station = Station(setup, allowance)
        self.clients = (setup.client_of(0),)
        self.environment = self._station.environment
        self._runner = self.environment.create_local_runner()

    def begin(self, order: Begin) -> None:
        """See Floor."""
        self._station.begin(order)

    def ask(self, question: Question[Told, Answer], told: Told, timeout_s: float) -> list[Answer]:
        """See Floor."""
        return [question.do(self._station, told)]

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


class ManyStations(Floor):
    """Stations in processes of their own, joined to this one by Locust's messages: over loopback,
    or the deployment's network.

    Those of this host are started here. That stations of other clients are waited for is said by
    `say`, as is the waiting.
    """

    def __init__(self, setup: Setup, allowance: CpuAllowance, say: Say) -> None:
        del allowance  # the stations find their own
        self._setup = setup
        self._answers: dict[int, tuple[str, gevent.event.AsyncResult]] = {}
        self._nodes: dict[int, str] = {}
        """Locust's names of the stations that have arrived."""
        self._asked = 0
        self._lost = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self.clients = tuple(setup.client_of(number) for number in range(setup.stations))
        self.environment = Environment(user_classes=[_no_user_here()])
        # One address only, and a port that is free: 0 has Locust's own server choose it.
        address = host_of(setup.listen or LOOPBACK)
        try:
            key = seal_master()
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
            if setup.stations > setup.processes:
                say(listening)
            self._await_stations(say)
        except BaseException:
            self.close()
            raise

    def begin(self, order: Begin) -> None:
        """See Floor. Locust deals users out in an order of its own: ranks follow that."""
        self.ask(HERE, Nothing(), ANSWER_S)
        ranked = dealing_order(self._nodes.values())
        shares = {
            number: order.model_copy(update={"rank": ranked.index(node), "stations": len(ranked)})
            for number, node in self._nodes.items()
        }
        self._ask_each(BEGIN, shares, START_S + self._setup.request_timeout_s)

    def ask(self, question: Question[Told, Answer], told: Told, timeout_s: float) -> list[Answer]:
        """See Floor."""
        return self._ask_each(question, dict.fromkeys(self._nodes, told), timeout_s)

    def start_users(self, count: int) -> None:
        """See Floor."""
        _wait(self._all_ready, START_S, "all stations to be ready", self._check)
        self._runner.start(count, spawn_rate=count)
        _wait(
            lambda: self._runner.user_count == count,
            USERS_S,
            f"{count} users to be started",
            self._check,
        )

    def stop_users(self) -> None:
        """See Floor."""
        stopping = gevent.spawn(self._runner.stop)
        _wait(stopping.ready, START_S, "all users to be stopped", self._check)
        _wait(self._all_ready, START_S, "all stations to be ready again", self._check)

    def own_cpu_s(self) -> float:
        """See Floor."""
        return time.process_time()

    def close(self) -> None:
        """See Floor. Closing a station's stdin tells it to end; one that does not is killed by its
        pid.
        """
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

    def called(self, number: int) -> str:
        """A station in words, counted from 0: `client-2: station 3 of 4`."""
        client = self.clients[number]
        return f"{client}{': ' if client else ''}station {number + 1} of {len(self.clients)}"

    def _await_stations(self, say: Say) -> None:
        """Wait until all stations have arrived, and say meanwhile how many have."""
        said_s = time.monotonic()

        def look() -> None:
            nonlocal said_s
            self._check()
            if time.monotonic() - said_s > SAY_S:
                said_s = time.monotonic()
                say(Progress(phase="prepare", done=len(self._nodes), total=self._setup.stations))

        def late() -> str:
            missing = [
                self.called(number)
                for number in range(self._setup.stations)
                if number not in self._nodes
            ]
            return ", ".join(missing) or "others are there, which nobody started"

        _wait(self._all_ready, START_S, f"{self._setup.stations} stations to be ready", look, late)

    def _all_ready(self) -> bool:
        return len(self._nodes) == self._setup.stations == len(self._runner.clients.ready)

    def _check(self) -> None:
        """Raise DriverError when a station of this host has ended, or one was given up."""
        if self._lost:
            raise DriverError(self._lost)
        for number, process in enumerate(self._processes):
            code = process.poll()
            if code is not None:
                raise DriverError(f"{self.called(number)} {how_it_ended(code)}")

    def _ask_each(
        self, question: Question[Told, Answer], told: dict[int, Told], timeout_s: float
    ) -> list[Answer]:
        """Ask stations; their answers in the order of their numbers.

        One that does not answer is given up.
        """
        waiting: dict[int, tuple[int, gevent.event.AsyncResult]] = {}
        for number, one in sorted(told.items(), key=itemgetter(0)):
            self._asked += 1
            answer = gevent.event.AsyncResult()
            self._answers[self._asked] = (self._nodes[number], answer)
            waiting[number] = self._asked, answer
            words = {"id": self._asked, "verb": question.name, "argument": one.model_dump_json()}
            self._runner.send_message(ASK, words, client_id=self._nodes[number])

        def late() -> str:
            return ", ".join(
                self.called(number) for number, (_, answer) in waiting.items() if not answer.ready()
            )

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
        except _InVain as error:
            # Nothing more is waited for from now on: users and crews of the others end with this
            # process.
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
        number = msg.data["number"]
        if number in range(self._setup.stations):
            # Whoever comes second under a number is none of those that were started.
            self._nodes.setdefault(number, msg.node_id)


def dealing_order(nodes: Iterable[str]) -> list[str]:
    """Names of Locust's workers in the order in which it deals users out to them.

    One of each host (what stands before the first underline of a name), then the second of each,
    and so on, each time by name: so `locust.dispatch` sorts them, as of 2.16. Users are dealt out
    in turn, so that no two stations, and no two clients, differ by more than one user a station.
    """
    places: Counter[str] = Counter()
    placed: list[tuple[int, str]] = []
    for node in sorted(nodes):
        host = node.split("_", 1)[0]
        placed.append((places[host], node))
        places[host] += 1
    return [node for _, node in sorted(placed)]


def _no_user_here() -> type[User]:
    class Worker(User):
        """Stands for the stations' class of the same name: a master starts no users itself."""

        @task
        def nothing(self) -> None:
            """Without any task Locust warns."""

    return Worker


def host_of(address: str) -> str:
    """An address as ZeroMQ wants it before a port."""
    return f"[{address}]" if ":" in address else address


def _spawn(setup: Setup, listening: Listening, number: int) -> subprocess.Popen[bytes]:
    address = setup.listen or LOOPBACK
    argv: Sequence[str] = (
        sys.executable,
        "-m",
        "weighbridge.drivers.locust",
        "station",
        address,
        str(listening.port),
        str(number),
        str(os.getpid()),
    )
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    if process.stdin is None:
        raise DriverError("a station has no stdin")
    # Through the pipe: it holds keys, which are for no command line and no socket.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(
            Joining(setup=setup, key=listening.key).model_dump_json().encode() + b"\n"
        )
        process.stdin.flush()
    return process


class _InVain(DriverError):
    """Something was waited for that did not come."""


def _wait(
    met: Callable[[], bool],
    timeout_s: float,
    what: str,
    check: Callable[[], None] = lambda: None,
    late: Callable[[], str] = lambda: "",
) -> None:
    """Wait for a condition. Raises DriverError, with `late` in it, after `timeout_s`, and what
    `check` raises.

    Of a time in which this process did not run itself no more than a second counts: others may have
    answered in it.
    """
    passed_s, at_s = 0.0, time.monotonic()
    while not met():
        check()
        if passed_s > timeout_s:
            whose = late()
            raise _InVain(
                f"waited {timeout_s:g} s in vain for {what}{f' from {whose}' if whose else ''}"
            )
        gevent.sleep(0.005)
        now_s = time.monotonic()
        passed_s, at_s = passed_s + min(now_s - at_s, 1.0), now_s
