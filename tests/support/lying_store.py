"""An S3 server whose bucket always lists the same objects, whatever was deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

NAMES = tuple(f"object-{number}" for number in range(5))
LIST = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in NAMES)


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, f"<ListBucketResult>{LIST}</ListBucketResult>".encode())

    def do_DELETE(self) -> None:
        self._send(204 if self.path.count("/") > 1 else 409)

    def _send(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def lying_store() -> Iterator[str]:
    """Its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.daemon_threads = True
        server.block_on_close = False
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
