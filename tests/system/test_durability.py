"""Real stores lose power under load, at moments drawn from a seed, and are read afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployed_layouts import LAB_CPU, planned, shipped
from weighbridge.conductor.durability import DurabilityPass, refuse_unfit
from weighbridge.environment import place
from weighbridge.results.features.durability import durability_of
from weighbridge.results.run.durability import PowerCut, read_cuts
from weighbridge.suites import Durability
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab import ending

pytestmark = [pytest.mark.system, pytest.mark.long]

STORES = "[store-1, store-2, store-3]"
# On one host, so that a start takes seconds; and without the half minute for which the first write
# waits for a radosgw that watches no longer.
POOLS = "{replicas: 3, min_size: 2, failure_domain: host}"
ONE_HOST = {
    STORES: "[store-1]",
    POOLS: "{replicas: 1, min_size: 1, failure_domain: osd, data_pg_num: 8, index_pg_num: 8, "
    "other_pg_num: 1}\n  options: {osd: {osd_client_watch_timeout: 5}}",
    "replicas: 3\n": "replicas: 1\n",
}
FILESTORE = {"objectstore: bluestore": "objectstore: filestore"}


def tried(
    layout: str, folder: Path, changes: dict[str, str], *, cuts: int, control: bool = False
) -> tuple[PowerCut, ...]:
    text = shipped(layout)
    for old, new in {**ONE_HOST, **changes}.items():
        text = text.replace(old, new)
    tested = planned(text, folder)
    ensure(tested.gateway.image, print, store=place().images)
    (folder / "logs").mkdir(exist_ok=True)
    wanted = Durability(cuts=cuts, load=4.0, sizes=(4096, 65536), workers=5)
    refuse_unfit(wanted, [tested], LAB_CPU)
    return DurabilityPass(
        tested, LAB_CPU, place(), print, wanted=wanted, seed=20, folder=folder, control=control
    ).run()


@pytest.mark.parametrize(
    ("layout", "changes", "cuts"),
    [
        pytest.param("rgw-beast", {}, 1, id="rgw-bluestore-once"),
        *(
            pytest.param(*one, id=name, marks=pytest.mark.test_all)
            for name, one in {
                "rgw-bluestore": ("rgw-beast", {}, 10),
                "rgw-filestore": ("rgw-beast", FILESTORE, 4),
                "swift": ("swift", {}, 6),
            }.items()
        ),
    ],
)
def test_no_acknowledged_object_is_lost_at_any_moment_and_all_are_where_disks_ignore_flushes(
    tmp_path: Path, layout: str, changes: dict[str, str], cuts: int
) -> None:
    control = tried(layout, tmp_path, changes, cuts=cuts, control=True)
    assert [cut.why_not for cut in control] == [""] * min(cuts, 2)
    # All of them, but what a deletion was in flight for may be gone.
    kinds = [kind for cut in control for kind in cut.objects]
    assert all(kind.acknowledged - kind.in_flight <= kind.lost for kind in kinds), kinds
    assert any(kind.lost for kind in kinds)
    found = tried(layout, tmp_path, changes, cuts=cuts)
    assert [cut.number for cut in found] == list(range(1, cuts + 1))
    assert [cut.why_not for cut in found] == [""] * cuts
    (judged,) = durability_of(read_cuts(tmp_path))
    assert judged.judgement == "kept", judged.sentence
    assert judged.store.acknowledged > cuts
    assert {one.way for cut in found for one in cut.objects} == {"plain", "multipart"}
    unlisted = sum(cut.count("not-listed") for cut in found)
    if layout == "swift":
        # Rows of listings wait in files that are not synced (swift.common.db, put_record).
        assert unlisted > 0
    else:
        assert unlisted == 0
    assert all(disk.flushes for cut in found[-1:] for disk in cut.disks if "wb0" in disk.name)
    assert not ending.find_leftovers(state=place().state)
