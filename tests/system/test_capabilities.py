"""What real stores answer to `weighbridge capabilities`, against what was seen of them by hand with
boto3, curl and signed requests of other code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from deployed_layouts import left_over, written_once
from suite_command import weighbridge
from weighbridge.gateways.capabilities.matrix import CapabilityMatrix, LayoutAnswers

pytestmark = pytest.mark.system


BY_HAND = [
    ("rgw-beast", "s3-multipart", "works"),
    ("rgw-beast", "s3-list-v2", "works"),
    ("rgw-beast", "s3-versions", "works"),
    ("rgw-beast", "s3-retention", "works"),
    ("rgw-beast", "s3-put-if-none-match", "works"),
    ("rgw-beast", "s3-put-if-match", "wrong"),
    ("rgw-beast", "s3-wrong-crc32", "wrong"),
    ("rgw-beast", "s3-wrong-md5", "works"),
    ("rgw-beast", "s3-range-many", "wrong"),
    ("rgw-beast", "s3-unsigned-trailer", "refused"),
    ("rgw-beast", "s3-signed-chunks", "works"),
    ("rgw-beast", "s3-sse-c", "works"),
    ("rgw-beast", "s3-sse-s3", "wrong"),
    ("rgw-beast", "swift-put-if-none-match", "wrong"),
    ("rgw-beast", "swift-slo", "works"),
    ("swift-s3api", "s3-multipart", "works"),
    ("swift-s3api", "s3-sse-c", "wrong"),
    ("swift-s3api", "s3-put-if-none-match", "refused"),
    ("swift-s3api", "s3-signed-chunks", "refused"),
    ("swift-s3api", "s3-multi-delete", "refused"),
    ("swift-s3api", "s3-multi-delete-md5", "works"),
    ("swift-s3api", "s3-range-many", "works"),
    ("swift-s3api", "swift-put-if-none-match", "works"),
    ("swift-s3api", "swift-put-if-match", "wrong"),
]


def capabilities(words: str) -> CompletedProcess[str]:
    return weighbridge(f"capabilities {words} --hardware lab-cpu", timeout_s=1200)


ONLY = f" --only {','.join(sorted({key for _, key, _ in BY_HAND}))}"


@pytest.fixture(scope="module", params=[ONLY, pytest.param("", marks=pytest.mark.test_all)])
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, LayoutAnswers]]:
    """What each layout answers to what was asked by hand, or to everything."""
    out = tmp_path_factory.mktemp("capabilities")
    layouts = " ".join(str(written_once(name, out)) for name in ("rgw-beast", "swift-s3api"))
    done = capabilities(f"{layouts} --json --out {out}{request.param}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == json.loads((out / "capabilities.json").read_text())
    matrix = CapabilityMatrix.model_validate_json(done.stdout)
    yield {one.layout: one for one in matrix.layouts}
    assert left_over() == []


@pytest.mark.parametrize(("layout", "key", "outcome"), BY_HAND)
def test_a_real_store_answers_as_it_did_by_hand(
    found: dict[str, LayoutAnswers], layout: str, key: str, outcome: str
) -> None:
    answer = found[layout].answers[key]
    assert answer.outcome == outcome, answer.why


def test_nothing_about_a_healthy_store_stays_unknown(found: dict[str, LayoutAnswers]) -> None:
    unknown = [
        f"{layout} {key}: {answer.why}"
        for layout, one in found.items()
        for key, answer in one.answers.items()
        if answer.outcome == "unknown"
    ]
    assert unknown == []
    assert all(not one.died and not one.left for one in found.values())


def test_an_unknown_capability_is_refused_before_anything_starts() -> None:
    done = capabilities("rgw-beast --only s3-multipat")
    assert done.returncode == 2
    assert "s3-multipart" in done.stderr
