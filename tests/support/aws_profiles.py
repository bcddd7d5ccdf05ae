"""AWS files of profiles with temporary keys, and a stub of AWS's Security Token Service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

from http_stub import Request, Response, Server
from weighbridge.common.credential import KeySource

PROGRAM = """
import json, pathlib, sys
from datetime import UTC, datetime, timedelta
count, life_s = pathlib.Path(sys.argv[1]), float(sys.argv[2])
number = len(count.read_text()) + 1 if count.exists() else 1
count.write_text("x" * number)
end = (datetime.now(UTC) + timedelta(seconds=life_s)).isoformat()
keys = {"AccessKeyId": f"A{number}", "SecretAccessKey": f"planted{number}"}
session = {"SessionToken": f"token{number}", "Expiration": end} if life_s else {}
print(json.dumps({"Version": 1, **keys, **session}))
"""


def by_program(folder: Path, life_s: float) -> dict[str, str]:
    """The variables of AWS files whose profile `lab` gets keys by a program, other ones each time:
    A1, planted1 and token1, then A2 ... `life_s` 0: they never end.
    """
    program = folder / "keys.py"
    program.write_text(PROGRAM)
    line = f"{sys.executable} {program} {folder / 'count'} {life_s:g}"
    (folder / "config").write_text(f"[profile lab]\ncredential_process = {line}\n")
    return files(folder)


def source_of(folder: Path, life_s: float) -> KeySource:
    """The profile of `by_program` as an endpoint has it."""
    found = by_program(folder, life_s)
    return KeySource(
        profile="lab",
        config_file=found["AWS_CONFIG_FILE"],
        credentials_file=found["AWS_SHARED_CREDENTIALS_FILE"],
    )


def files(folder: Path) -> dict[str, str]:
    """The variables that name the AWS files of a folder."""
    return {
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
    }


def given(folder: Path) -> int:
    """How often the program of `by_program` gave keys."""
    count = folder / "count"
    return len(count.read_text()) if count.exists() else 0


def _role_keys(number: int) -> Response:
    end = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    keys = (
        f"<AccessKeyId>R{number}</AccessKeyId><SecretAccessKey>planted</SecretAccessKey>"
        f"<SessionToken>role{number}</SessionToken><Expiration>{end}</Expiration>"
    )
    space = "https://sts.amazonaws.com/doc/2011-06-15/"
    answer = (
        f'<AssumeRoleResponse xmlns="{space}"><AssumeRoleResult><Credentials>{keys}'
        "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
    return Response(200, answer.encode())


@contextmanager
def by_role(folder: Path) -> Iterator[tuple[dict[str, str], list[dict[str, list[str]]]]]:
    """The variables of AWS files whose profile `lab` assumes a role at a server here, and what that
    was asked.
    """
    asked: list[dict[str, list[str]]] = []

    def answer(request: Request) -> Response:
        asked.append(parse_qs(request.body.decode()))
        return _role_keys(len(asked))

    server = Server(answer)
    role = "role_arn = arn:aws:iam:::role/weigh\nsource_profile = lasting\nregion = us-east-1\n"
    (folder / "config").write_text(
        f"[profile lab]\n{role}services = here\n[services here]\n"
        f"sts =\n  endpoint_url = {server.url}\n"
    )
    (folder / "credentials").write_text(
        "[lasting]\naws_access_key_id = LA\naws_secret_access_key = LS\n"
    )
    (folder / "credentials").chmod(0o600)
    with server.serving():
        yield files(folder), asked
