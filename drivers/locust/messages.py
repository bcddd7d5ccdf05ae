"""Locust's messages between the runner of a step and its worker processes."""

from __future__ import annotations

import math
from typing import Any, Final

import zmq.green as zmq
from locust import runners
from locust.env import Environment
from locust.rpc.zmqrpc import BaseSocket
from locust.runners import LocalRunner, WorkerRunner

from weighbridge.common.credential import redacted
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.worker_process import QUESTIONS, WorkerProcess

ASK: Final = "weighbridge-ask"
ANSWER: Final = "weighbridge-answer"
ARRIVED: Final = "weighbridge-here"


def answer_questions(runner: LocalRunner | WorkerRunner, process: WorkerProcess) -> None:
    """Have a process answer all that it is asked from now on."""

    def asked(environment: Environment, msg: Any) -> None:  # noqa: ARG001 - Locust's signature
        answer, error = "", ""
        if isinstance(runner, WorkerRunner):
            # So that users start even if the master's clock was set back since the last start.
            runner.last_received_spawn_timestamp = 0
        try:
            question = QUESTIONS[msg.data["verb"]]
            argument = question.argument.model_validate_json(msg.data["argument"])
            answer = question.do(process, argument).model_dump_json()
        except Exception as raised:  # noqa: BLE001 - whatever it is, the runner waits for an answer
            kind = "" if isinstance(raised, DriverError) else f"{type(raised).__name__}: "
            error = redacted(f"{kind}{raised}", process.setup.secrets)
        runner.send_message(ANSWER, {"id": msg.data["id"], "answer": answer, "error": error})

    runner.register_message(ASK, asked, concurrent=True)


# Locust's messages, encrypted and authenticated, so that only worker processes that were given
# the master's key can talk to it.
#
# Locust's master takes any connection for one of its workers, and accepts any message. Here
# ZeroMQ admits only those that know the master's public key, and encrypts all messages (CurveZMQ,
# ZeroMQ RFC 26). That key is never sent over a network: worker processes get it by their stdin.
# Each master has a new one.
#
# Locust is patched for the entire process, which is a driver's own or a worker process's own.


HANDSHAKE_MS: Final = 5000
_PLAIN: Final = BaseSocket.__init__


def encrypt_master() -> str:
    """Make all sockets that Locust opens from now on those of a master; returns its key."""
    public, secret = zmq.curve_keypair()
    # Connections that say nothing are not kept: a port on the hosts' network is open to anybody.
    _encrypt(
        curve_secretkey=secret,
        curve_publickey=public,
        curve_server=True,
        handshake_ivl=HANDSHAKE_MS,
    )
    return str(public.decode("ascii"))


def encrypt_worker(key: str) -> None:
    """Make all sockets that Locust opens from now on those of a worker of the key's master."""
    public, secret = zmq.curve_keypair()
    _encrypt(curve_secretkey=secret, curve_publickey=public, curve_serverkey=key.encode("ascii"))


def _encrypt(**options: Any) -> None:
    def encrypted(self: BaseSocket, *given: Any) -> None:
        _PLAIN(self, *given)  # type: ignore[no-untyped-call]
        for name, value in options.items():
            setattr(self.socket, name, value)

    BaseSocket.__init__ = encrypted  # type: ignore[method-assign]
    # A master gives a worker up after three late heartbeats, and ends the test with the last one. A
    # process on a fraction of a CPU may be held up for so long, and clocks may be set; so processes
    # are checked directly instead.
    runners.HEARTBEAT_LIVENESS = 2**31
    runners.MASTER_HEARTBEAT_TIMEOUT = math.inf  # type: ignore[assignment]
