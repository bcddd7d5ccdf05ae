"""Run on a client host: writes objects by the engine, signed as asked, through a relay that may
change a byte of each body, and has boto3 read them back. Orders on stdin, what was seen on stdout,
as JSON.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from typing import Any

import sdk
from weighbridge.drivers.engine import _native

SEED, SIZE, OBJECTS = 5, 200_000, 6
ONCE = {"total_max_attempts": 1}
SPOILT_AT = 100_000
"""Which byte after a request's head is changed: in every framing it belongs to the content."""


class Relay:
    """A port of loopback that hands on to the gateway; of PUTs it may change one byte."""

    def __init__(self, host: str, port: int) -> None:
        self._far = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.spoils = False
        self.said = ""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            far = socket.create_connection(self._far)
            threading.Thread(target=self._up, args=(near, far), daemon=True).start()
            threading.Thread(target=self._down, args=(far, near), daemon=True).start()

    def _down(self, far: socket.socket, near: socket.socket) -> None:
        while data := far.recv(65536):
            near.sendall(data)
        near.close()

    def _up(self, near: socket.socket, far: socket.socket) -> None:
        stream = near.makefile("rb")
        while line := stream.readline():
            head = line
            while (line := stream.readline()) not in (b"\r\n", b""):
                head += line
            fields = dict(row.lower().split(b":", 1) for row in head.split(b"\r\n")[1:] if row)
            self.said = fields.get(b"x-amz-content-sha256", b"nothing").decode().strip().upper()
            body = bytearray(stream.read(int(fields.get(b"content-length", b"0"))))
            if self.spoils and len(body) > SPOILT_AT:
                body[SPOILT_AT] ^= 1
            far.sendall(head + b"\r\n" + body)
        far.close()


def engine(
    order: dict[str, Any], port: int, signing: Any, prefix: str, **more: Any
) -> _native.Engine:
    """An engine of small writes; `more` replaces keys of its workload."""
    objects = {"size": SIZE, "containers": 1, "per_container": OBJECTS}
    workload = {
        "name": "w",
        "objects": objects,
        "operations": {"write": 1.0},
        "pick": "uniform",
        "workers": [1],
        "runtime": 1.0,
        "warmup": 0.0,
        "rate_per_s": None,
        "signing": signing,
        **more,
    }
    config = {
        "api": "s3",
        "host": "127.0.0.1",
        "port": port,
        "tls": False,
        "ca_file": None,
        "base_path": "",
        "access_key": order["user"],
        "secret_key": order["key"],
        "region": order["region"],
        "token": "",
        "bucket_prefix": prefix,
        "request_timeout_s": 10.0,
        "threads": 1,
        "verify": False,
        "seed": SEED,
        "workload": workload,
    }
    return _native.Engine(json.dumps(config))


def ended(made: _native.Engine) -> dict[str, Any]:
    while True:
        progress: dict[str, Any] = json.loads(made.progress())
        if progress["running"] == 0:
            return progress
        time.sleep(0.01)


def address(order: dict[str, Any]) -> tuple[str, int]:
    host, port = order["url"].removeprefix("http://").split(":")
    return host, int(port)


def main() -> None:
    order = json.load(sys.stdin)
    relay, client = Relay(*address(order)), sdk.s3(order, retries=ONCE)
    seen = []
    for number, signing in enumerate(order["signings"]):
        prefix = f"wb-sign-{number}"
        bucket = f"{prefix}-w-0"
        client.create_bucket(Bucket=bucket)
        if signing.get("auth") == "none":
            client.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
        relay.spoils = False
        made = engine(order, relay.port, signing, prefix)
        made.prepare(0, OBJECTS, 1, 2)
        right, said = ended(made), relay.said
        listed = [one["Key"] for one in client.list_objects_v2(Bucket=bucket).get("Contents", [])]
        same = 0
        if signing.get("auth") != "none":
            bodies = [client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in listed]
            same = sum(body == _native.content(SEED, SIZE, 0, SIZE) for body in bodies)
        relay.spoils = True
        spoilt = engine(order, relay.port, signing, prefix)
        spoilt.add_worker(0, 1, 0)
        while not spoilt.started():
            time.sleep(0.01)
        spoilt.stop(5.0)
        wrong = json.loads(spoilt.progress())
        seen.append(
            {"right": right, "said": said, "objects": len(listed), "same": same, "wrong": wrong}
        )
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
