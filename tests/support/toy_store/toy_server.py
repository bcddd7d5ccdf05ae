"""The toy store's daemon: objects in memory, with the part of Swift's API that a comparison needs.

`toy_server.py ADDRESS PORT`, with the user's key in $TOY_KEY. It answers after $TOY_DELAY_S.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

ACCOUNT = "/v1/AUTH_toy"
DELAY_S = float(os.environ.get("TOY_DELAY_S", "0"))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    containers: ClassVar[dict[str, dict[str, bytes]]] = {}

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path == "/auth/v1.0":
            known = self.headers.get("X-Auth-Key") == os.environ["TOY_KEY"]
            storage = {
                "X-Storage-Url": f"http://{self.headers['Host']}{ACCOUNT}",
                "X-Auth-Token": "toy",
            }
            self.answer(200 if known else 401, b"", **(storage if known else {}))
            return
        container, name = self.named()
        objects = self.containers.get(container)
        if objects is None or (name and name not in objects):
            self.answer(404)
        elif name:
            self.answer(200, objects[name], ETag=hashlib.md5(objects[name]).hexdigest())
        else:
            query = {key: values[0] for key, values in parse_qs(place.query).items()}
            names = [
                one
                for one in sorted(objects)
                if one.startswith(query.get("prefix", "")) and one > query.get("marker", "")
            ]
            page = names[: int(query.get("limit", 10_000))]
            self.answer(
                200,
                json.dumps([{"name": one, "bytes": len(objects[one])} for one in page]).encode(),
            )

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        container, name = self.named()
        if not name:
            self.containers.setdefault(container, {})
        elif container in self.containers:
            self.containers[container][name] = body
        else:
            self.answer(404)
            return
        self.answer(201, ETag=hashlib.md5(body).hexdigest())

    def do_DELETE(self) -> None:
        container, name = self.named()
        there = self.containers.get(container, {} if name else None)
        if there is None or (name and name not in there):
            self.answer(404)
        elif not name and there:
            self.answer(409)
        else:
            (there if name else self.containers).pop(name or container)
            self.answer(204)

    def named(self) -> tuple[str, str]:
        container, _, name = (
            unquote(urlsplit(self.path).path).removeprefix(f"{ACCOUNT}/").partition("/")
        )
        return container, name

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        time.sleep(DELAY_S)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def refuse_to_start() -> None:
    """End where $TOY_STARTS has said how often it starts; $TOY_COUNT is the file that counts."""
    if "TOY_STARTS" in os.environ:
        count = Path(os.environ["TOY_COUNT"])
        before = count.read_text() if count.exists() else ""
        count.write_text(f"{before}.")
        if len(before) >= int(os.environ["TOY_STARTS"]):
            sys.exit("it was to start no more")


if __name__ == "__main__":
    refuse_to_start()
    ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
