"""What a real Swift does beyond plain objects by its standard pipeline, and does not do by the bare
one of the 2014 study.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployed_layouts import deployed, deploys, on_client, unlimited
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import checked_again

pytestmark = pytest.mark.system

WITNESS = Path(__file__).with_name("pipeline_witness.py")


def seen_by_swiftclient(deployment: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = on_client(deployment, "swift", str(WITNESS))
    return found


def check_standard(deployment: Deployment) -> None:
    seen, logged = seen_by_swiftclient(deployment), log_of(deployment)
    assert (seen["large_is_whole"], seen["large_is_said"], seen["dynamic_bytes"]) == (
        True,
        "True",
        (1 << 20) + 12345,
    )
    assert (seen["unpacked"], seen["left"]) == (3, 0)
    assert (seen["shared"], seen["quota"]) == ("for all", 413)
    facts = deployment.facts()
    assert f"python3-{deployment.layout.release.replace('-', ' ')}" in facts["packages"]
    assert facts["pipeline kind"].startswith("standard: ")
    assert {"bulk", "slo", "dlo", "versioned_writes", "tempurl"} <= set(facts["pipeline"].split())
    # proxy-logging is in it twice, and writes no line of a request here.
    assert "multipart-manifest" not in logged


def log_of(deployment: Deployment) -> str:
    return deployment.hosts["gateway-1"].log("swift.log").read_text()


@pytest.mark.releases
@pytest.mark.test_all
@pytest.mark.parametrize(
    ("release", "layout"), [("swift-2.26", "swift"), ("swift-2.30", "swift-s3api")]
)
def test_the_standard_pipeline_of_another_release_takes_manifests_and_bulk_requests_too(
    release: str, layout: str, tmp_path: Path
) -> None:
    def change(text: str) -> str:
        return text.replace("release: swift-2.35", f"release: {release}")

    with deployed(layout, tmp_path, change, change_hardware=unlimited, once=True) as deployment:
        assert deployment.layout.release == release
        check_standard(deployment)


swift = deploys("swift", change_hardware=unlimited, once=True)
"""Of the layout's own release, with what it ships with. It runs until the module ends, and only
one can: those of other releases come before.
"""


def change(swift: Deployment, **settings: object) -> None:
    layout = swift.layout
    other = layout.model_copy(update={"settings": {**layout.settings, **settings}})
    swift.change(checked_again(other, swift.hardware, "test"), "restart", print)


def test_the_standard_pipeline_takes_manifests_of_large_objects_and_bulk_requests(
    swift: Deployment,
) -> None:
    check_standard(swift)


def test_a_line_of_each_request_is_written_where_the_layout_says_so(swift: Deployment) -> None:
    change(swift, log_requests=True)
    seen_by_swiftclient(swift)
    assert "multipart-manifest" in log_of(swift)


def test_the_studys_pipeline_takes_neither_manifests_nor_bulk_requests_and_the_facts_say_so(
    swift: Deployment,
) -> None:
    change(swift, pipeline="study-2014")
    seen = seen_by_swiftclient(swift)
    assert (seen["large_is_whole"], seen["large_is_manifest"], seen["large_is_said"]) == (
        False,
        True,
        None,
    )
    assert (seen["bulk_status"], seen["left"]) == (204, 3)
    assert (seen["unpacked_status"], seen["unpacked"]) == (202, 0)
    assert (seen["shared"], seen["quota"]) == (401, 201)
    facts = swift.facts()
    assert facts["pipeline kind"].startswith("study-2014: ")
    assert not {"bulk", "slo", "tempurl", "proxy-logging"} & set(facts["pipeline"].split())
