"""Run a small program of this room on a client host, with endpoints and their credentials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Host


def run_with_endpoints(
    client: Host,
    program: str,
    endpoints: Sequence[Endpoint],
    order: Mapping[str, Any],
    *,
    timeout_s: float,
) -> str:
    """The output of a program that reads `order` and the endpoints as JSON on stdin.

    Raises CommandFailed, with secrets removed from the output: Python's errors may repeat them.
    """
    given = {
        **order,
        "endpoints": [json.loads(endpoint.model_dump_json()) for endpoint in endpoints],
    }
    command = client.module(program)
    env = {**client.variables(endpoints), **command.env}
    try:
        return client.run(
            command.argv, stdin=json.dumps(given), env=env, timeout_s=timeout_s
        ).stdout
    except CommandFailed as error:
        output = without_secrets(error.output, endpoints)
        raise CommandFailed(
            error.host, error.argv, error.code, output, advice=error.advice
        ) from None


def without_secrets(text: str, endpoints: Iterable[Endpoint]) -> str:
    """A text without the secrets of the endpoints."""
    return redacted(text, (secret for endpoint in endpoints for secret in endpoint.secrets))
