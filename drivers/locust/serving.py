"""Being a station of a Locust master in another process, on this host or another.

It is what `python -m weighbridge.drivers.locust station` does.
"""

from __future__ import annotations

from typing import Any, NoReturn, cast

import gevent
import gevent.event
from locust.env import Environment
from locust.rpc import Message
from locust.runners import WorkerRunner

from weighbridge.common.credential import redacted
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.floor import ANSWER, ASK, HERE, host_of
from weighbridge.drivers.locust.sealed import SealedClient
from weighbridge.drivers.locust.station import Station
from weighbridge.drivers.order import Joining


def serve(joining: Joining, address: str, port: int, number: int, until: gevent.event.Event, allowance: CpuAllowance) -> None:
    """Be station `number` of a master at this port of an address, until told to end."""
    setup = joining.setup
    station = Station(setup, allowance)
    runner = PatientWorker(station.environment, host_of(address), port, joining.key.get_secret_value())
    station.environment.runner = runner
    # Locust would otherwise read its configuration files here, which are none of this suite's.
    station.environment.parsed_options = cast("Any", _Options())

    def asked(environment: Environment, msg: Any) -> None:  # noqa: ARG001 - Locust's signature
        answer, error = "", ""
        try:
            answer = station.do(msg.data["verb"], msg.data["argument"])
        except Exception as raised:  # noqa: BLE001 - whatever it is, the master must hear of it rather than wait
            said = str(raised) if isinstance(raised, DriverError) else f"{type(raised).__name__}: {raised}"
            error = redacted(said, setup.secrets)
        runner.send_message(ANSWER, {"id": msg.data["id"], "answer": answer, "error": error})

    runner.register_message(ASK, asked, concurrent=True)
    runner.send_message(HERE, {"number": number})
    try:
        until.wait()
    finally:
        station.close()
        runner.greenlet.kill(block=True)


class PatientWorker(WorkerRunner):
    """Locust's worker, but for its sealed socket, and for what goes by a clock that may be set, or by two that are not the same."""

    def __init__(self, environment: Environment, host: str, port: int, key: str) -> None:
        self._key = key
        self._sealed = gevent.event.Event()
        super().__init__(environment, host, port)

    def connect_to_master(self) -> None:
        """Connect by a sealed socket: the one that Locust has just made would not be let in."""
        if not self._sealed.is_set():
            self.reset_connection()
            self._sealed.set()
        super().connect_to_master()  # type: ignore[no-untyped-call]

    def reset_connection(self) -> None:
        """Connect anew."""
        self.client.close(linger=0)  # type: ignore[no-untyped-call]
        self.client = SealedClient(self.master_host, self.master_port, self.client_id, self._key)

    def worker(self) -> NoReturn:
        """Listen at the sealed socket alone."""
        self._sealed.wait()
        super().worker()

    def heartbeat_timeout_checker(self) -> NoReturn:
        """Judge nobody: it ends when its stdin closes."""
        gevent.event.Event().wait()
        raise AssertionError("nobody sets the event")

    def handle_message(self, msg: Message) -> None:
        """Do what the master says; users are started even if its clock was set back since it last had some started."""
        self.last_received_spawn_timestamp = 0
        super().handle_message(msg)


class _Options:
    """What Locust asks of its command line's options, had there been one."""

    def __init__(self) -> None:
        self.headless = True
        self.tags = None
        self.exclude_tags = None
