"""A store over S3 and Swift in memory, in which tests plant what a power cut may leave."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint

SWIFT = "/v1/AUTH_test"
S3_PAGE = 1000


@dataclass
class SurvivorStore:
    """What it holds, and what it does otherwise than a good store."""

    url: str = ""
    objects: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """By container (of either API) and name."""
    manifests: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    reads: dict[str, Callable[[Any], bool]] = field(default_factory=dict)
    """By name: answers a GET in its place if it returns True."""
    newest: dict[str, bytes] = field(default_factory=dict)
    """By name: what a GET with X-Newest gives."""
    writes: Callable[[Any], bool] | None = None
    """The same for every PUT of an object."""
    refuses_containers: bool = False
    """Whether no container can be made; the answer repeats what the request had."""
    listed: Callable[[str, list[str]], list[str]] = lambda _, names: names
    """The names that a listing of a container has."""
    list_answer: Callable[[Any], bool] | None = None
    """Answers a listing in its place if it returns True."""
    requests: list[str] = field(default_factory=list)
    """`METHOD path?query` of each."""

    def endpoints(self) -> tuple[Endpoint, ...]:
        return (
            Endpoint(api="s3", url=self.url, user="access", key=SecretStr("secret-s3")),
            Endpoint(
                api="swift",
                url=f"{self.url}/auth/v1.0",
                user="test:tester",
                key=SecretStr("secret-swift"),
            ),
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body in one packet
    store: SurvivorStore
    parts: dict[tuple[str, str], dict[int, bytes]]

    def answer(self, status: int, body: bytes = b"", **fields: str) -> bool:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        return True

    def _place(self) -> tuple[str, str, str, dict[str, str]]:
        self.store.requests.append(f"{self.command} {self.path}")
        parts = urlsplit(self.path)
        api = "swift" if parts.path.startswith(SWIFT) else "s3"
        path = parts.path.removeprefix(SWIFT) if api == "swift" else parts.path
        _, container, *rest = unquote(path).split("/", 2)
        given = parse_qs(parts.query, keep_blank_values=True)
        query = {key: values[0] for key, values in given.items()}
        return api, container, rest[0] if rest else "", query

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_PUT(self) -> None:
        _, container, name, query = self._place()
        body = self._body()
        tag = hashlib.md5(body).hexdigest()
        store = self.store
        if not name and store.refuses_containers:
            self.answer(403, str(self.headers).encode())
        elif not name:
            store.objects.setdefault(container, {})
            self.answer(201)
        elif store.writes is not None and store.writes(self):
            return
        elif "uploadId" in query:
            self.parts.setdefault((container, name), {})[int(query["partNumber"])] = body
            self.answer(200, etag=f'"{tag}"')
        elif query.get("multipart-manifest") == "put":
            store.manifests[container, name] = [row["path"] for row in json.loads(body)]
            store.objects[container][name] = b""
            self.answer(201)
        else:
            store.manifests.pop((container, name), None)
            store.objects[container][name] = body
            self.answer(201, etag=tag)

    def do_POST(self) -> None:
        _, container, name, query = self._place()
        self._body()
        if "uploads" in query:
            root = "InitiateMultipartUploadResult"
            self.answer(200, f"<{root}><UploadId>2~up.load</UploadId></{root}>".encode())
            return
        parts = [body for _, body in sorted(self.parts.pop((container, name)).items())]
        digests = b"".join(hashlib.md5(part).digest() for part in parts)
        tag = f"{hashlib.md5(digests).hexdigest()}-{len(parts)}"
        if self.store.writes is not None and self.store.writes(self):
            return
        self.store.objects[container][name] = b"".join(parts)
        root = "CompleteMultipartUploadResult"
        self.answer(200, f"\n<{root}><ETag>&quot;{tag}&quot;</ETag></{root}>".encode())

    def do_DELETE(self) -> None:
        _, container, name, _query = self._place()
        self.store.objects[container].pop(name, None)
        self.store.manifests.pop((container, name), None)
        self.answer(204)

    def do_GET(self) -> None:
        if self.path == "/auth/v1.0":
            url = self.store.url + SWIFT
            self.answer(200, X_Storage_Url=url, X_Auth_Token="AUTH_tk-secret")
            return
        api, container, name, query = self._place()
        if not name:
            self._list(api, container, query)
            return
        if self.headers.get("X-Newest") and name in self.store.newest:
            self.answer(200, self.store.newest[name])
            return
        if name in self.store.reads and self.store.reads[name](self):
            return
        body = self.store.objects[container].get(name)
        if body is None:
            self.answer(404, b"nothing here")
            return
        for path in self.store.manifests.get((container, name), ()):
            _, segments, segment = path.split("/", 2)
            if segment not in self.store.objects[segments]:
                self.answer(409)
                return
            body += self.store.objects[segments][segment]
        self.answer(200, body)

    def _list(self, api: str, container: str, query: dict[str, str]) -> None:
        if self.store.list_answer is not None and self.store.list_answer(self):
            return
        after = query.get("marker" if api == "swift" else "start-after", "")
        names = self.store.listed(container, sorted(self.store.objects[container]))
        names = [name for name in names if name > after]
        if api == "swift":
            page = names[: int(query["limit"])]
            self.answer(200 if page else 204, "".join(f"{name}\n" for name in page).encode())
            return
        page = names[: min(S3_PAGE, int(query["max-keys"]))]
        rows = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in page)
        more = str(len(page) < len(names)).lower()
        text = f"<IsTruncated>{more}</IsTruncated>{rows}"
        self.answer(200, f"<ListBucketResult>{text}</ListBucketResult>".encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def survivor_store() -> Iterator[SurvivorStore]:
    store = SurvivorStore()
    handler = type("Handler", (_Handler,), {"store": store, "parts": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        store.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield store
        finally:
            server.shutdown()
