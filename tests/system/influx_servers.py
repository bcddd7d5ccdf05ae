"""Two real servers that take what InfluxDB 2 takes:

VictoriaMetrics, and InfluxDB 1.6 behind an HAProxy that translates.
"""

from __future__ import annotations

import base64
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from fake_run import WORKLOADS
from packaged import packaged

USER, PASSWORD = "weigher", "planted-secret"
TOKEN = f"{USER}:{PASSWORD}"
LONG = tuple(one.model_copy(update={"workers": (4, 16), "runtime": 12.0}) for one in WORKLOADS[:2])

INFLUX = """
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
dir = "{folder}/meta"
[data]
dir = "{folder}/data"
wal-dir = "{folder}/wal"
[http]
bind-address = "127.0.0.1:{port}"
auth-enabled = true
log-enabled = false
[monitor]
store-enabled = false
"""

# A write of version 2 as one of version 1: another path, `db` for `bucket`, and USER:PASSWORD of
# the token as HTTP's own "Basic".
TRANSLATOR = """
global
  maxconn 50
defaults
  mode http
  timeout connect 2s
  timeout client 20s
  timeout server 20s
frontend version-2
  bind 127.0.0.1:{port}
  acl writes path /api/v2/write
  acl known req.hdr(Authorization) -m beg "Token "
  http-request set-var(txn.user) req.hdr(Authorization),word(2,' '),base64 if known
  http-request set-header Authorization "Basic %[var(txn.user)]" if known
  http-request set-query db=%[urlp(bucket)]&precision=%[urlp(precision)] if writes
  http-request set-path /write if writes
  default_backend version-1
backend version-1
  server influxd 127.0.0.1:{behind}
"""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def get(url: str, headers: dict[str, str] | None = None, data: bytes | None = None) -> bytes:
    with urlopen(Request(url, data, headers or {}), timeout=20) as answer:
        return bytes(answer.read())


class Daemon:
    """A server's process, which can be killed and started again on the same files."""

    def __init__(self, argv: Sequence[str], ready: str, log: Path) -> None:
        self._argv = argv
        self._ready = ready
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        end = time.monotonic() + 60
        while True:
            try:
                get(self._ready)
            except (HTTPError, URLError, OSError) as error:
                # HAProxy is there when it answers at all, whatever is behind it.
                if isinstance(error, HTTPError):
                    return
                if self._process.poll() is not None or time.monotonic() > end:
                    raise AssertionError(
                        f"{self._argv[0]} does not answer:\n{self._log.read_text()[-2000:]}"
                    ) from error
                time.sleep(0.05)
            else:
                return

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(by)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


@contextmanager
def victoria(folder: Path) -> Iterator[str]:
    """VictoriaMetrics; where it is."""
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    options = ("-retentionPeriod=100y", "-search.latencyOffset=0s", "-memory.allowedBytes=128MB")
    daemon = Daemon(
        (
            packaged("victoria-metrics", "victoria-metrics"),
            f"-storageDataPath={folder / 'victoria'}",
            f"-httpListenAddr=127.0.0.1:{port}",
            *options,
        ),
        f"{url}/health",
        folder / "victoria.log",
    )
    try:
        daemon.start()
        yield url
    finally:
        daemon.end()


class Influx:
    """InfluxDB 1.6 with a user and the database `weighbridge`.

    `url` is that of the translator before it, `direct` its own.
    """

    def __init__(self, folder: Path) -> None:
        port, rpc, front = free_ports(3)
        self.direct = f"http://127.0.0.1:{port}"
        self.url = f"http://127.0.0.1:{front}"
        (folder / "influx.conf").write_text(INFLUX.format(folder=folder, port=port, rpc=rpc))
        (folder / "translator.cfg").write_text(TRANSLATOR.format(port=front, behind=port))
        self.database = Daemon(
            (packaged("influxd", "influxdb"), "-config", str(folder / "influx.conf")),
            f"{self.direct}/ping",
            folder / "influxd.log",
        )
        haproxy = (
            packaged("haproxy", "haproxy"),
            "-db",
            "-f",
            str(folder / "translator.cfg"),
        )
        self.translator = Daemon(haproxy, f"{self.url}/ping", folder / "translator.log")

    def query(self, text: str, database: str = "weighbridge") -> list[dict[str, Any]]:
        """The series that InfluxQL gives, with times in milliseconds."""
        asked = urlencode({"db": database, "q": text, "epoch": "ms"}).encode()
        basic = base64.b64encode(TOKEN.encode()).decode()
        (found,) = json.loads(
            get(f"{self.direct}/query", {"Authorization": f"Basic {basic}"}, asked)
        )["results"]
        assert "error" not in found, found
        return list(found.get("series", []))

    def listed(self, query: str) -> list[str]:
        """The values that a query for a variable lists."""
        return [str(value[1]) for series in self.query(query) for value in series["values"]]

    def points(
        self, database: str = "weighbridge"
    ) -> dict[tuple[str, frozenset[tuple[str, str]], int], dict[str, float]]:
        """All that the database holds: fields by measurement, tags and time."""
        found = {}
        for series in self.query("SELECT * FROM /^weighbridge_/ GROUP BY *", database):
            tags = frozenset((name, value) for name, value in series["tags"].items() if value)
            for at, *values in series["values"]:
                known = {
                    name: value
                    for name, value in zip(series["columns"][1:], values, strict=True)
                    if value is not None
                }
                found[series["name"], tags, at] = known
        return found


@contextmanager
def influx(folder: Path) -> Iterator[Influx]:
    """InfluxDB 1.6 behind its translator."""
    made = Influx(folder)
    try:
        made.database.start()
        made.translator.start()
        # The first user is made without one.
        first = urlencode(
            {"q": f"CREATE USER \"{USER}\" WITH PASSWORD '{PASSWORD}' WITH ALL PRIVILEGES"}
        ).encode()
        get(f"{made.direct}/query", data=first)
        made.query("CREATE DATABASE weighbridge")
        yield made
    finally:
        made.translator.end()
        made.database.end()
