"""Made-up power cuts: a store that keeps, one that loses, controls."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from weighbridge.results.run.durability import PowerCut, record_cut


def made_cut(layout: str = "rgw-beast", number: int = 1, **more: Any) -> PowerCut:
    """A cut; what is not about the cut itself is about its objects, such as `lost=3`."""
    own = {name: more.pop(name) for name in list(more) if name in PowerCut.model_fields}
    kind = {
        "api": "s3",
        "size_bytes": 4096,
        "acknowledged": 100,
        "deleted": 10,
        "in_flight": 8,
        **more,
    }
    values = {
        "layout": layout,
        "release": "ceph-16",
        "number": number,
        "at_s": 1.5 * number,
        "seed": number,
        "keep": 0.5 * (number % 2),
        "serves_s": 12.0 + number,
        "objects": (kind,),
    }
    return PowerCut.model_validate({**values, **own})


def dead_cut(layout: str = "rgw-beast", number: int = 1, **more: Any) -> PowerCut:
    """A cut after which the store did not serve, so that every object is unreadable."""
    given = {"acknowledged": 100, "unreadable": 110, **more}
    return made_cut(layout, number, serves_s=None, **{"why_not": "osd.0 did not start", **given})


def kept_cuts(
    layout: str = "rgw-beast", cuts: int = 20, controls: int = 2, **more: Any
) -> tuple[PowerCut, ...]:
    """Cuts that lost nothing, and controls that lost all."""
    return (
        *(made_cut(layout, number, **more) for number in range(1, cuts + 1)),
        *(
            made_cut(layout, number, control=True, acknowledged=100, lost=100)
            for number in range(1, controls + 1)
        ),
    )


def record_made_cuts(folder: Path, *, cuts: int = 20, seed: int = 20) -> None:
    """`rgw-beast` keeps all, `swift` loses some and does not list many; both controls lose."""
    draw = random.Random(seed)
    for layout in ("rgw-beast", "swift"):
        for control in (False, True):
            for number in range(1, (2 if control else cuts) + 1):
                record_cut(folder, _drawn(draw, layout, number, cuts, control=control))


def _drawn(draw: random.Random, layout: str, number: int, cuts: int, *, control: bool) -> PowerCut:
    at_s = round(draw.uniform(0.5, 30), 2)
    swift = layout == "swift"
    kinds = []
    for size, way, share in (
        (4096, "plain", 40),
        (2**20, "plain", 20),
        (5 * 2**20, "multipart", 3),
    ):
        acknowledged = max(1, round(at_s * share))
        loses = swift and not control and number % 7 == 3 and way == "plain"
        kinds.append(
            {
                "api": "swift" if swift else "s3",
                "size_bytes": size,
                "way": way,
                "acknowledged": acknowledged,
                "deleted": acknowledged // 10,
                "in_flight": min(4, acknowledged),
                "lost": round(acknowledged * 0.9) if control else draw.randint(1, 3) * loses,
                "torn": draw.randint(0, 1) * loses,
                "not_listed": draw.randint(0, acknowledged // 3) if swift and not control else 0,
            }
        )
    lost = [kind for kind in kinds if kind["lost"] and not control]
    return PowerCut.model_validate(
        {
            "layout": layout,
            "release": "swift-2.30" if swift else "ceph-16",
            "control": control,
            "number": number,
            "at_s": at_s,
            "seed": draw.randrange(2**32),
            "keep": 0.5 * (number % 2),
            "serves_s": round(draw.uniform(8, 40), 2),
            "objects": kinds,
            "disks": [
                {
                    "name": "store-1/dev/wb0",
                    "writes": 9000,
                    "flushes": 400,
                    "unflushed_blocks": 120,
                    "kept_blocks": 55 * (number % 2),
                }
            ],
            "examples": [
                {
                    "finding": "lost",
                    "api": kind["api"],
                    "container": "wb-d-0",
                    "name": f"object-{number:04}-{kind['size_bytes']}",
                    "what": "version 1 was acknowledged after 2.1 s; GET is 404",
                }
                for kind in lost
            ],
        }
    )
