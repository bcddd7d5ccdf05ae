"""What a Swift layout is said not to do, by its release, its pipeline and its settings."""

from __future__ import annotations

import pytest

from tests.gateways.swift.test_swift_records import PLACE, STANDARD, piped
from weighbridge.common.endpoint import ObjectApi
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.swift.swift import Swift


def test_formpost_comes_after_tempurl_where_the_layout_says_so() -> None:
    assert piped(SwiftSettings(formpost=True)) == STANDARD.replace("tempurl", "tempurl formpost")
    with pytest.raises(ValueError, match="formpost needs the standard pipeline"):
        Swift("swift-2.30", PLACE, SwiftSettings(formpost=True, pipeline="study-2014"))


@pytest.mark.parametrize(
    ("release", "api", "pipeline", "why"),
    [
        ("swift-2.26", "s3", "standard", "405"),
        ("swift-2.30", "s3", "standard", "405"),
        ("swift-2.26", "swift", "standard", "ignores part-number"),
        ("swift-2.30", "swift", "standard", "ignores part-number"),
        (
            "swift-2.35",
            "swift",
            "study-2014",
            "is not in its pipeline",
        ),
        ("swift-2.35", "s3", "standard", ""),
        ("swift-2.35", "swift", "standard", ""),
        ("swift-2.38", "s3", "standard", ""),
        ("swift-2.38", "swift", "standard", ""),
    ],
)
def test_parts_are_read_by_number_since_2_34_from_objects_of_segments(
    release: str, api: ObjectApi, pipeline: str, why: str
) -> None:
    settings = SwiftSettings.model_validate({"pipeline": pipeline, "s3api": api == "s3"})
    lacked = Swift(release, PLACE, settings).operations_lacked(api)
    assert ("read-part" in lacked) == bool(why)
    assert why in lacked.get("read-part", "")
