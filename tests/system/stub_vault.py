"""Run on a gateway's host: stands in for the transit engine of a HashiCorp Vault, with data keys in
memory.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEYS: dict[str, bytes] = {}
"""Data keys by what stands for them."""


class Transit(BaseHTTPRequestHandler):
    """`datakey/plaintext/NAME` makes a data key, `decrypt/NAME` gives it back."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        data: dict[str, str] = {}
        if "/datakey/" in self.path:
            wrapped = f"vault:v1:{base64.b64encode(os.urandom(32)).decode()}"
            KEYS[wrapped] = os.urandom(32)
            data = {"plaintext": base64.b64encode(KEYS[wrapped]).decode(), "ciphertext": wrapped}
        elif "/decrypt/" in self.path:
            data = {"plaintext": base64.b64encode(KEYS[asked["ciphertext"]]).decode()}
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.do_POST()


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1])), Transit).serve_forever()
