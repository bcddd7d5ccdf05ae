from pathlib import Path

import pytest

from weighbridge.results.influx import spool as influx_spool
from weighbridge.results.influx.spool import REFUSED, SPOOL, Spool, clear
from weighbridge.results.record.store import StoreError


def test_lines_come_out_in_order_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(influx_spool, "BATCH", 2)
    with Spool(tmp_path) as spool:
        spool.append(["a 1", "b 2", "c 3"])
        out = []
        while spool.waiting:
            lines = spool.head()
            assert spool.head() == lines
            out += lines
            spool.sent(len(lines))
            if len(out) == 2:
                spool.append(["d 4"])
        assert out == ["a 1", "b 2", "c 3", "d 4"]
    assert not (tmp_path / SPOOL).exists()


def test_what_waits_is_on_the_disk_from_when_it_is_appended(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append(["a 1", "b 2"])
        assert (tmp_path / SPOOL).read_text() == "a 1\nb 2\n"


def test_a_spool_that_is_left_has_only_what_the_server_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(influx_spool, "BATCH", 2)
    with Spool(tmp_path) as spool:
        spool.append(["a 1", "b 2", "c 3"])
        spool.sent(len(spool.head()))
    assert (tmp_path / SPOOL).read_text() == "c 3\n"


def test_what_a_killed_run_left_is_sent_first_and_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / SPOOL).write_text("a 1\nb 2\nc=")
    with Spool(tmp_path) as spool:
        assert spool.waiting == 2
        spool.append(["d 4"])
        assert spool.head() == ["a 1", "b 2", "d 4"]


def test_refused_lines_are_kept_with_the_reason_and_out_of_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(influx_spool, "BATCH", 1)
    with Spool(tmp_path) as spool:
        spool.append(["a 1", "b 2"])
        spool.set_aside(spool.head(), "answered 400:\nconflict")
        assert spool.head() == ["b 2"]
    assert (tmp_path / REFUSED).read_text() == "# answered 400: conflict\na 1\n"
    assert (tmp_path / SPOOL).read_text() == "b 2\n"


def test_a_spool_that_another_writes_to_is_an_error_and_is_not_cleared(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append(["a 1"])
        with pytest.raises(StoreError):
            Spool(tmp_path)
        clear(tmp_path)
        assert (tmp_path / SPOOL).exists()
    clear(tmp_path)
    assert not (tmp_path / SPOOL).exists()


def test_a_full_disk_leaves_no_half_of_what_was_appended(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(["a 1"])
    whole = spool._file
    with Path("/dev/full").open("ab", buffering=0) as full:

        class Full:
            """Writes as a full disk does; all else as the file."""

            def __getattr__(self, name: str) -> object:
                return getattr(whole, name)

            def write(self, data: bytes) -> int:
                whole.write(data[:2])
                return full.write(data)

        spool._file = Full()  # type: ignore[assignment]
        with pytest.raises(StoreError, match="the disk is full"):
            spool.append(["b 2", "c 3"])
    spool._file = whole
    assert (tmp_path / SPOOL).read_text() == "a 1\n"
    assert spool.waiting == 1
    spool.close()
