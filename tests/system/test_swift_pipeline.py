"""What a real Swift does beyond plain objects by its standard pipeline, and does not do by the bare
one of the 2014 study.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from weighbridge.topologies.deployment import Deployment

sys.path.insert(0, str(Path(__file__).parent))
from deployed_layouts import deployed, endpoint, unlimited

pytestmark = pytest.mark.system

WITNESS = Path(__file__).with_name("pipeline_witness.py")


def seen_by_swiftclient(deployment: Deployment) -> dict[str, Any]:
    order = endpoint(deployment, "swift").model_dump_json()
    found: dict[str, Any] = json.loads(
        deployment.client.run([sys.executable, str(WITNESS)], stdin=order, timeout_s=300).stdout
    )
    return found


@pytest.mark.parametrize(
    ("release", "layout"),
    [
        ("swift-2.30", "swift"),
        pytest.param("swift-2.26", "swift", marks=pytest.mark.releases),
        pytest.param("swift-2.35", "swift-s3api", marks=pytest.mark.releases),
    ],
)
def test_the_standard_pipeline_takes_manifests_of_large_objects_and_bulk_requests(
    release: str, layout: str, tmp_path: Path
) -> None:
    def change(text: str) -> str:
        return text.replace("release: swift-2.30", f"release: {release}")

    with deployed(layout, tmp_path, change, change_hardware=unlimited, once=True) as deployment:
        seen = seen_by_swiftclient(deployment)
        assert (seen["large_is_whole"], seen["large_is_said"], seen["dynamic_bytes"]) == (
            True,
            "True",
            (1 << 20) + 12345,
        )
        assert (seen["unpacked"], seen["left"]) == (3, 0)
        assert (seen["shared"], seen["quota"]) == ("for all", 413)
        facts = deployment.facts()
        assert f"python3-swift {release.removeprefix('swift-')}" in facts["packages"]
        assert facts["pipeline kind"].startswith("standard: ")
        assert {"bulk", "slo", "dlo", "versioned_writes", "tempurl"} <= set(
            facts["pipeline"].split()
        )
        # proxy-logging is in it twice, and writes no line of a request here.
        log = deployment.hosts["gateway-1"].log("swift.log").read_text()
        assert "multipart-manifest" not in log


def test_the_studys_pipeline_takes_neither_manifests_nor_bulk_requests_and_the_facts_say_so(
    tmp_path: Path,
) -> None:
    def change(text: str) -> str:
        return text.replace("pipeline: standard ", "pipeline: study-2014 ")

    with deployed("swift", tmp_path, change, change_hardware=unlimited, once=True) as deployment:
        seen = seen_by_swiftclient(deployment)
        assert (seen["large_is_whole"], seen["large_is_manifest"], seen["large_is_said"]) == (
            False,
            True,
            None,
        )
        assert (seen["bulk_status"], seen["left"]) == (204, 3)
        assert (seen["unpacked_status"], seen["unpacked"]) == (202, 0)
        assert (seen["shared"], seen["quota"]) == (401, 201)
        facts = deployment.facts()
        assert facts["pipeline kind"].startswith("study-2014: ")
        assert not {"bulk", "slo", "tempurl", "proxy-logging"} & set(facts["pipeline"].split())


def test_a_line_of_each_request_is_written_where_the_layout_says_so(tmp_path: Path) -> None:
    def change(text: str) -> str:
        return text.replace("log_requests: false", "log_requests: true")

    with deployed("swift", tmp_path, change, change_hardware=unlimited, once=True) as deployment:
        seen_by_swiftclient(deployment)
        assert "multipart-manifest" in deployment.hosts["gateway-1"].log("swift.log").read_text()
