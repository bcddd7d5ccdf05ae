"""Locust's messages between the runner of a step and its worker processes."""

from __future__ import annotations

from typing import Any, Final

from locust.env import Environment
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
