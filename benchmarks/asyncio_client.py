"""A plain asyncio client: HTTP/1.1 written by hand over kept connections. A job as JSON on stdin,
what it saw as JSON on stdout.

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

LARGEST_PIECE = 256 * 1024


async def worker(port: int, request: bytes, closes_ns: int, latencies_ns: list[int]) -> None:
    """Ask again and again over one connection, one request outstanding, and note how long each took
    that ended in time.
    """
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(LARGEST_PIECE))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        while True:
            began_ns = time.perf_counter_ns()
            await loop.sock_sendall(connection, request)
            await answer(loop, connection, buffer)
            ended_ns = time.perf_counter_ns()
            if ended_ns >= closes_ns:
                return
            latencies_ns.append(ended_ns - began_ns)


async def answer(
    loop: asyncio.AbstractEventLoop, connection: socket.socket, buffer: memoryview
) -> None:
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


async def measure(job: dict[str, int | str], body: bytes) -> list[int]:
    """Do the job: latencies in nanoseconds."""
    head = f"{job['method']} {job['path']} HTTP/1.1\r\nHost: asyncio\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n" if body else "\r\n"
    port, request = int(job["port"]), head.encode() + body
    latencies_ns: list[int] = []
    closes_ns = time.perf_counter_ns() + int(float(job["window_s"]) * 1e9)
    await asyncio.gather(
        *(worker(port, request, closes_ns, latencies_ns) for _ in range(int(job["connections"])))
    )
    return latencies_ns


def main() -> None:
    """Load as told."""
    job = json.load(sys.stdin)
    body = random.Random(1).randbytes(int(job["body_bytes"]))
    gc.disable()
    before_s = time.process_time()
    latencies_ns = sorted(asyncio.run(measure(job, body)))
    cpu_s = time.process_time() - before_s
    at_us = [
        latencies_ns[math.ceil(len(latencies_ns) * share / 100) - 1] / 1000
        for share in (50, 90, 99)
    ]
    print(
        json.dumps(
            {
                "count": len(latencies_ns),
                "window_s": job["window_s"],
                "percentiles_us": at_us,
                "cpu_s": cpu_s,
            }
        )
    )


if __name__ == "__main__":
    main()
