"""The toy front's daemon: forwards each connection to the next backend, and counts them in a file.

`toy_forward.py CONFIGURATION COUNTS`; the configuration has lines `listen ADDRESS PORT` and
`backend ADDRESS PORT`. `toy_forward.py counters COUNTS` reports them every second.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path

from weighbridge.gateways.counter_loop import print_every_second


async def forward(lines: list[list[str]], counts: Path) -> None:
    backends = itertools.cycle(
        [(address, int(port)) for word, address, port in lines if word == "backend"]
    )
    counted = {"connections": 0, "open": 0}

    def count(**more: int) -> None:
        counted.update({name: counted[name] + by for name, by in more.items()})
        draft = counts.with_suffix(".draft")
        draft.write_text(json.dumps(counted))
        draft.replace(counts)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass  # the other direction ends as well
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        count(connections=1, open=1)
        try:
            back_reader, back_writer = await asyncio.open_connection(*next(backends))
            await asyncio.gather(pump(reader, back_writer), pump(back_reader, writer))
        finally:
            count(open=-1)

    count()
    ((_, address, port),) = (line for line in lines if line[0] == "listen")
    async with await asyncio.start_server(serve, address, int(port)) as server:
        await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "counters":
        print_every_second(lambda: json.loads(Path(sys.argv[2]).read_text()), "toy front")
    else:
        text = Path(sys.argv[1]).read_text()
        asyncio.run(forward([line.split() for line in text.splitlines()], Path(sys.argv[2])))
