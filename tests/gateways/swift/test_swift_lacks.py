"""What a Swift layout is said not to do, by its release, its pipeline and its settings."""

from __future__ import annotations

import pytest

from tests.gateways.swift.test_swift_records import PLACE, STANDARD, piped
from weighbridge.common.endpoint import ObjectApi
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.gateways.swift.swift import Swift


def test_only_a_pipeline_with_their_middleware_takes_temporary_urls_and_dynamic_manifests() -> None:
    taken = [
        Swift("swift-2.30", PLACE, SwiftSettings(pipeline=one)).swift_lacks()
        for one in ("standard", "study-2014")
    ]
    assert taken == [
        {},
        {
            "temporary URLs": "tempurl is not in the pipeline: it needs a token (401)",
            "dynamic large objects": "dlo and bulk are not in the pipeline: the object would be "
            "empty, and its segments stay",
        },
    ]


def test_forms_are_taken_only_where_the_layout_says_so_by_formpost_after_tempurl() -> None:
    plain, forms = SwiftSettings(), SwiftSettings(formpost=True)
    assert piped(forms) == STANDARD.replace("tempurl", "tempurl formpost")
    lacked = Swift("swift-2.30", PLACE, plain).operations_lacked("swift")
    assert lacked.keys() == {"read-part", "versions", "write-form"}
    assert "set `formpost: true`" in lacked["write-form"]
    with_forms = Swift("swift-2.30", PLACE, forms)
    assert with_forms.operations_lacked("swift").keys() == {"read-part", "versions"}
    assert "write-form" in with_forms.operations_lacked("s3")
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
