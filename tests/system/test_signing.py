"""A real radosgw verifies what the engine signs, boto3 reads it back, and what was changed on its
way is an error. What is written with a customer's key lies encrypted in RADOS.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from deployed_layouts import deployed, left_over, on_client, unlimited, written_once
from signing_witness import OBJECTS, SEED, SIZE
from suite_command import weighbridge
from weighbridge.common.host import Service
from weighbridge.drivers.engine import _native
from weighbridge.gateways.capabilities.capability import CapabilityMatrix, LayoutAnswers
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.ports import await_ports

pytestmark = pytest.mark.system

WITNESS = Path(__file__).with_name("signing_witness.py")
ENCRYPTION = Path(__file__).with_name("encryption_witness.py")
STUB_VAULT = Path(__file__).with_name("stub_vault.py")
VAULT_PORT = 8200
VAULT_OPTIONS = f"""
  options:
    client:
      rgw_crypt_sse_s3_vault_addr: http://127.0.0.1:{VAULT_PORT}
      rgw_crypt_sse_s3_vault_auth: agent
      rgw_crypt_sse_s3_vault_prefix: /v1/transit
      rgw_crypt_sse_s3_vault_secret_engine: transit
"""
SAID = {
    None: "UNSIGNED-PAYLOAD",
    "signed": hashlib.sha256(_native.content(SEED, SIZE, 0, SIZE)).hexdigest().upper(),
    "chunks": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    "trailer": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "query": "NOTHING",
    "none": "NOTHING",
}
"""What writes say of their payload, as the relay sees it."""
REFUSED, STORED = {"http-400", "http-403"}, {"wrong-etag"}
# What radosgw 18.2 does with a body that was changed. It does not verify checksums: there only the
# ETag of its answer shows it.
CHANGED: list[tuple[dict[str, Any], set[str]]] = [
    ({}, STORED),
    ({"checksum": "crc32"}, STORED),
    ({"payload": "signed"}, REFUSED),
    ({"payload": "chunks"}, REFUSED),
    ({"payload": "chunks", "checksum": "crc64nvme"}, REFUSED),
    ({"payload": "trailer", "checksum": "crc32"}, STORED),
    ({"payload": "trailer", "checksum": "crc64nvme"}, STORED),
    ({"auth": "query"}, STORED),
    ({"auth": "none"}, STORED),
]


@pytest.mark.test_all
def test_radosgw_takes_each_way_to_sign_and_a_changed_body_is_an_error(tmp_path: Path) -> None:
    with deployed(
        "rgw-beast", tmp_path, lambda text: text + VAULT_OPTIONS, "lab-cpu", unlimited, once=True
    ) as rgw:
        signings = [signing for signing, _ in CHANGED]
        found = on_client(rgw, "s3", str(WITNESS), signings=signings)
        assert rgw.layout.release == "ceph-18"
        encrypted(rgw)
    for (signing, errors), seen in zip(CHANGED, found, strict=True):
        assert (seen["right"]["done"], seen["right"]["errors"]) == (OBJECTS, {}), signing
        assert seen["said"].startswith(SAID[signing.get("payload", signing.get("auth"))]), seen
        assert seen["objects"] == OBJECTS, signing
        assert seen["same"] == (0 if signing == {"auth": "none"} else OBJECTS), signing
        assert seen["wrong"]["done"] == 0, signing
        assert seen["wrong"]["errors"], signing
        assert set(seen["wrong"]["errors"]) <= errors, (signing, seen["wrong"])


def encrypted(rgw: Any) -> None:
    """Have the engine write with a customer's key and with the store's, boto3 read it, and RADOS
    show what is kept.
    """
    host = rgw.hosts["gateway-1"]
    host.put("/root/stub_vault.py", STUB_VAULT.read_text())
    vault = Service("vault", ("python3", "/root/stub_vault.py", str(VAULT_PORT)))
    host.start([vault])
    await_ports(rgw.client, [Daemon(host, vault, VAULT_PORT)], print)
    seen = on_client(rgw, "s3", str(ENCRYPTION))
    assert (seen["written"]["done"], seen["written"]["errors"]) == (OBJECTS, {})
    assert seen["same"] == OBJECTS
    assert (seen["without"], seen["with another"]) == ("InvalidArgument", "InvalidArgument")
    assert seen["errors"] == {
        one: {} for one in ("read", "read-range", "head", "write", "write-multipart")
    }
    assert seen["large same"]
    assert seen["large without"] == "InvalidArgument"
    plain = hashlib.sha256(_native.content(SEED, SIZE, 0, SIZE)).hexdigest()
    assert kept(rgw, "wb-sign-0-w-0") == (SIZE, plain)
    size, sha256 = kept(rgw, "wb-sse-w-0")
    assert size == SIZE
    assert sha256 != plain
    own = seen["sse-s3"]
    assert (own["written"]["done"], own["written"]["errors"]) == (OBJECTS, {})
    assert (own["same"], own["said"]) == (True, "AES256")
    size, sha256 = kept(rgw, "wb-sse3-w-0")
    assert size == SIZE
    assert sha256 != plain


def kept(rgw: Any, bucket: str) -> tuple[int, str]:
    """Length and SHA-256 of what RADOS has of the first object of a bucket."""
    host = rgw.hosts["gateway-1"]
    stats = json.loads(host.run(["radosgw-admin", "bucket", "stats", "--bucket", bucket]).stdout)
    name, pool = f"{stats['marker']}_object-0000000000", "default.rgw.buckets.data"
    command = 'rados -p "$1" get "$2" /tmp/kept && stat -c %s /tmp/kept && sha256sum /tmp/kept'
    length, sha256, _ = host.run(["sh", "-c", command, "sh", pool, name]).stdout.split()
    return int(length), sha256


# What real stores answer to `weighbridge capabilities`, against what was seen of them by hand with
# boto3, curl and signed requests of other code.

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
    ("rgw-beast", "s3-unsigned-trailer", "works"),
    ("rgw-beast", "s3-signed-chunks", "works"),
    ("rgw-beast", "s3-sse-c", "works"),
    ("rgw-beast", "s3-sse-s3", "refused"),
    ("rgw-beast", "swift-put-if-none-match", "wrong"),
    ("rgw-beast", "swift-slo", "works"),
    ("swift-s3api", "s3-multipart", "works"),
    ("swift-s3api", "s3-sse-c", "wrong"),
    ("swift-s3api", "s3-put-if-none-match", "refused"),
    ("swift-s3api", "s3-signed-chunks", "works"),
    ("swift-s3api", "s3-multi-delete", "works"),
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
