"""A worker process, `python -m weighbridge.drivers.locust worker`, of a Locust master."""

from __future__ import annotations

import argparse

import gevent.event
from locust.env import Environment

from weighbridge.common.endpoint import bracketed
from weighbridge.drivers.locust.messages import ARRIVED, answer_questions, encrypt_worker
from weighbridge.drivers.locust.users import user_class
from weighbridge.drivers.locust.worker_process import WorkerProcess
from weighbridge.drivers.protocol import Joining


def serve(
    joining: Joining,
    address: str,
    port: int,
    number: int,
    until: gevent.event.Event,
) -> None:
    """Be worker process `number` of the master at this port of an address, until `until` is set."""
    process = WorkerProcess(joining.setup)
    encrypt_worker(joining.key.get_secret_value())
    environment = Environment(user_classes=[user_class(joining.setup, process)])
    runner = environment.create_worker_runner(bracketed(address), port)
    # Otherwise Locust would read its configuration files here.
    environment.parsed_options = argparse.Namespace(headless=True, tags=None, exclude_tags=None)
    answer_questions(runner, process)
    runner.send_message(ARRIVED, {"number": number})
    try:
        until.wait()
    finally:
        process.close()
        runner.greenlet.kill(block=True)
