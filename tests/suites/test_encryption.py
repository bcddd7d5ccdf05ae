"""How a suite says how objects are encrypted, and which ways are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites.one_write import GOOD, suite_of
from weighbridge.common.document import DocumentError
from weighbridge.suites import PLAIN, Suite, encryption_needs, loader

BOTH = "    encryption: [none, sse-c]\n    signing: [{}, {payload: signed}]\n"


def test_objects_are_plain_by_default() -> None:
    suite = suite_of(GOOD)
    [workload] = suite.workloads
    assert workload.encryption == workload.encrypted == PLAIN
    assert suite.encryption_words == ""
    assert encryption_needs(workload.encrypted) == ()


def test_lists_of_two_factors_stand_for_each_pair() -> None:
    suite = suite_of(GOOD + BOTH)
    assert [one.name for one in suite.workloads] == [
        f"write-{signed}-{kept}" for signed in ("unsigned", "signed") for kept in ("plain", "sse-c")
    ]
    assert [one.encrypted for one in suite.workloads] == ["none", "sse-c"] * 2
    words = suite.encryption_words
    assert "write-signed-sse-c: with a key that each request brings (SSE-C)" in words
    assert "write-signed-plain: not asked for" in words
    assert Suite.model_validate_json(suite.model_dump_json()) == suite
    assert encryption_needs("sse-s3") == ("sse-s3",)


def test_faults_after_such_lists_have_their_own_place(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    again = GOOD[GOOD.index("  - name") :].replace("name: write", "name: large")
    path.write_text(GOOD + BOTH + again.replace("4KiB", "6GB"))
    with pytest.raises(DocumentError, match=r"large\.yaml:13:21: .*at most 5 GB"):
        loader.load(path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("    encryption: sse-kms\n", "encryption"),
        ("    encryption: [sse-c, sse-c]\n", "two workloads are named write-sse-c"),
        ("    encryption: []\n", "encryption"),
        ("    encryption: sse-c\n    signing: {auth: query}\n", "needs `auth: header`"),
        ("    encryption: [none, sse-c]\n    signing: [{}, {auth: none}]\n", "needs `auth: head"),
    ],
)
def test_what_cannot_be_encrypted_so_is_refused_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(DocumentError) as faults:
        suite_of(GOOD + text)
    assert fault in str(faults.value)
    assert "trial.yaml:" in str(faults.value)


PLAIN_ONLY = (
    *("copy", "read-if-match", "read-if-none-match", "update-metadata"),
    *("write-if-none-match", "rewrite-if-none-match"),
)


@pytest.mark.parametrize("operation", PLAIN_ONLY)
def test_operations_whose_objects_stay_plain_are_refused(operation: str) -> None:
    text = GOOD.replace("write: 1", f"{operation}: 1")
    suite_of(text)
    with pytest.raises(DocumentError, match=f"{operation} is sent without it only"):
        suite_of(f"{text}    encryption: sse-c\n")


def test_only_the_engine_asks_for_encryption() -> None:
    with pytest.raises(DocumentError, match="encryption of write: only the engine asks for it"):
        suite_of(f"users: sdk\n{GOOD}    encryption: sse-c\n")
