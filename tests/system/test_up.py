"""What `weighbridge up` prints can be pasted into a shell on the client, as it says itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployed_layouts import left_over, written_once
from suite_command import weighbridge

pytestmark = pytest.mark.system

ON_CLIENT = "exec client-1 -- bash -e"


def fine(words: str, stdin: str | None = None) -> str:
    done = weighbridge(words, stdin=stdin)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What `up` says of a real radosgw that answers both APIs."""
    layout = written_once("rgw-beast", tmp_path_factory.mktemp("up"))
    try:
        yield fine(f"up {layout}").splitlines()
    finally:
        fine("down --all")
        assert left_over() == []


def pasted(printed: list[str], title: str) -> str:
    """The lines that stand below a title, deeper than it."""
    at = next(index for index, line in enumerate(printed) if line.strip() == title)
    deep = len(printed[at]) - len(printed[at].lstrip())
    lines = []
    for line in printed[at + 1 :]:
        if len(line) - len(line.lstrip()) <= deep:
            break
        lines.append(line.strip())
    return "\n".join(lines)


def test_the_line_for_swifts_own_client_finds_the_client_and_the_account(
    printed: list[str],
) -> None:
    line = pasted(printed, "swift client:")
    assert "swift stat" in line
    assert "Account:" in fine(ON_CLIENT, stdin=line)


def test_the_lines_for_boto3_are_a_client_that_lists_buckets(printed: list[str]) -> None:
    script = (
        "import boto3\ns3 = "
        f"{pasted(printed, 'boto3:')}\ns3.create_bucket(Bucket='pasted')\n"
        "print(s3.list_buckets()['Buckets'])"
    )
    assert "'Name': 'pasted'" in fine("exec client-1 -- python -", stdin=script)


@pytest.mark.parametrize(
    ("title", "answer"), [("s3", "ListAllMyBucketsResult"), ("swift", "X-Auth-Token")]
)
def test_the_lines_for_curl_are_let_in(printed: list[str], title: str, answer: str) -> None:
    at = next(
        index for index, line in enumerate(printed) if line.strip().startswith(f"{title}: http")
    )
    assert answer in fine(ON_CLIENT, stdin=pasted(printed[at:], "curl:"))


def test_no_curl_that_is_pasted_has_a_key_among_its_words(printed: list[str]) -> None:
    keys = [
        line.split()[-1]
        for line in printed
        if "secret key" in line or line.strip().startswith("user ")
    ]
    lines = [line for line in printed if line.strip().startswith("curl ")]
    assert len(keys) == len(lines) == 2
    for key, line in zip(keys, lines, strict=True):
        words, given = line.split("<<<")
        assert key in given
        assert key not in words


def test_status_says_which_daemon_has_died_and_where_its_log_is(printed: list[str]) -> None:
    assert printed
    assert "dead" not in fine("status")
    kill = "kill -9 $(pidof radosgw); while pidof radosgw; do sleep 0.1; done"
    fine(f"exec gateway-1 -- sh -ec '{kill}'")
    lines = [line.strip() for line in fine("status").splitlines()]
    (dead,) = [line for line in lines if line.startswith("dead: ")]
    assert re.match(r"dead: radosgw\S* on gateway-1; its log: ", dead)
    assert Path(dead.rpartition(": ")[2]).is_file()
