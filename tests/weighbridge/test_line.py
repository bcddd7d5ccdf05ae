"""One line compares endpoints that already run: null targets of this machine, by nobody in
particular, from any folder.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from swiftclient.client import Connection

from lying_store import leftovers, sweep_of
from secret_search import find_secrets, secrets_in
from ssh_server import Server
from tests.drivers.conftest import Reply, always, serving
from tests.drivers.good_answers import answer
from tests.weighbridge import command_line
from tests.weighbridge.command_line import (
    DELAY_MS,
    KEY,
    existing,
    null_target,
    read_until,
    s3_at,
    started,
    swift_at,
    trial,
)
from tests.weighbridge.sent_runs import until
from weighbridge.cli import deployments
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.exchange import HttpAnswer, WrongAnswer
from weighbridge.gateways.existing import clear
from weighbridge.results.run.store import RunStore

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
NOBODY = 65534
# As in tests/system/test_unprivileged.py: only root may be able to read the interpreter's folder.
AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
)  # fmt: skip
SHORT = ("--workers", "2", "--duration", "1s", "--no-charts")


class Nobody:
    """A user without rights, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if os.geteuid() == 0:
            shutil.chown(folder, NOBODY, NOBODY)

    def __call__(self, *words: str | Path, **keys: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "weighbridge", *map(str, words)]
        return subprocess.run(
            [*(AS_NOBODY if os.geteuid() == 0 else ()), *argv],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                **({} if "HOME" in keys else {"HOME": str(self.folder)}),
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                **{name: value for name, value in keys.items() if value},
            },
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def targets() -> Iterator[tuple[str, str]]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(null_target("--delay-ms", str(DELAY_MS))),
            stack.enter_context(null_target("--delay-ms", str(DELAY_MS * 2))),
        )


@pytest.fixture
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Nobody:
    folder = tmp_path_factory.mktemp("nobody")
    folder.parent.chmod(0o755)
    return Nobody(folder)


def test_two_s3_endpoints_are_compared_by_one_line_without_root_and_without_files(
    nobody: Nobody, targets: tuple[str, str]
) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "weigh:er", "AWS_SECRET_ACCESS_KEY": KEY}
    line = ("compare", "--s3", f"fast={targets[0]}", "--s3", f"slow={targets[1]}")
    done = nobody(*line, *SHORT, **keys)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("checking fast\n(.*\n)+.*fast answers, verified after", done.stdout)
    assert "leaving fast" in done.stdout
    assert not re.search("(starting|stopping) (fast|slow)", done.stdout)
    (run,) = (nobody.folder / "runs").iterdir()
    steps = RunStore.open(run).steps()
    assert {(step.key.layout, step.key.workload, step.key.workers) for step in steps} == {
        (layout, workload, 2)
        for layout in ("fast", "slow")
        for workload in ("read-64kb", "write-64kb")
    }
    for step in steps:
        assert step.measurement is not None, step.notes
        assert not any(tally.errors for tally in step.measurement.tallies)
    secrets = {"the key": KEY}
    assert secrets_in((done.stdout + done.stderr).encode(), secrets) == []
    assert find_secrets(nobody.folder, secrets) == []

    # The last step is lost: the line is not needed to resume, but its keys are.
    lines = (run / "steps.jsonl").read_text().splitlines(keepends=True)
    (run / "steps.jsonl").write_text("".join(lines[:-1]))
    manifest = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(manifest.replace('"state": "done"', '"state": "running"'))
    place = run.relative_to(nobody.folder)
    keyless = nobody("resume", "--no-charts", place)
    assert keyless.returncode == 2
    assert "not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY" in keyless.stderr
    resumed = nobody("resume", "--no-charts", place, **keys)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert len(RunStore.open(run).steps()) == len(steps)


@pytest.mark.test_all
def test_an_endpoint_of_swift_is_measured_over_both_apis_with_keys_from_files_and_environment(
    nobody: Nobody, targets: tuple[str, str]
) -> None:
    aws = nobody.folder / ".aws"
    aws.mkdir()
    text = f"[theirs]\naws_access_key_id = weigh:er\naws_secret_access_key = {KEY}\n"
    (aws / "credentials").write_text(text)
    (aws / "credentials").chmod(0o600)
    if os.geteuid() == 0:
        shutil.chown(aws / "credentials", NOBODY, NOBODY)
    ends = ("--s3", f"one={targets[0]}", "--swift", f"one={targets[0]}/auth/v1.0")
    size = ("--sizes", "4k", "--mix", "read", "--profile", "one=theirs")
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "TMPDIR": "/nonexistent"}
    keys = {"ST_USER": "weigh:er", "ST_KEY": KEY}
    done = nobody("compare", *ends, *size, *SHORT, "--out", "there", **keys, **plain)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (nobody.folder / "there").iterdir()
    found = {(one.key.api, one.key.workload) for one in RunStore.open(run).steps()}
    assert found == {("s3", "read-4kb"), ("swift", "read-4kb")}


def test_a_dry_run_says_how_long_it_takes_and_what_it_can_claim_and_needs_no_keys(
    nobody: Nobody,
) -> None:
    done = nobody(
        "compare", "--s3", "a=https://a.example", "--s3", "b=https://b.example", "--sizes",
        "64k,8M", "--mix", "read,write", "--workers", "1,16", "--duration", "30s", "--dry-run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for words in (
        "S3 at https://b.example",
        "write-8mb",
        "1 repeat on this-machine: 2 visits, 16 steps, about 1",
        "n = 1: no difference can be claimed, which needs 5 repeats",
    ):
        assert words in done.stdout
    assert list(nobody.folder.iterdir()) == []


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": ""},
        pytest.param(
            {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}, marks=pytest.mark.test_all
        ),
        pytest.param(
            {"HOME": "/proc/1/root", "PYTHONIOENCODING": "latin-1"}, marks=pytest.mark.test_all
        ),
        {"HOME": "/nonexistent", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
def test_a_user_without_a_folder_is_told_in_a_sentence_what_to_set(
    nobody: Nobody, environment: dict[str, str]
) -> None:
    done = nobody("compare", "--s3", "a=http://127.0.0.1:1", **environment)
    assert done.returncode == 2
    assert "Set WEIGHBRIDGE_HOME to a folder that this user can write to." in done.stderr
    assert "Traceback" not in done.stderr


DELAYED = ("--delay-ms", str(command_line.DELAY_MS))


@contextmanager
def existing_null_target(*words: str) -> Iterator[tuple[str, int]]:
    with command_line.null_target(*words) as url:
        yield "127.0.0.1", int(url.rsplit(":", 1)[1])


def containers(place: tuple[str, int], make: str | None = None) -> list[str]:
    if make is not None:
        left_by(place, bucket=make, name="precious")
    with swift_of(place) as swift:
        return [one["name"] for one in swift.get_account()[1]]


def write(
    folder: Path, urls: dict[str, str], ca: Path | None = None, runtime: str = "1s"
) -> list[str]:
    """The words that compare layouts and a suite from files."""
    suite = trial(
        "swift, s3",
        "{read: 50, write: 50}",
        more="cache: before-step\n",
        objects="{size: 4KiB, containers: 2, per_container: 5}",
        runtime=runtime,
        verify="true",
    )
    (folder / "trial.yaml").write_text(suite)
    for name, url in urls.items():
        ca_file = f', ca_file: "{ca}"' if ca is not None and url.startswith("https") else ""
        layout = existing(name, s3=s3_at(url, ca_file), swift=swift_at(url, ca_file))
        (folder / f"{name}.yaml").write_text(layout)
    layouts = ",".join(str(folder / f"{name}.yaml") for name in urls)
    files = ("--suite", f"{folder}/trial.yaml", "--layouts", layouts, "--out", f"{folder}/runs")
    return ["compare", *files, "--hardware", "this-machine", "--no-charts"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return command_line.environment(tmp_path, **command_line.keys())


def test_what_is_missing_is_reported_before_a_run_starts(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    command = write(tmp_path, {"plain": "http://127.0.0.1:9"})
    lacking = {**environment, "ST_KEY": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = command_line.run(*command, env=lacking, code=2)
    assert "swift: not set: $ST_KEY" in done.stderr
    assert "AWS_SECRET_ACCESS_KEY" in done.stderr
    assert not (tmp_path / "runs").exists()


@contextmanager
def swift_of(place: tuple[str, int]) -> Iterator[Any]:
    swift = Connection(f"http://{place[0]}:{place[1]}/auth/v1.0", "weigh:er", KEY, retries=0)
    yield swift
    swift.close()


def left_by(place: tuple[str, int], *, bucket: str, name: str = "object-0000000001") -> None:
    with swift_of(place) as swift:
        swift.put_container(bucket)
        swift.put_object(bucket, name, b"x")


def s3_of(place: tuple[str, int]) -> Endpoint:
    url = f"http://{place[0]}:{place[1]}"
    return Endpoint(api="s3", url=url, user="weigh:er", key=SecretStr(KEY))


def clean(folder: Path, place: tuple[str, int], *words: str) -> subprocess.CompletedProcess[str]:
    write(folder, {"here": f"http://{place[0]}:{place[1]}"})
    return command_line.weighbridge(
        "clean", folder / "here.yaml", *words, folder=folder, **command_line.keys()
    )


def test_clean_lists_what_killed_runs_left_and_deletes_only_that(tmp_path: Path) -> None:
    ours, mixed, theirs = "wb-0123abcd-small-0", "wb-0123abcd-small-1", "wb-precious"
    with existing_null_target() as place:
        left_by(place, bucket=ours)
        left_by(place, bucket=mixed)
        left_by(place, bucket=mixed, name="holiday.jpg")
        left_by(place, bucket=theirs)
        listed = clean(tmp_path, place)
        assert listed.returncode == 0, listed.stderr
        assert f"{ours}: 1 objects" in listed.stdout
        assert theirs not in listed.stdout
        assert set(containers(place)) == {ours, mixed, theirs}
        young = clean(tmp_path, place, "--delete")
        assert "a run may still be using it" in young.stdout
        assert set(containers(place)) == {ours, mixed, theirs}
        done = clean(tmp_path, place, "--delete", "--older-than", "1ms")
        assert done.returncode == 0, done.stderr
        assert "deleted, with 1 objects" in done.stdout
        assert "1 buckets with 1 objects deleted, 1 kept" in done.stdout
        assert "'holiday.jpg'" in done.stdout
        assert set(containers(place)) == {mixed, theirs}


def test_a_bucket_that_disappears_after_it_was_listed_is_ignored() -> None:
    made_at = datetime(2026, 1, 1, tzinfo=UTC)
    with existing_null_target() as place:
        left_by(place, bucket="wb-0123abcd-small-0")
        known = s3_of(place)
        assert sweep_of(known).content("wb-0123abcd-gone-0", made_at) is None
        assert [one.bucket for one in leftovers(known)] == ["wb-0123abcd-small-0"]


def test_clean_asks_several_endpoints_and_goes_on_where_one_does_not_answer(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with existing_null_target() as place:
        left_by(place, bucket="wb-0123abcd-small-0")
        here = f"http://{place[0]}:{place[1]}"
        words = ("--s3", "dead=http://127.0.0.1:9", "--s3", f"a={here}")
        words += ("--swift", f"a={here}/auth/v1.0")
        done = command_line.run("clean", "--older-than", "1ms", *words, env=environment, code=3)
    assert "127.0.0.1:9" in done.stderr
    found = [line for line in done.stdout.splitlines() if "can be deleted" in line]
    assert [line.split()[0] for line in found] == ["swift", "s3"]
    # The null target says of Swift's objects that they are of this moment.
    assert found[0].endswith("auth/v1.0: 0 buckets with 0 objects can be deleted, 1 kept")
    assert found[1].endswith(": 1 buckets with 1 objects can be deleted, 0 kept")


def test_clean_goes_on_with_the_next_endpoint_of_a_service_whose_first_is_dead(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with existing_null_target() as place:
        left_by(place, bucket="wb-0123abcd-small-0")
        url = f'["http://127.0.0.1:9", "http://{place[0]}:{place[1]}"]'
        file = tmp_path / "two.yaml"
        file.write_text(
            "name: two\nabout: Two endpoints\ngateway: existing\nrelease: any\nplace: {}\n"
            f"settings:\n  s3: {{url: {url}, credentials: environment}}\n"
        )
        done = command_line.run(
            "clean", file, "--delete", "--older-than", "1ms", env=environment, code=0
        )
        assert "http://127.0.0.1:9: no answer" in done.stdout
        assert f"going on with s3 http://127.0.0.1:{place[1]}" in done.stdout
        assert containers(place) == []


def test_clean_names_what_it_could_not_sweep_and_sweeps_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(here: Any, bucket: str, *more: Any) -> int | None:
        if bucket.endswith("small-0"):
            raise WrongAnswer("DELETE", "no", HttpAnswer(403, {}, b""))
        return clear_of(here, bucket, *more)

    clear_of = clear.clear
    monkeypatch.setattr(clear, "clear", refused)
    said: list[str] = []
    with existing_null_target() as place:
        for number in (0, 1):
            left_by(place, bucket=f"wb-0123abcd-small-{number}")
        account = s3_of(place)
        (fault,) = deployments._clean(account, datetime.now(UTC), said.append, deleting=True)
        assert "(status 403): not swept: wb-0123abcd-small-0" in fault
        assert list(containers(place)) == ["wb-0123abcd-small-0"]
    assert "1 buckets with 1 objects deleted, 0 kept" in said[-1]


BUCKET = "wb-0123abcd-small-0"
PAGE = (
    "<R><Contents><Key>object-1</Key></Contents><IsTruncated>true</IsTruncated>"
    "<NextContinuationToken>{}</NextContinuationToken></R>"
)
TOKENS = itertools.count()


def repeating(connection: socket.socket, head: bytes) -> bool:
    """A store whose lists never end: each page is followed by the same one again."""
    path = head.split()[1].decode()
    body = json.dumps([{"name": BUCKET if path.startswith("/v1?") else "object-1"}])
    if path == "/":
        body = f"<R><Buckets><Bucket><Name>{BUCKET}</Name></Bucket></Buckets></R>"
    elif "list-type" in path:
        body = PAGE.format(next(TOKENS))
    elif "versioning" in path:
        body = "<R/>"
    if head.startswith(b"HEAD"):
        body = ""
    account = f"X-Storage-Url: http://127.0.0.1:{connection.getsockname()[1]}/v1"
    connection.sendall(answer("200 OK", body.encode(), account, "X-Auth-Token: t"))
    return True


TALKING = b"HTTP/1.1 " + b"x" * 51_000 + b"\r\n\r\n"
"""A status line that is as long as a line may be."""


@pytest.mark.parametrize(
    ("store", "word", "path", "said"),
    [
        (repeating, "--s3", "", "its list does not go on after 'object-1'"),
        (repeating, "--swift", "/auth/v1.0", f"its list does not go on after '{BUCKET}'"),
        (always(TALKING, keep=False), "--s3", "", "what it sends is not HTTP"),
        (always(TALKING, keep=False), "--swift", "/auth/v1.0", "what it sends is not HTTP"),
    ],
)
def test_what_a_store_sends_without_an_end_ends_in_a_short_message(
    environment: dict[str, str], store: Reply, word: str, path: str, said: str
) -> None:
    with serving(store) as served:
        done = command_line.run("clean", word, f"a={served.url}{path}", env=environment)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
    assert len(done.stderr) < 1000


@pytest.mark.parametrize(("words", "said"), [((), "name a layout"), (("swift",), "down --all")])
def test_clean_needs_a_gateway_that_the_suite_does_not_deploy(
    run_cli: Callable[..., tuple[str, str]], words: tuple[str, ...], said: str
) -> None:
    _, printed = run_cli(2, "clean", *words)
    assert said in printed


HARDWARE = """
name: cluster
kind: existing
hosts: {{client-1: {{}}}}
ssh: {{user: somebody, key: {folder}/key, known_hosts: {folder}/known}}
observed:
  store-1: {{ssh: {{host: 127.0.0.1, port: {port}}}, tier: storage, nic: lo}}
"""


def test_what_an_observed_host_used_is_in_the_telemetry_and_no_program_stays(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "cluster.yaml").write_text(HARDWARE.format(folder=tmp_path, port=server.port))
    with existing_null_target(*DELAYED) as place:
        command = write(tmp_path, {"plain": f"http://127.0.0.1:{place[1]}"})
        command[command.index("this-machine")] = str(tmp_path / "cluster.yaml")
        command_line.weighbridge(*command, folder=tmp_path, **command_line.keys(), code=0)
    (run,) = (tmp_path / "runs").iterdir()
    files = sorted((run / "telemetry").iterdir())
    assert files
    for file in files:
        lines = file.read_text().splitlines()
        assert any('"host":"store-1"' in line and '"phase":"measure"' in line for line in lines)
    assert server.all_ended()
    rows = [*csv.DictReader((run / "derived" / "summary.csv").read_text().splitlines())]
    assert all(float(row["storage_cpu_s_per_1000_ops"]) > 0 for row in rows)
    steps = RunStore.open(run).steps()
    assert all(step.measurement is not None for step in steps)


@pytest.mark.parametrize("signals", [pytest.param(0, marks=pytest.mark.test_all), 2])
def test_a_measured_host_that_stops_answering_is_a_gap_and_keeps_nobody_waiting(
    server: Server, tmp_path: Path, signals: int
) -> None:
    (tmp_path / "cluster.yaml").write_text(HARDWARE.format(folder=tmp_path, port=server.port))
    with existing_null_target(*DELAYED) as place:
        command = write(tmp_path, {"plain": f"http://127.0.0.1:{place[1]}"})
        command[command.index("this-machine")] = str(tmp_path / "cluster.yaml")
        env = command_line.environment(tmp_path, **command_line.keys())
        with started(*command, env=env) as process:
            said = read_until(process.stdout, "step 1/")
            files = (tmp_path / "runs").glob
            until(lambda: any("cpu_s" in file.read_text() for file in files("*/telemetry/*")))
            for child in tuple(server.running):
                os.killpg(child.pid, signal.SIGSTOP)
            for number in range(signals):
                if number:
                    said += read_until(process.stdout, "another signal ends that")
                process.send_signal(signal.SIGINT)
            said += process.communicate(timeout=60 if not signals else 20)[0]
    assert "Traceback" not in said
    assert process.returncode == (130 if signals else 0), said
    (run,) = (tmp_path / "runs").iterdir()
    if not signals:
        gaps = [file.read_text() for file in (run / "telemetry").iterdir()]
        assert any("store-1: its counters could not be read" in text for text in gaps)
        assert all(step.measurement is not None for step in RunStore.open(run).steps())
