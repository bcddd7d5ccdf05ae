"""A real radosgw verifies what the engine signs, boto3 reads it back, and what was changed on its
way is an error.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from deployed_layouts import deployed, endpoint, unlimited
from signing_witness import OBJECTS, SEED, SIZE

from weighbridge.drivers.engine import _native

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
WITNESS = Path(__file__).with_name("signing_witness.py")
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


@pytest.mark.releases
def test_radosgw_takes_each_way_to_sign_and_a_changed_body_is_an_error(tmp_path: Path) -> None:
    def change(layout: str) -> str:
        return layout.replace("release: ceph-16", "release: ceph-18")

    with deployed("rgw-beast", tmp_path, change, change_hardware=unlimited) as rgw:
        order = json.loads(endpoint(rgw, "s3").model_dump_json())
        order["signings"] = [signing for signing, _ in CHANGED]
        done = rgw.client.run(
            [sys.executable, str(WITNESS)],
            stdin=json.dumps(order),
            env={"PYTHONPATH": str(ROOT)},
            timeout_s=60,
        )
        assert rgw.layout.release == "ceph-18"
    for (signing, errors), seen in zip(CHANGED, json.loads(done.stdout), strict=True):
        assert (seen["right"]["done"], seen["right"]["errors"]) == (OBJECTS, {}), signing
        assert seen["said"].startswith(SAID[signing.get("payload", signing.get("auth"))]), seen
        assert seen["objects"] == OBJECTS, signing
        assert seen["same"] == (0 if signing == {"auth": "none"} else OBJECTS), signing
        assert seen["wrong"]["done"] == 0, signing
        assert seen["wrong"]["errors"], signing
        assert set(seen["wrong"]["errors"]) <= errors, (signing, seen["wrong"])
