from __future__ import annotations

import pytest

from tests.drivers.rados.conftest import StubMachine
from weighbridge.common.errors import TargetError
from weighbridge.drivers.rados import OsdFigure, RadosCluster, osd_figures
from weighbridge.drivers.rados.osd_bench import total_bytes

LIMITS = {
    "osd_bench_duration": "30",
    "osd_bench_small_size_max_iops": "100",
    "osd_bench_large_size_max_throughput": "104857600",
    "osd_bench_max_block_size": "67108864",
}


@pytest.fixture
def answering(machine: StubMachine) -> StubMachine:
    for name in ("osd.0", "osd.1"):
        machine.answers |= {
            f"tell {name} config get {option}": {option: value} for option, value in LIMITS.items()
        }
        machine.answers[f"tell {name} bench"] = {
            "bytes_written": 1,
            "bytes_per_sec": 1e6 if name == "osd.0" else 2e6,
        }
    return machine


def test_every_osd_is_benchmarked_at_every_size_within_its_limits(
    answering: StubMachine, cluster: RadosCluster
) -> None:
    figures = osd_figures(cluster, {0: "store-1", 1: "store-2"}, [4096, 2**20, 2**30])
    assert figures[0] == OsdFigure(host="store-1", number=0, request_bytes=4096, bytes_per_s=1e6)
    assert [one.request_bytes for one in figures] == [4096, 2**20, 2**26] * 2
    assert [one.bytes_per_s for one in figures] == [1e6] * 3 + [2e6] * 3
    assert "ceph tell osd.1 bench 12288000 4096 --format json" in answering.asked


def test_a_limit_that_is_answered_without_its_name_is_read(
    answering: StubMachine, cluster: RadosCluster
) -> None:
    answering.answers |= {
        f"tell osd.0 config get {option}": int(value) for option, value in LIMITS.items()
    }
    assert osd_figures(cluster, {0: "store-1"}, [4096])[0].bytes_per_s == 1e6


@pytest.mark.parametrize(
    ("size", "total"),
    [
        (4096, 3000 * 4096),
        (64_000, 3000 * 64_000),
        (3 * 2**19, 170 * 3 * 2**19),
        (4 * 2**20, 256 * 2**20),
        (2**26, 256 * 2**20),
    ],
)
def test_an_osd_gets_a_multiple_of_the_request_size_within_its_limits_and_ours(
    size: int, total: int
) -> None:
    assert total_bytes(size, {name: int(value) for name, value in LIMITS.items()}) == total


def test_an_answer_without_a_figure_is_an_error(
    answering: StubMachine, cluster: RadosCluster
) -> None:
    answering.answers["tell osd.0 bench"] = {"bytes_written": 1}
    with pytest.raises(TargetError, match=r"osd\.0 on store-1: .* in the answer to bench"):
        osd_figures(cluster, {0: "store-1"}, [4096])
