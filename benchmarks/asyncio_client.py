"""A plain asyncio HTTP/1.1 client over kept connections: a job as JSON on stdin, results on stdout.

It shares no code with the engine, so that driver_agreement.py can compare the two.
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


async def worker(port: int, request: bytes, window_end_ns: int, latencies_ns: list[int]) -> None:
    """Repeat a request over one connection and record the latencies of those that ended in time."""
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(LARGEST_PIECE))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)  # noqa: FBT003 - the standard library's signature
        while True:
            start_ns = time.perf_counter_ns()
            await loop.sock_sendall(connection, request)
            await read_response(loop, connection, buffer)
            end_ns = time.perf_counter_ns()
            if end_ns >= window_end_ns:
                return
            latencies_ns.append(end_ns - start_ns)


async def read_response(
    loop: asyncio.AbstractEventLoop, connection: socket.socket, buffer: memoryview
) -> None:
    """Read one complete response. Raises SystemExit if it is no success."""
    got = 0
    while (end := bytes(buffer[:got]).find(b"\r\n\r\n")) < 0:
        count = await loop.sock_recv_into(connection, buffer[got:])
        if not count:
            raise SystemExit("closed before a response")
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
    """Run the job: latencies in nanoseconds."""
    head = f"{job['method']} {job['path']} HTTP/1.1\r\nHost: asyncio\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n" if body else "\r\n"
    port, request = int(job["port"]), head.encode() + body
    latencies_ns: list[int] = []
    window_end_ns = time.perf_counter_ns() + int(float(job["window_s"]) * 1e9)
    await asyncio.gather(
        *(
            worker(port, request, window_end_ns, latencies_ns)
            for _ in range(int(job["connections"]))
        )
    )
    return latencies_ns


def main() -> None:
    """Run the job on stdin."""
    job = json.load(sys.stdin)
    body = random.Random(1).randbytes(int(job["body_bytes"]))
    gc.disable()
    before_s = time.process_time()
    latencies_ns = sorted(asyncio.run(measure(job, body)))
    cpu_s = time.process_time() - before_s
    count = len(latencies_ns)
    result = {
        "count": count,
        "window_s": job["window_s"],
        "percentiles_us": [
            latencies_ns[math.ceil(count * percent / 100) - 1] / 1000 for percent in (50, 90, 99)
        ],
        "cpu_s": cpu_s,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
