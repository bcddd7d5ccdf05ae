"""What is sent to real servers, read back from them."""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from fake_run import WORKLOADS, StepFaults, fake_run
from grafana_boards import BOARD, TARGETS, asked_for, choices, filled
from packaged import packaged
from small_lab import within
from suite_command import weighbridge
from weighbridge.common.errors import TargetError
from weighbridge.conductor.influx_writer import InfluxWriter
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.influx import (
    InfluxConnection,
    InfluxServer,
    RunPoints,
    WriteRefused,
    send_run,
)

pytestmark = pytest.mark.system


Tags = frozenset[tuple[str, str]]
Points = dict[tuple[str, Tags, int], dict[str, float]]
"""The fields of each point by measurement, tags and time in ms."""
Shown = dict[tuple[Tags, int], float]
"""A value by the tags that tell series apart, and time in ms."""


def read(lines: Iterable[str]) -> Points:
    """The points of lines that have nothing to escape."""
    found: Points = {}
    for line in lines:
        head, fields, at = line.split(" ")
        name, *tags = head.split(",")
        values = {
            key: float(value.removesuffix("i"))
            for key, _, value in (one.partition("=") for one in fields.split(","))
        }
        pairs = frozenset((key, value) for key, _, value in (one.partition("=") for one in tags))
        found[name, pairs, int(at)] = values
    return found


def lines_of(store: RunStore) -> list[str]:
    """All lines of a run, with one second of a step while it runs."""
    made = RunPoints(store)
    steps = list(store.steps())
    gateways = [one.key for one in steps if one.key.layer is None]
    return [
        *made.run(),
        *(line for step in steps for line in made.step(step)),
        *made.live(gateways[0], "measure", (120.0, 1e6), 0, 1415102401000),
    ]


def shown(points: Points, measurement: str, field: str, *, valid: bool) -> Shown:
    """What a panel shows of a field: of gateways only, if asked of valid steps only."""
    return {
        (frozenset(one for one in tags if one[0] != "suite"), at): fields[field]
        for (name, tags, at), fields in points.items()
        if name == measurement
        and field in fields
        and "layer" not in dict(tags)
        and (not valid or fields["valid"] == 1)
    }


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
        process = self._process
        within(60, lambda: process.poll() is not None or self._answers())
        assert self._answers(), f"{self._argv[0]}:\n{self._log.read_text()[-2000:]}"

    def _answers(self) -> bool:
        try:
            get(self._ready)
        except HTTPError:
            return True  # HAProxy is there when it answers at all, whatever is behind it
        except OSError:
            return False
        return True

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
        haproxy = (packaged("haproxy", "haproxy"), "-db", "-f", str(folder / "translator.cfg"))
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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Two layouts by both drivers with a layer below, a step that failed and one with errors.

    Not to be changed.
    """
    spoilt = StepFaults(
        failed=(("swift", "small-read", 16),), erring=(("rgw-beast", "small-write", 16),)
    )
    return fake_run(
        tmp_path_factory.mktemp("runs"),
        workloads=LONG,
        repeats=1,
        driver="locust,cosbench",
        layers=("rados",),
        spoilt=spoilt,
        seed=7,
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx]:
    with influx(tmp_path_factory.mktemp("influx")) as made:
        yield made


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria(tmp_path_factory.mktemp("victoria")) as url:
        yield url


def points_of(store: RunStore) -> Points:
    made = RunPoints(store)
    return read([*made.run(), *(line for step in store.steps() for line in made.step(step))])


def server(url: str, token: str = TOKEN) -> InfluxServer:
    return InfluxServer.parse(url, {"WEIGHBRIDGE_INFLUX_TOKEN": token})


def test_all_points_are_read_back_from_influxdb_as_they_were_and_sending_twice_changes_nothing(
    store: RunStore, database: Influx
) -> None:
    database.query("CREATE DATABASE whole")
    points = points_of(store)
    for _ in range(2):
        assert send_run(store, server(f"{database.url}?bucket=whole")).points == len(points)
        assert database.points("whole") == points


def test_all_points_are_read_back_from_victoriametrics_as_they_were(
    store: RunStore, metrics: str
) -> None:
    send_run(store, server(metrics, token=""))
    get(f"{metrics}/internal/force_flush")
    run = store.manifest.run_id
    asked = urlencode({"match[]": f'{{run="{run}"}}', "start": "0"})
    back: Points = {}
    for line in get(f"{metrics}/api/v1/export?{asked}").decode().splitlines():
        series = json.loads(line)
        # A measurement's name has one underscore, and what comes after the next is the field.
        measurement, field = re.fullmatch(
            r"(weighbridge_[a-z]+)_(\w+)", series["metric"].pop("__name__")
        ).groups()  # type: ignore[union-attr]
        for at, value in zip(series["timestamps"], series["values"], strict=True):
            back.setdefault((measurement, frozenset(series["metric"].items()), at), {})[field] = (
                value
            )
    points = points_of(store)
    assert set(back) == set(points)
    # It keeps decimals with a common exponent, not the floats themselves.
    assert [
        fields for where, fields in points.items() if back[where] != pytest.approx(fields, rel=1e-9)
    ] == []


def test_the_verb_sends_a_run_and_says_how_much(store: RunStore, database: Influx) -> None:
    database.query("CREATE DATABASE by_verb")
    url = f"{database.url}?bucket=by_verb"
    done = weighbridge(
        f"export {store.folder} --to influx --influx '{url}'",
        env={"WEIGHBRIDGE_INFLUX_TOKEN": TOKEN},
    )
    assert done.returncode == 0, done.stderr
    points = points_of(store)
    assert f"{len(points)} points of" in done.stdout
    assert database.points("by_verb") == points


def test_a_wrong_token_is_refused_with_what_to_do_and_nothing_is_written(
    store: RunStore, database: Influx
) -> None:
    database.query("CREATE DATABASE closed")
    with pytest.raises(WriteRefused, match="answered 401: authorization failed") as at:
        send_run(store, server(f"{database.url}?bucket=closed", token="weigher:wrong"))
    assert "WEIGHBRIDGE_INFLUX_TOKEN" in at.value.advice
    assert "weigher:wrong" not in str(at.value)
    assert not database.points("closed")


def test_a_database_that_is_not_there_is_refused_with_its_name(
    store: RunStore, database: Influx
) -> None:
    with pytest.raises(WriteRefused, match="database not found"):
        send_run(store, server(f"{database.url}?bucket=absent"))


def test_a_partial_write_is_no_success_and_names_the_field(
    store: RunStore, database: Influx
) -> None:
    database.query("CREATE DATABASE odd")
    odd = server(f"{database.url}?bucket=odd")
    connection = InfluxConnection(odd)
    connection.write(['weighbridge_host cpu_share="text" 1415102400000'])
    connection.close()
    with pytest.raises(
        TargetError, match=r'partial write: field type conflict: input field "cpu_share"'
    ):
        send_run(store, odd)


def test_a_server_that_is_killed_in_mid_run_and_started_again_lacks_nothing(
    tmp_path: Path, database: Influx
) -> None:
    database.query("CREATE DATABASE killed")
    said: list[str] = []
    store = fake_run(tmp_path, workloads=LONG, repeats=1)
    points = points_of(store)
    first, second, *others = store.steps()
    (store.folder / "steps.jsonl").unlink()  # they are yet to be measured
    with InfluxWriter(
        store, server(f"{database.url}?bucket=killed"), said.append, retry_s=0.5, close_s=60
    ) as writer:
        store.append(first)
        writer.step(first)
        database.database.end(signal.SIGKILL)
        try:
            store.append(second)
            writer.step(second)
            # It is said once, with what came first: 503, or where it was killed in the middle of a
            # write 502, the end of the connection, or no answer while HAProxy tries again.
            outage = re.compile(
                "(answered 50[23]|closed the connection|no complete answer).*; it is tried again"
            )
            assert within(60, lambda: any(map(outage.search, said))), said
            for step in others:
                store.append(step)
                writer.step(step)
        finally:
            database.database.start()  # also for the tests that follow
    assert said[-1].startswith(f"influx: {len(points)} points sent")
    assert database.points("killed") == points


def test_every_panel_of_the_dashboard_shows_what_was_sent(
    store: RunStore, database: Influx
) -> None:
    connection = InfluxConnection(server(database.url))
    connection.write(lines_of(store))
    connection.close()
    points = read(lines_of(store))
    chosen = choices(database.listed)
    for target in TARGETS:
        name, field, valid = asked_for(target["query"])
        found = {
            (frozenset((tag, value) for tag, value in series["tags"].items() if value), at): value
            for series in database.query(filled(target["query"], chosen))
            for at, value in series["values"]
        }
        assert found == shown(points, name, field, valid=valid), target["query"]
        assert found
    (annotation,) = BOARD["annotations"]["list"]
    (runs,) = database.query(filled(annotation["target"]["query"], chosen))
    assert runs["columns"] == ["time", "layouts", "run", "suite"]
    assert [value[2:] for value in runs["values"]] == [
        [store.manifest.run_id, store.manifest.suite]
    ]
