"""A small S3 and Swift server that misbehaves if a bucket's name asks for it.

It works correctly, except on objects in buckets of a workload that is named after a fault: there
every second read of a prepared object fails, and every second write of a step if the fault is one
of writes, too (a prepared object is always stored). `GET /witness` reports its answers by workload.

Prints `{"listening": url}` when it listens. Buckets are `prefix-workload-number`, as drivers name
them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import struct
import sys
import urllib.parse
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from xml.sax.saxutils import escape

NEVER_S = 60.0
SLOW_S = 11.0
"""Longer than requests may take in the tests."""
OUTAGE_S = 0.25
"""So long nobody listens, from the first read in a bucket of the workload `refusing` on."""
READS_BETWEEN_OUTAGES = 30
"""Reads until the next outage: on a busy machine the first one falls into the warm-up."""
EXPIRY_S = 1.0
"""So long after the first read in a bucket of the workload `expiring` every token that was given is
forgotten.
"""

buckets: dict[str, dict[str, bytes]] = {}
seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
tokens: set[str] = set()
reads: Counter[str] = Counter()
"""Reads of prepared objects so far, by bucket."""
opened: list[asyncio.StreamWriter] = []
listening: list[asyncio.Server] = []
tasks: set[asyncio.Task[None]] = set()


class Hangup(Exception):
    """Raised to close the connection."""


Writer = asyncio.StreamWriter
Fault = Callable[[Writer, bytes], Coroutine[None, None, None]]


def head(status: int, length: int, fields: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{fields}\r\n".encode()


async def send(writer: Writer, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def reset(writer: Writer, whole: bytes) -> None:
    """Half of the answer, and a connection that is reset."""
    await send(writer, whole[: len(whole) // 2])
    await asyncio.sleep(0.01)  # or the half would be lost with the connection
    wire: socket.socket = writer.get_extra_info("socket")
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    raise Hangup


async def half(writer: Writer, whole: bytes) -> None:
    """Half of the answer, and its end."""
    await send(writer, whole[: len(whole) // 2])
    raise Hangup


async def slow(writer: Writer, whole: bytes) -> None:
    """All of it, too late."""
    await asyncio.sleep(SLOW_S)
    await send(writer, whole)


async def never(writer: Writer, whole: bytes) -> None:
    """Nothing."""
    del writer, whole
    await asyncio.sleep(NEVER_S)
    raise Hangup


async def stuck(writer: Writer, whole: bytes) -> None:
    """All but the last byte, and nothing more."""
    await send(writer, whole[:-1])
    await asyncio.sleep(NEVER_S)
    raise Hangup


def status(number: int) -> Fault:
    async def refuse(writer: Writer, whole: bytes) -> None:
        del whole
        await send(writer, head(number, 4) + b"busy")

    return refuse


def resized(by: int) -> Fault:
    """A consistent answer, but for an object of another size."""

    async def answer(writer: Writer, whole: bytes) -> None:
        body = whole.split(b"\r\n\r\n", 1)[1]
        body = body[:by] if by < 0 else body + b"x" * by
        await send(writer, head(200, len(body)) + body)

    return answer


async def promising(writer: Writer, whole: bytes) -> None:
    """More is promised than comes."""
    body = whole.split(b"\r\n\r\n", 1)[1]
    await send(writer, head(200, len(body) + 100) + body)
    raise Hangup


async def other(writer: Writer, whole: bytes) -> None:
    """Another last byte."""
    await send(writer, whole[:-1] + bytes([whole[-1] ^ 1]))


async def garbage(writer: Writer, whole: bytes) -> None:
    """No HTTP."""
    del whole
    await send(writer, b"SSH-2.0-OpenSSH_9.2\r\n")
    raise Hangup


async def outage(port: int) -> None:
    """Everybody is hung up on, and nobody listens for a while."""
    listening[0].close()
    for writer in opened:
        writer.transport.abort()
    opened.clear()
    # Nobody else gets the port meanwhile: a socket that is bound and does not listen refuses.
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    await asyncio.sleep(OUTAGE_S)
    listening[0] = await asyncio.start_server(answer, sock=held)


FAULTS: dict[str, Fault] = {
    "status-500": status(500),
    "status-503": status(503),
    "resetting": reset,
    "half": half,
    "slow": slow,
    "never": never,
    "stuck": stuck,
    "shorter": resized(-24),
    "longer": resized(24),
    "promising": promising,
    "other-content": other,
    "garbage": garbage,
}
READ_FAULTS = ("stuck", "shorter", "longer", "promising", "other-content")
"""Those of bodies: writes are answered without one, and go right."""


async def answer(reader: asyncio.StreamReader, writer: Writer) -> None:
    opened.append(writer)
    try:
        while True:
            await one(reader, writer)
    except (Hangup, asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def one(reader: asyncio.StreamReader, writer: Writer) -> None:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ")
    fields = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines[1:])
    }
    if fields.get("expect", "").lower() == "100-continue":
        await send(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
    if fields.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while length := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await reader.readexactly(length)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(fields.get("content-length", 0)))
    path, _, query = target.partition("?")
    if path == "/witness":
        answer_body = json.dumps({name: dict(counts) for name, counts in seen.items()}).encode()
        await send(writer, head(200, len(answer_body)) + answer_body)
        return
    if path == "/auth/v1.0":
        token = f"tk{os.urandom(8).hex()}"
        tokens.add(token)
        here = f"http://{fields['host']}/v1/AUTH_test"
        await send(writer, head(200, 0, f"X-Storage-Url: {here}\r\nX-Auth-Token: {token}\r\n"))
        return
    swift = path.startswith("/v1/AUTH_test")
    bucket, _, name = (
        urllib.parse.unquote(path.removeprefix("/v1/AUTH_test")).removeprefix("/").partition("/")
    )
    workload = "-".join(bucket.split("-")[2:-1])
    if method == "GET" and name.startswith("object-"):
        reads[bucket] += 1
        if workload == "refusing" and reads[bucket] % READS_BETWEEN_OUTAGES == 1:
            tasks.add(asyncio.create_task(outage(writer.get_extra_info("sockname")[1])))
            raise Hangup
        if workload == "expiring" and reads[bucket] == 1:
            asyncio.get_running_loop().call_later(EXPIRY_S, tokens.clear)
    if swift and fields.get("x-auth-token") not in tokens:
        seen[workload]["refused"] += 1
        await send(writer, head(401, 0))
        return
    reply = whole(method, bucket, name, query, body, swift=swift)
    fault = FAULTS.get(workload)
    writes = method == "PUT" and name.startswith("written-") and workload not in READ_FAULTS
    if fault is not None and (writes or (method == "GET" and name)):
        seen[workload][method] += 1
        if seen[workload][method] % 2:
            seen[workload][f"{method} wrong"] += 1
            await fault(writer, reply)
            return
    if name and method in ("GET", "PUT"):
        seen[workload][f"{method} right"] += 1
    await send(writer, reply)


def whole(method: str, bucket: str, name: str, query: str, body: bytes, *, swift: bool) -> bytes:
    if method == "PUT" and not name:
        buckets.setdefault(bucket, {})
        return head(201 if swift else 200, 0)
    if not bucket:
        return head(200, 0)
    held = buckets.get(bucket)
    if held is None:
        return head(404, 0)
    if not name:
        if method == "DELETE":
            if held:
                return head(409, 0)
            del buckets[bucket]
            return head(204, 0)
        return listed(held, query, swift=swift)
    if method == "PUT":
        held[name] = body
        return head(201 if swift else 200, 0, f'ETag: "{_md5(body)}"\r\n')
    if name not in held:
        return head(404, 0)
    if method == "DELETE":
        del held[name]
        return head(204, 0)
    found = held[name]
    return head(200, len(found), f'ETag: "{_md5(found)}"\r\n') + (found if method == "GET" else b"")


def listed(held: dict[str, bytes], query: str, *, swift: bool) -> bytes:
    asked = dict(urllib.parse.parse_qsl(query))
    after, prefix = asked.get("marker", asked.get("start-after", "")), asked.get("prefix", "")
    names = sorted(one for one in held if one > after and one.startswith(prefix))
    if swift:
        answer_body = json.dumps([{"name": one} for one in names]).encode()
    else:
        rows = "".join(f"<Contents><Key>{escape(one)}</Key></Contents>" for one in names)
        answer_body = (
            f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()
        )
    return head(200, len(answer_body)) + answer_body


def _md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


async def main() -> None:
    listening.append(await asyncio.start_server(answer, "127.0.0.1", 0))
    port = listening[0].sockets[0].getsockname()[1]
    sys.stdout.write(json.dumps({"listening": f"http://127.0.0.1:{port}"}) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
