"""Outages of a run: as recorded, compared, in the report, the charts and the exports."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from fake_run import fake_run
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results import derive
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.outage_tables import outages_table
from weighbridge.results.record.outage import Change, Outage, Seen, read_outages, record_outage
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Fault, Objects, Workload

AT, BACK = 15.0, 40.0
SILENT = Workload(
    name="host-silent",
    objects=Objects(size=4096),
    operations={"read": 100},
    workers=(8,),
    runtime=60.0,
    fault=Fault.model_validate({"at": "15s", "silence": "storage-host", "back": "40s"}),
)
STALLS_S = {"rgw-beast": 21.0, "swift": 2.0}
KEY = StepKey(layout="rgw-beast", api="swift", workload="host-silent", workers=8, repeat=0)


def outage(key: StepKey = KEY, **more: Any) -> Outage:
    whole, less = "3 of 3 OSDs up", "2 of 3 OSDs up"
    values: dict[str, Any] = {
        "key": key,
        "way": "silence",
        "host": "store-2",
        "services": ("osd.1",),
        "fault": Change(begun_s=AT, done_s=AT + 0.1),
        "back": Change(begun_s=BACK, done_s=BACK + 4),
        "seen": (
            Seen(at_s=1, whole=True, words=whole),
            Seen(at_s=AT + 20.5, whole=False, words=less),
            Seen(at_s=BACK + 5, whole=True, words=whole),
            Seen(at_s=BACK + 6, whole=False, words="90 of 101 clean"),
            Seen(at_s=BACK + 30, whole=True, words=whole),
        ),
        "settings": {"osd_heartbeat_grace": "20"},
    }
    return Outage.model_validate({**values, **more})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Five repeats: nothing is served from the fault until shortly before the stall ends."""
    store = fake_run(tmp_path_factory.mktemp("runs"), workloads=[SILENT])
    draw = random.Random(1)
    for step in store.steps():
        measured = step.measurement
        assert measured is not None
        stall_s = STALLS_S[step.key.layout] * math.exp(draw.gauss(0, 0.02))
        dead = range(int(AT), int(AT + STALLS_S[step.key.layout] - 1))
        seconds = tuple(
            one.model_copy(update={"count": 0, "errors": 2, "failures": {"timeout": 2}})
            if one.second in dead
            else one
            for one in measured.seconds
        )
        update = {"stall_us": round(stall_s * 1e6), "seconds": seconds}
        changed = measured.model_copy(update=update)
        store.append(step.model_copy(update={"measurement": changed}))
        seen = {} if step.key.layout == "rgw-beast" else {"seen": (), "services": ("swift",)}
        record_outage(store.folder, outage(step.key, **seen))
    return store


def test_a_store_notices_when_it_first_says_something_else() -> None:
    assert outage().noticed_s == pytest.approx(20.5)
    late = (
        Seen(at_s=1, whole=True, words="whole"),
        Seen(at_s=BACK + 1, whole=False, words="not"),
    )
    assert outage(seen=late).noticed_s is None, "only when it was back"
    assert outage(seen=()).noticed_s is None


def test_a_store_is_complete_once_it_stays_so() -> None:
    assert outage().clean_s == pytest.approx(30)
    assert outage(back=None).clean_s is None
    assert outage(seen=outage().seen[:4]).clean_s is None


def test_the_last_line_of_a_step_counts_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    assert read_outages(tmp_path) == {}
    record_outage(tmp_path, outage())
    record_outage(tmp_path, outage(host="store-3"))
    assert read_outages(tmp_path)[KEY].host == "store-3"
    with (tmp_path / "degrade.jsonl").open("a") as file:
        file.write('{"key": 1}\n')
    with pytest.raises(InvalidMeasurement, match=r"degrade.jsonl:3"):
        read_outages(tmp_path)


def test_layouts_are_compared_by_their_stalls_and_nothing_else(run: RunStore) -> None:
    data = RunData(run.folder)
    assert data.rows == ()
    found = data.outages
    (kind,) = found.kinds
    assert kind.headline == (
        f"Longest stall of a worker: {kind.rows[0].spread('stall').words} s on rgw-beast, "  # type: ignore[union-attr]
        f"{kind.rows[1].spread('stall').words} s on swift"  # type: ignore[union-attr]
    )
    ceph, swift = kind.rows
    assert ceph.what == ("store-2 silent",)
    assert ceph.noticed_s is not None
    assert (ceph.noticed_by, ceph.noticed_s.middle) == ("the store", pytest.approx(20.5))
    assert ceph.clean_s is not None
    assert (swift.noticed_s, swift.clean_s) == (None, None)
    assert ceph.errors == {"timeout": 2 * 5 * 20}
    assert found.comparison is not None
    cells = {one.metric: one.verdict for one in found.comparison.effects if one.workers is not None}
    assert cells["stall"] == "better", "swift's is shorter than that of the first layout"
    assert set(cells) <= {"stall", "detect", "recover"}
    assert any(
        "rgw-beast’s longest stall of 4 KiB reads at 8 workers is 10×" in one.replace("11×", "10×")
        for one in found.sentences
    )


def test_what_is_only_reached_after_the_return_is_a_lower_bound(run: RunStore) -> None:
    rows = RunData(run.folder).outages.kinds[0].rows
    ceph = rows[0].spread("recover")
    assert ceph is not None
    assert not ceph.at_least
    assert ceph.middle == pytest.approx(20, abs=1.1)


def test_the_report_has_their_section_charts_and_table(run: RunStore) -> None:
    derived = derive(run.folder, pictures=False)
    assert derived.comparable
    page = derived.report.read_text()
    assert '<section id="outages"' in page
    assert "While something is broken" in page
    assert "osd_heartbeat_grace" in page
    names = [figure.name for figure in derived.gallery.figures]
    assert names == ["outage-host-silent-read-swift-w8"]
    figure = derived.gallery.figures[0]
    assert len(figure.panels) == 4, "op/s and p99 of two layouts"
    assert figure.csv.startswith("layout,fault_s,back_s,second,ops_s")
    assert (derived.folder / "outages.csv").read_text().count("\n") == 3


def test_the_export_has_medians_with_their_range(run: RunStore) -> None:
    table = outages_table([RunData(run.folder)])
    assert table.column("layout") == ("rgw-beast", "swift")
    ((stall, _), (least, _), (most, _)) = (
        table.column(name) for name in ("stall_s", "least_stall_s", "most_stall_s")
    )
    assert isinstance(stall, float)
    assert isinstance(least, float)
    assert isinstance(most, float)
    assert 20 < least < stall < most < 22
    assert table.column("what") == (("store-2 silent",), ("store-2 silent",))
