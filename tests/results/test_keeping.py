"""What it costs to keep objects: as recorded, over repeats, in the report and the exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fake_run import fake_run
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results import derive
from weighbridge.results.analysis.keeping import ALL, costs
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.keeping_tables import kept_table
from weighbridge.results.record.kept import DaemonMemory, Kept, KeptObjects, read_kept, record_kept
from weighbridge.results.report.keeping_table import kept_lines, memory_lines

MIB = 2**20
PLACE = {"layout": "rgw", "workload": "small-read"}


def kept(repeat: int = 0, grown: int = 3000, **more: Any) -> KeptObjects:
    about = {**PLACE, "repeat": repeat, "api": "swift", "driver": "locust", "how": "OSDs"}
    sizes = {"objects": 10, "stored_bytes": 1000, "before_bytes": 500, "after_bytes": 500 + grown}
    return KeptObjects.model_validate({**about, **sizes, **more})


def memory(daemon: str, size: int | None, repeat: int = 0, **more: Any) -> DaemonMemory:
    role = daemon.partition(".")[0]
    about = {**PLACE, "repeat": repeat, "host": "store-1", "daemon": daemon, "role": role}
    sizes = {"processes": 1 if size is not None else 0, "resident_bytes": size}
    return DaemonMemory.model_validate({**about, **sizes, **more})


def test_bytes_on_disks_per_byte_stored_are_means_over_repeats_with_their_range() -> None:
    (row,) = costs(Kept(objects=(kept(0, 3000), kept(1, 3200))), ["rgw"]).kept
    assert (row.times, row.least_times, row.most_times, row.repeats) == (3.1, 3.0, 3.2, 2)
    assert row.beside_bytes is None
    (line,) = kept_lines([row], {})
    assert line[8:11] == ("3.10", "3.00 to 3.20", "–")


def test_databases_are_beside_and_never_part_of_the_figure_per_byte() -> None:
    beside = kept(beside_before_bytes=100, beside_after_bytes=900)
    (row,) = costs(Kept(objects=(beside,)), ["rgw"]).kept
    assert (row.times, row.beside_bytes) == (3.0, 800)
    shrunk = kept(beside_before_bytes=900 * MIB, beside_after_bytes=100 * MIB)
    (row,) = costs(Kept(objects=(shrunk,)), ["rgw"]).kept
    assert kept_lines([row], {})[0][10] == "-800.0 MiB"


def test_memory_is_the_range_of_one_daemon_and_the_most_of_all_at_the_same_time() -> None:
    found = Kept(
        memory=(
            memory("osd.0", 1 * MIB),
            memory("osd.1", 5 * MIB, host="store-2", peak_bytes=9 * MIB),
            memory("osd.0", 3 * MIB, 1),
            memory("osd.1", 4 * MIB, 1, host="store-2"),
            memory("mon", 2 * MIB),
            memory("mon", 2 * MIB, 1),
        )
    )
    osd, mon, every = costs(found, ["rgw"]).memory
    assert (osd.daemons, osd.hosts) == (2, ("store-1", "store-2"))
    assert (osd.least_bytes, osd.most_bytes, osd.sum_bytes) == (1 * MIB, 5 * MIB, 7 * MIB)
    assert osd.peak_bytes is None  # not known of each
    assert memory_lines([osd])[0][4:] == ("1.0 to 5.0 MiB", "7.0 MiB", "–")
    assert memory_lines([every])[0][4:] == ("", "9.0 MiB", "")
    assert (mon.sum_bytes, every.role, every.sum_bytes) == (2 * MIB, ALL, 9 * MIB)


def test_a_daemon_of_unknown_memory_leaves_the_sums_unknown() -> None:
    found = Kept(memory=(memory("osd.0", MIB), memory("osd.1", None), memory("mon", MIB)))
    osd, mon, every = costs(found, ["rgw"]).memory
    assert (osd.sum_bytes, osd.most_bytes, every.sum_bytes) == (None, None, None)
    assert mon.sum_bytes == MIB
    assert memory_lines([osd])[0][4:] == ("–", "–", "–")


def test_empty_objects_have_no_bytes_on_disks_per_byte() -> None:
    (row,) = costs(Kept(objects=(kept(stored_bytes=0),)), ["rgw"]).kept
    assert row.times is None
    assert kept_lines([row], {})[0][8:10] == ("–", "–")


def test_the_last_reading_of_a_visit_counts(tmp_path: Path) -> None:
    assert read_kept(tmp_path) == Kept()
    record_kept(tmp_path, kept(grown=9000), memory("osd.0", 1))
    record_kept(tmp_path, kept(grown=3000), kept(1))
    found = read_kept(tmp_path)
    assert [(one.repeat, one.times) for one in found.objects] == [(0, 3.0), (1, 3.0)]
    assert len(found.memory) == 1
    (tmp_path / "kept.jsonl").write_text('{"kind": "objects", "layout": "../x"}\n')
    with pytest.raises(InvalidMeasurement, match=r"kept\.jsonl:1"):
        read_kept(tmp_path)


def test_the_report_and_the_exports_show_it_and_runs_without_it_have_no_section(
    tmp_path: Path,
) -> None:
    store = fake_run(tmp_path, layouts=("rgw", "swift"), repeats=1)
    (store.folder / "kept.jsonl").unlink()
    assert "What it costs to keep" not in derive(store.folder, pictures=False).report.read_text()
    record_kept(store.folder, kept(), memory("osd.0", 3 * MIB))
    page = derive(store.folder, pictures=False).report.read_text()
    assert "What it costs to keep" in page
    assert "3.00" in page
    (line,) = kept_table([RunData(store.folder)]).lines
    assert 3.0 in line
