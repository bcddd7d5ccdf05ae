"""Users of object stores in ordinary locustfiles, run by plain `locust` against a null target."""

from __future__ import annotations

import csv
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import secret_search
import weighbridge
from tests.drivers.locust.local_driver import Api, Null, null

__all__ = ["null"]

pytestmark = pytest.mark.long  # starts Locust in every test

ROOT = Path(__file__).parents[2]
SHIPPED = Path(weighbridge.__file__).parent / "locust" / "locustfile.py"
KEY = "planted/secret+key-of-this-run"
HERE = "127.{}.{}.{}".format(*os.getpid().to_bytes(3, "big"))
"""An address of loopback that only this process uses: no other program takes its ports."""
OWN = """
from locust import LoadTestShape, events
from weighbridge.locust import S3User, make_workload

class Mix(S3User):
    workload = make_workload(
        "mix",
        objects={"size": "4kB", "containers": 2, "per_container": 20},
        operations={"read": 3, "write": 1},
    )
"""
SHAPE = """
class Steps(LoadTestShape):
    def tick(self):
        age_s = self.get_run_time()
        return (2, 100) if age_s < 2 else (6, 100) if age_s < 4 else (1, 100) if age_s < 6 else None

@events.test_stop.add_listener
def seen(environment, **_):
    print("at the end", environment.stats.total.num_requests, flush=True)
"""


def environment(**more: str) -> dict[str, str]:
    keys = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": KEY}
    keys |= {"ST_USER": "bench", "ST_KEY": KEY}
    return {**os.environ, "PYTHONPATH": str(ROOT), **keys, **more}


LATE_CSV = re.compile(
    r"Traceback \(most recent call last\):\n(?:(?!Traceback).)*?in stats_writer\n"
    r"(?:(?!Traceback).)*?ValueError: I/O operation on closed file\.",
    re.DOTALL,
)


def locust(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "locust", *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open() as file:
        return {row["Type"] or row["Name"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("api", "processes"),
    [
        pytest.param("s3", (), marks=pytest.mark.test_all),
        ("swift", ()),
        ("s3", ("--processes", "2")),
    ],
)
def test_a_shipped_suite_is_replayed_by_plain_locust_which_leaves_nothing_behind(
    api: Api, processes: tuple[str, ...], null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY, delay_ms=2.0)
    done = locust(
        tmp_path,
        *("-f", str(SHIPPED), "--suite", "quick", "--workload", "small-write", "--api", api),
        *("-H", target.url, "--headless", "-u", "4", "-r", "4", "-t", "3s", *processes),
        *("--csv", "one", "--html", "one.html", "--loglevel", "DEBUG"),
    )
    assert done.returncode == 0, done.stderr
    # Locust's writer of CSV may wake up once more after Locust has closed its files.
    assert "Traceback" not in LATE_CSV.sub("", done.stderr)
    found = rows(tmp_path / "one_stats.csv")
    assert found["write"]["Name"] == "small-write"
    assert int(found["write"]["Request Count"]) > 200
    assert found["write"]["Failure Count"] == "0"
    assert 2.0 <= float(found["write"]["Min Response Time"]) < 100
    assert found["Aggregated"]["Request Count"] == found["write"]["Request Count"]
    assert target.names(api, KEY) == []
    (tmp_path / "log").write_text(done.stdout + done.stderr)
    assert secret_search.find_secrets(tmp_path, {"the key": KEY}) == []


def test_a_shape_starts_and_stops_users_whose_every_request_is_in_the_statistics(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY, delay_ms=10.0)
    (tmp_path / "locustfile.py").write_text(OWN + SHAPE)
    done = locust(tmp_path, "-H", target.url, "--headless", "--csv", "one", "--csv-full-history")
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "one_stats.csv")
    assert set(found) == {"read", "write", "Aggregated"}
    (total,) = map(int, re.findall(r"at the end (\d+)", done.stdout))
    # Locust writes its CSV once a second.
    assert total - 400 < int(found["Aggregated"]["Request Count"]) <= total
    # At most 100 requests a second of each of 2, then 6, then 1 users.
    assert 900 < total <= 2 * 300 + 6 * 300 + 300
    with (tmp_path / "one_stats_history.csv").open() as file:
        lines = [one for one in csv.DictReader(file) if one["Name"] == "Aggregated"]
    assert any(float(one["Requests/s"]) > 50 and one["95%"] not in ("N/A", "0") for one in lines)
    assert target.names("s3", KEY) == []


@pytest.mark.parametrize(
    ("kind", "api"),
    [("Boto3User", "s3"), pytest.param("SwiftclientUser", "swift", marks=pytest.mark.test_all)],
)
def test_each_request_of_an_sdk_is_an_event_of_locust(
    kind: str, api: Api, null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY, delay_ms=10.0, fail_share=0.1)
    (tmp_path / "locustfile.py").write_text(
        OWN.replace("S3User", kind)
        + """
seen = []
@events.request.add_listener
def one(request_type, name, response_time, exception, **_):
    assert name == "mix" and response_time >= 10
    seen.append((request_type, exception))

@events.quitting.add_listener
def all_of_them(environment, **_):
    failed = sum(exception is not None for _, exception in seen)
    print("seen", sorted({one for one, _ in seen}), {e for _, e in seen}, failed > 5)
    print("all", len(seen) == environment.stats.total.num_requests > 100)
"""
    )
    done = locust(tmp_path, "-H", target.url, "--headless", "-u", "3", "-r", "3", "-t", "6s")
    assert "Traceback" not in done.stderr
    assert "seen ['read', 'write']" in done.stdout, done.stderr
    assert "'http-503'" in done.stdout
    assert "all True" in done.stdout
    assert target.names(api, KEY) == []
    assert done.returncode == 1


def test_failures_are_counted_by_class_and_make_locust_fail(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY, delay_ms=2.0, fail_share=0.2)
    (tmp_path / "locustfile.py").write_text(OWN)
    done = locust(
        tmp_path, *("-H", target.url, "--headless", "-u", "2", "-t", "3s", "--csv", "one")
    )
    assert done.returncode == 1, done.stderr
    found = rows(tmp_path / "one_stats.csv")["read"]
    share = int(found["Failure Count"]) / int(found["Request Count"])
    assert 0.1 < share < 0.3
    with (tmp_path / "one_failures.csv").open() as file:
        failures = list(csv.DictReader(file))
    assert {one["Error"] for one in failures} == {"http-503"}
    assert sum(int(one["Occurrences"]) for one in failures if one["Method"] == "read") == int(
        found["Failure Count"]
    )


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (("--suite", "overload", "--bucket-prefix", "A"), "how many workers", 2),
        (("-H", "http://u:planted-password@h:1"), "must not be in a URL", 2),
        (("-H", "http://127.0.0.1:1"), "127.0.0.1:1", 3),
    ],
)
def test_what_cannot_be_replayed_ends_locust_before_any_user_starts(
    arguments: tuple[str, ...], says: str, code: int, tmp_path: Path
) -> None:
    done = locust(tmp_path, "-f", str(SHIPPED), "--api", "s3", "--headless", "-t", "1s", *arguments)
    assert says in done.stderr
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "planted-password" not in done.stderr + done.stdout
    assert "Ramping" not in done.stderr


SPY = """
import sys, gevent
from locust import __version__
from locust.rpc import Message, zmqrpc
spy = zmqrpc.Client(sys.argv[1], 5557, "spy_1")
spy.send(Message("client_ready", __version__, "spy_1"))
with gevent.Timeout(40):
    while (message := spy.recv()).type != "spawn":
        pass
    print(message.data)
    spy.send(Message("quit", None, "spy_1"))
"""


def test_no_key_is_sent_to_whoever_says_that_it_is_a_worker(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY)
    (tmp_path / "locustfile.py").write_text(OWN)
    spy = subprocess.Popen(
        [sys.executable, "-c", SPY, HERE], stdout=subprocess.PIPE, env=environment(), text=True
    )
    try:
        master = locust(
            tmp_path,
            *("--master", "--master-bind-host", HERE, "--expect-workers", "1", "--headless"),
            *("-H", target.url, "-u", "1", "-t", "3s", "--bucket-prefix", "wb-spied"),
        )
        said, _ = spy.communicate(timeout=40)
    finally:
        spy.kill()
        spy.wait()
    assert "wb-spied" in said, master.stderr
    assert secret_search.secrets_in(said.encode(), {"the key": KEY}) == []
    assert target.names("s3", KEY) == []


def test_nothing_is_left_where_the_objects_of_a_second_class_cannot_be_made(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY)
    (tmp_path / "locustfile.py").write_text(OWN + "class Other(S3User):\n    pass\n")
    done = locust(tmp_path, "-H", target.url, "--headless", "-t", "1s")
    assert "mix: 40 objects exist" in done.stderr
    assert "Other has no workload" in done.stderr
    assert "mix: 40 objects deleted" in done.stderr
    assert done.returncode == 2
    assert target.names("s3", KEY) == []


class Page:
    """Locust's page."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return str(answer.read().decode())

    def post(self, path: str, form: Mapping[str, str]) -> str:
        data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(self.url + path, data, timeout=10) as answer:
            return str(answer.read().decode())

    def stop(self) -> None:
        """End the test: by POST, in older versions by GET."""
        try:
            self.post("/stop", {})
        except urllib.error.HTTPError:
            self.get("/stop")

    def until(self, met: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        deadline_s = time.monotonic() + 30
        while time.monotonic() < deadline_s:
            shown = json.loads(self.get("/stats/requests"))
            if met(shown):
                return dict[str, Any](shown)
            time.sleep(0.1)  # it is a page that is asked again and again
        raise AssertionError(shown)


@contextmanager
def page(folder: Path, *arguments: str) -> Iterator[Page]:
    with (folder / "page.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "locust", "--web-host", HERE),
                *("--loglevel", "DEBUG", *arguments),
            ],
            cwd=folder,
            env=environment(),
            stdout=log,
            stderr=log,
        )
    try:
        found = Page(f"http://{HERE}:8089")
        deadline_s = time.monotonic() + 30
        while True:
            try:
                found.get("/")
                break
            except OSError:
                assert process.poll() is None, (folder / "page.log").read_text()
                assert time.monotonic() < deadline_s
                time.sleep(0.1)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


@pytest.mark.parametrize(
    "processes", [(), pytest.param(("--processes", "2"), marks=pytest.mark.test_all)]
)
def test_the_page_starts_tests_shows_live_percentiles_and_no_key(
    processes: tuple[str, ...], null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY, delay_ms=4.0)
    arguments = ("-f", str(SHIPPED), "-H", target.url, "--api", "s3", *processes)
    with page(tmp_path, *arguments) as shown:
        if processes:
            shown.until(lambda one: len(one["workers"]) == 2)
        pages = [shown.get("/")]
        for workload in ("small-read", "small-write"):
            shown.post(
                "/swarm",
                {"user_count": "4", "spawn_rate": "4", "host": target.url, "workload": workload},
            )
            live = shown.until(
                lambda one, workload=workload: (
                    {entry["name"] for entry in one["stats"]} == {workload, "Aggregated"}
                    and one["current_response_time_percentiles"]["response_time_percentile_0.95"]
                    and one["total_rps"] > 10
                )
            )
            assert live["user_count"] == 4
            paths = ("/", "/stats/requests", "/stats/report", "/exceptions", "/logs", "/tasks")
            pages += [json.dumps(live), *map(shown.get, paths)]
            pages += [shown.get(f"/stats/{one}/csv") for one in ("requests", "failures")]
            shown.stop()
            shown.until(lambda one: one["state"] == "stopped")
    (tmp_path / "pages").write_text("\n".join(pages))
    assert "small-write" in "".join(pages)
    assert secret_search.find_secrets(tmp_path, {"the key": KEY}) == []
    assert target.names("s3", KEY) == []


def test_swifts_key_is_sent_to_no_host_that_only_the_page_names(
    null: Callable[..., Null], tmp_path: Path
) -> None:
    target = null(key=KEY)
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.5)
        other = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        with page(tmp_path, "-f", str(SHIPPED), "-H", target.url, "--api", "swift") as shown:
            shown.post("/swarm", {"user_count": "1", "spawn_rate": "1", "host": other})
            shown.until(lambda _: "only to the URL that this process was" in shown.get("/logs"))
        with pytest.raises(TimeoutError):
            elsewhere.accept()
