"""A plain asyncio client: HTTP/1.1 written by hand over kept connections. A job as JSON on stdin, what it saw as JSON on stdout.

It shares no code with the engine, so that driver_agreement.py can set the two beside each other.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import random
import socket
import sys
import time
from dataclasses import dataclass, field

LARGEST_PIECE = 256 * 1024


@dataclass
class Window:
    """What completes between its two times is recorded; latencies in nanoseconds."""

    opens_ns: int
    closes_ns: int
    latencies_ns: list[int] = field(default_factory=list)


async def worker(port: int, request: bytes, window: Window, starts_in_s: float) -> None:
    """Ask again and again over one connection, one request outstanding, until the window is over."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(starts_in_s)
    buffer = memoryview(bytearray(LARGEST_PIECE))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        while True:
            began_ns = time.perf_counter_ns()
            await loop.sock_sendall(connection, request)
            await answer(loop, connection, buffer)
            ended_ns = time.perf_counter_ns()
            if ended_ns >= window.closes_ns:
                return
            if ended_ns >= window.opens_ns:
                window.latencies_ns.append(ended_ns - began_ns)


async def answer(loop: asyncio.AbstractEventLoop, connection: socket.socket, buffer: memoryview) -> None:
    """Read one answer to its end. Raises SystemExit when it is no success."""
    got = 0
    while (end := bytes(buffer[:got]).find(b"\r\n\r\n")) < 0:
        count = await loop.sock_recv_into(connection, buffer[got:])
        if not count:
            raise SystemExit("closed before an answer")
        got += count
    head = bytes(buffer[:end]).lower()
    if not head.startswith(b"http/1.1 20"):
        raise SystemExit(f"answered {head[:100]!r}")
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    left = length - (got - end - 4)
    while left > 0:
        count = await loop.sock_recv_into(connection, buffer)
        if not count:
            raise SystemExit("closed in the middle of a body")
        left -= count


async def measure(job: dict[str, int | str], body: bytes) -> Window:
    """Do the job."""
    head = f"{job['method']} {job['path']} HTTP/1.1\r\nHost: asyncio\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n" if body else "\r\n"
    connections, apart_s = int(job["connections"]), float(job["apart_s"])
    opens_ns = time.perf_counter_ns() + int((connections * apart_s + float(job["warmup_s"])) * 1e9)
    window = Window(opens_ns, opens_ns + int(float(job["window_s"]) * 1e9))
    request = head.encode() + body
    await asyncio.gather(*(worker(int(job["port"]), request, window, number * apart_s) for number in range(connections)))
    return window


def main() -> None:
    """Load as told."""
    job = json.load(sys.stdin)
    body = random.Random(1).randbytes(int(job["body_bytes"]))
    gc.disable()
    latencies_ns = sorted(asyncio.run(measure(job, body)).latencies_ns)
    at_us = [latencies_ns[math.ceil(len(latencies_ns) * share / 100) - 1] / 1000 for share in (50, 90, 99)]
    print(json.dumps({"count": len(latencies_ns), "window_s": job["window_s"], "percentiles_us": at_us}))


if __name__ == "__main__":
    main()
