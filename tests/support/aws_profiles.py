"""AWS files of profiles with temporary keys, and a stub of AWS's Security Token Service."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

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
        provider="custom-process",
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


class _Sts(BaseHTTPRequestHandler):
    """Answers AssumeRole."""

    asked: list[dict[str, list[str]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append(parse_qs(body))
        end = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        number = len(self.asked)
        keys = (
            f"<AccessKeyId>R{number}</AccessKeyId><SecretAccessKey>planted</SecretAccessKey>"
            f"<SessionToken>role{number}</SessionToken><Expiration>{end}</Expiration>"
        )
        space = "https://sts.amazonaws.com/doc/2011-06-15/"
        answer = (
            f'<AssumeRoleResponse xmlns="{space}"><AssumeRoleResult><Credentials>{keys}'
            "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def by_role(folder: Path) -> Iterator[tuple[dict[str, str], list[dict[str, list[str]]]]]:
    """The variables of AWS files whose profile `lab` assumes a role at a server here, and what that
    was asked.
    """
    asked: list[dict[str, list[str]]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Sts", (_Sts,), {"asked": asked}))
    url = f"http://127.0.0.1:{server.server_port}"
    role = "role_arn = arn:aws:iam:::role/weigh\nsource_profile = lasting\nregion = us-east-1\n"
    (folder / "config").write_text(
        f"[profile lab]\n{role}services = here\n[services here]\nsts =\n  endpoint_url = {url}\n"
    )
    (folder / "credentials").write_text(
        "[lasting]\naws_access_key_id = LA\naws_secret_access_key = LS\n"
    )
    (folder / "credentials").chmod(0o600)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield files(folder), asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
