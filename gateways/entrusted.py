"""Small programs of this room that are given endpoints with what opens them, and run on a client
host.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Host


def answer_of(
    client: Host,
    program: str,
    endpoints: Sequence[Endpoint],
    order: Mapping[str, Any],
    *,
    timeout_s: float,
) -> str:
    """What a program prints that is given the order and the endpoints, by its stdin. Raises
    CommandFailed.

    Whatever it said before it failed is told without the secrets: Python's own words about a
    request may repeat them.
    """
    given = {
        **order,
        "endpoints": [json.loads(endpoint.model_dump_json()) for endpoint in endpoints],
    }
    command = client.module(program)
    try:
        return client.run(
            command.argv, stdin=json.dumps(given), env=command.env, timeout_s=timeout_s
        ).stdout
    except CommandFailed as error:
        said = without_secrets(error.output, endpoints)
        raise CommandFailed(error.host, error.argv, error.code, said, advice=error.advice) from None


def without_secrets(text: str, endpoints: Iterable[Endpoint]) -> str:
    """A text without what opens the endpoints."""
    return redacted(text, (secret for endpoint in endpoints for secret in endpoint.secrets))
