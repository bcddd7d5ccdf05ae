"""Being a station of a Locust master in another process, on this host or another.

It is what `python -m weighbridge.drivers.locust station` does.
"""

from __future__ import annotations

import argparse
from typing import Any

import gevent.event
from locust.env import Environment

from weighbridge.common.credential import redacted
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.cpu_allowance import CpuAllowance
from weighbridge.drivers.locust.floor import ANSWER, ARRIVED, ASK, host_of
from weighbridge.drivers.locust.sealed import seal_station
from weighbridge.drivers.locust.station import QUESTIONS, Station
from weighbridge.drivers.order import Joining


def serve(
    joining: Joining,
    address: str,
    port: int,
    number: int,
    until: gevent.event.Event,
    allowance: CpuAllowance,
) -> None:
    """Be station `number` of a master at this port of an address, until told to end."""
    setup = joining.setup
    station = Station(setup, allowance)
    seal_station(joining.key.get_secret_value())
    runner = station.environment.create_worker_runner(host_of(address), port)
    # Locust would otherwise read its configuration files here, which are none of this suite's.
    station.environment.parsed_options = argparse.Namespace(
        headless=True, tags=None, exclude_tags=None
    )

    def asked(environment: Environment, msg: Any) -> None:  # noqa: ARG001 - Locust's signature
        answer, error = "", ""
        # Users are started even if the master's clock was set back since it last had some started.
        runner.last_received_spawn_timestamp = 0
        try:
            question = QUESTIONS[msg.data["verb"]]
            told = question.told.model_validate_json(msg.data["argument"])
            answer = question.do(station, told).model_dump_json()
        except Exception as raised:  # noqa: BLE001 - whatever it is, the master must hear of it rather than wait
            said = (
                str(raised)
                if isinstance(raised, DriverError)
                else f"{type(raised).__name__}: {raised}"
            )
            error = redacted(said, setup.secrets)
        runner.send_message(ANSWER, {"id": msg.data["id"], "answer": answer, "error": error})

    runner.register_message(ASK, asked, concurrent=True)
    runner.send_message(ARRIVED, {"number": number})
    try:
        until.wait()
    finally:
        station.close()
        runner.greenlet.kill(block=True)
