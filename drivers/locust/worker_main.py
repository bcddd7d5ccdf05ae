"""A worker process of a Locust master in another process, on this host or another: what `python -m
weighbridge.drivers.locust worker` runs.
"""

from __future__ import annotations

import argparse
from typing import Any

import gevent.event
from locust.env import Environment

from weighbridge.common.credential import redacted
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.encryption import encrypt_worker
from weighbridge.drivers.locust.load_runner import ANSWER, ARRIVED, ASK, host_of
from weighbridge.drivers.locust.users import user_class
from weighbridge.drivers.locust.worker_process import QUESTIONS, WorkerProcess
from weighbridge.drivers.protocol import Joining


def serve(
    joining: Joining,
    address: str,
    port: int,
    number: int,
    until: gevent.event.Event,
) -> None:
    """Be worker process `number` of the master at this port of an address, until `until` is set."""
    setup = joining.setup
    process = WorkerProcess(setup)
    encrypt_worker(joining.key.get_secret_value())
    environment = Environment(user_classes=[user_class(process)])
    runner = environment.create_worker_runner(host_of(address), port)
    # Otherwise Locust would read its configuration files here.
    environment.parsed_options = argparse.Namespace(headless=True, tags=None, exclude_tags=None)

    def asked(environment: Environment, msg: Any) -> None:  # noqa: ARG001 - Locust's signature
        answer, error = "", ""
        # So that users start even if the master's clock was set back since the last start.
        runner.last_received_spawn_timestamp = 0
        try:
            question = QUESTIONS[msg.data["verb"]]
            argument = question.argument.model_validate_json(msg.data["argument"])
            answer = question.do(process, argument).model_dump_json()
        except Exception as raised:  # noqa: BLE001 - whatever it is, the master waits for an answer
            kind = "" if isinstance(raised, DriverError) else f"{type(raised).__name__}: "
            error = redacted(f"{kind}{raised}", setup.secrets)
        runner.send_message(ANSWER, {"id": msg.data["id"], "answer": answer, "error": error})

    runner.register_message(ASK, asked, concurrent=True)
    runner.send_message(ARRIVED, {"number": number})
    try:
        until.wait()
    finally:
        process.close()
        runner.greenlet.kill(block=True)
