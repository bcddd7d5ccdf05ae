"""Secrets are planted wherever one can come in, and searched for in all that is written, printed or
listed.
"""

from __future__ import annotations

import base64
import gzip
import html
import os
import subprocess
import sys
import urllib.request
import zipfile
import zlib
from pathlib import Path

import duckdb
import pytest

from command_lines import CommandLines
from fake_influx import FakeInflux
from secret_search import find_secrets, secrets_in
from tests.drivers.cosbench.recorded_controller import recorded_controller
from tests.weighbridge import command_line
from tests.weighbridge.command_line import DELAY_MS, null_target

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]
SECRETS = {
    "the key of Swift and S3": "planted+key/of=both&apis",
    "the session token of S3": "planted-session-token-0123456789",
    "the token of InfluxDB": "planted-influx-token-abcdef",
    "the password of COSBench": "planted-cosbench-password",
    "a key that is wrong": "planted-wrong-key-987654",
}
KEY, SESSION, INFLUX, COSBENCH, WRONG = SECRETS.values()
SUITE = """
name: planted
about: As short as it can be
api: [swift, s3]
cache: none
workloads:
  - name: mixed
    objects: {size: 64kB, containers: 2, per_container: 10}
    operations: {read: 80, write: 20}
    workers: [2]
    runtime: 1s
    warmup: 0s
"""
AFTERWARDS = (
    ("report", "--no-charts", "RUN"),
    *(
        ("export", "RUN", "--to", form, "--out", f"OUT/{form}")
        for form in ("csv", "parquet", "json", "hgrm", "markdown")
    ),
    ("slides", "RUN", "--out", "OUT/talk.pptx"),
    ("sql", "SELECT * FROM steps", "RUN"),
    ("compare-runs", "RUN", "RUN"),
)


def token_of(url: str) -> str:
    """The null target has one token for all who know the key."""
    request = urllib.request.Request(
        f"{url}/auth/v1.0", headers={"X-Auth-User": "weigh:er", "X-Auth-Key": KEY}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.headers["X-Auth-Token"])


class Planted:
    """Layouts, a suite, an environment and files with the secrets, and the command's output."""

    def __init__(self, folder: Path, url: str, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.said = b""
        (folder / "suite.yaml").write_text(SUITE)
        for name, credentials in (("by-environment", "environment"), ("by-file", "profile theirs")):
            s3 = f'{{url: "{url}", credentials: {credentials}}}'
            text = command_line.existing(name, s3=s3, swift=command_line.swift_at(url))
            (folder / f"{name}.yaml").write_text(text)
        os.close(os.open(folder / "aws", os.O_CREAT, 0o600))
        (folder / "aws").write_text(
            f"[theirs]\naws_access_key_id = weigh:er\naws_secret_access_key = {KEY}\n"
        )

    def __call__(self, *arguments: str, **more: str) -> int:
        argv = [sys.executable, "-m", "weighbridge", *arguments]
        environment = {**self.environment, **more}
        done = subprocess.run(
            argv, capture_output=True, env=environment, timeout=600, check=False, cwd=self.folder
        )
        self.said += done.stdout + done.stderr
        return done.returncode

    def afterwards(self, *arguments: str) -> int:
        """A verb that starts nothing, in a fork of this process."""
        done = command_line.run(*arguments, env=self.environment, cwd=self.folder)
        self.said += (done.stdout + done.stderr).encode()
        return done.returncode

    def compare(self, out: str, *more: str, **environment: str) -> int:
        layouts = (
            "by-environment.yaml,by-file.yaml" if "--driver" not in more else "by-environment.yaml"
        )
        words = ("--suite", "suite.yaml", "--layouts", layouts, "--hardware", "this-machine")
        return self("compare", *words, "--no-charts", "--out", out, *more, **environment)


def test_secrets_are_found_nowhere_in_a_run_in_what_is_made_of_it_or_in_the_process_list(
    tmp_path: Path,
) -> None:
    environment = command_line.environment(
        tmp_path,
        PYTHONPATH=str(TESTS.parent),
        AWS_ACCESS_KEY_ID="weigh:er",
        AWS_SECRET_ACCESS_KEY=KEY,
        AWS_SESSION_TOKEN=SESSION,
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "aws"),
        ST_USER="weigh:er",
        ST_KEY=KEY,
        WEIGHBRIDGE_INFLUX_TOKEN=INFLUX,
        COSBENCH_USER="bench",
        COSBENCH_PASSWORD=COSBENCH,
    )
    with (
        CommandLines() as listed,
        null_target("--delay-ms", str(DELAY_MS), key=KEY) as url,
        FakeInflux() as influx,
        recorded_controller(tmp_path / "cosbench") as controller,
    ):
        controller.users = {"bench": COSBENCH}
        secrets = {**SECRETS, "the token of Swift": token_of(url)}
        weighbridge = Planted(tmp_path, url, environment)
        code = weighbridge.compare("runs", "--influx", influx.url)
        assert code == 0, weighbridge.said.decode()
        archive = str(controller.archive)
        by_cosbench = ("--driver", "cosbench", "--cosbench", controller.url)
        by_cosbench += ("--cosbench-archive", archive)
        weighbridge.compare("runs-cosbench", *by_cosbench, AWS_SESSION_TOKEN="")
        assert weighbridge.compare("runs-refused", ST_KEY=WRONG, AWS_SECRET_ACCESS_KEY=WRONG) == 3
        (run,) = (tmp_path / "runs").iterdir()
        (tmp_path / "out").mkdir()
        for words in AFTERWARDS:
            said = [
                word.replace("RUN", str(run)).replace("OUT", str(tmp_path / "out"))
                for word in words
            ]
            assert weighbridge.afterwards(*said) == 0, weighbridge.said.decode()[-3000:]
        assert weighbridge("export", str(run), "--to", "influx", "--influx", influx.url) == 0
    assert {write.token for write in influx.writes} == {f"Token {INFLUX}"}, (
        "the secrets were in use"
    )
    assert any(
        b"steps.jsonl" not in line and b"weighbridge.drivers.locust" in line for line in listed.seen
    ), "the drivers were looked at"
    assert listed.looks > 20
    assert [name for line in listed.seen for name in secrets_in(line, secrets)] == []
    assert secrets_in(weighbridge.said, secrets) == []
    (theirs,) = (tmp_path / "runs-cosbench").iterdir()
    scripts = [script.text for script in controller.workloads.values()]
    assert any(secrets["the token of Swift"] in text for text in scripts), (
        "COSBench is given a token for Swift ..."
    )
    assert any(html.escape(KEY) in text for text in scripts), "... and the key for S3, ..."
    assert len(list(theirs.rglob("workload.xml*"))) == len(scripts), (
        "... and what it is given is kept"
    )
    places = ("runs", "runs-cosbench", "runs-refused", "out", "home", "state")
    assert [one for place in places for one in find_secrets(tmp_path / place, secrets)] == []


def test_the_search_finds_compressed_secrets(tmp_path: Path) -> None:
    secret = {"it": "planted+secret/of=a test"}
    text = f"before {secret['it']} after".encode()
    (tmp_path / "a.gz").write_bytes(gzip.compress(text))
    with zipfile.ZipFile(tmp_path / "b.pptx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ppt/slide.xml", text)
    packed = base64.b64encode(b"8 bytes." + zlib.compress(text + bytes(range(256)))).decode()
    (tmp_path / "c.hlog").write_text(f"Tag=read,0.000,1.000,1.0,{packed}\n")
    with duckdb.connect() as asked:
        asked.execute(
            f"COPY (SELECT '{secret['it']}' AS word) TO '{tmp_path}/d.parquet' (FORMAT parquet, "
            "COMPRESSION zstd)"
        )
    (tmp_path / "e.url").write_text("?key=planted%2Bsecret%2Fof%3Da%20test")
    (tmp_path / "f.pdf").write_bytes(b"%PDF-1.4\nstream\n" + zlib.compress(text) + b"\nendstream\n")
    (tmp_path / "planted+secret").mkdir()
    (tmp_path / "harmless").write_text("planted secret")
    assert {
        one.split(":")[0].split(" ")[0].split("/")[0] for one in find_secrets(tmp_path, secret)
    } == {"a.gz", "b.pptx", "c.hlog", "d.parquet", "e.url", "f.pdf"}
