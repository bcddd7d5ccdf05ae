"""A session with the monitors, as a program on the mon host: one connection for all commands.

Each line of stdin is JSON, a list of commands that may run concurrently, each `{"prefix": ...,
...}`; the answer is one line of JSON, a list of `[code, output, message]` in the same order. A
command with `"to": "mgr"` goes to the mgr. Ends when stdin closes. Each `ceph` process would cost
0.3 s of CPU.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor


def main() -> None:
    """Answer lines until stdin closes."""
    import rados  # type: ignore[import-not-found]  # noqa: PLC0415 - installed only on the hosts where this runs

    with (
        rados.Rados(conffile="/etc/ceph/ceph.conf", conf={"client_mount_timeout": "60"}) as cluster,
        ThreadPoolExecutor(16) as pool,
    ):

        def ask(command: dict[str, object]) -> tuple[int, str, str]:
            send = cluster.mgr_command if command.pop("to", "mon") == "mgr" else cluster.mon_command
            code, output, message = send(json.dumps(command), b"")
            return code, output.decode(errors="replace"), message

        for line in sys.stdin:
            sys.stdout.write(json.dumps(list(pool.map(ask, json.loads(line)))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
