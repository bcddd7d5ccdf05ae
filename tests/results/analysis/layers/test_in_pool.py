"""Staircases of gateways that already run, with RADOS measured in a pool that existed before."""

from __future__ import annotations

from typing import Any

from tests.results.analysis.layers.test_staircase import below, cpu, levels, only, plan, row
from weighbridge.common.structure import Redundancy
from weighbridge.results.analysis.layers.staircase import Staircase, doubts
from weighbridge.results.analysis.layers.staircases import with_ceilings
from weighbridge.results.charts.ceiling_lines import ceiling_lines
from weighbridge.results.charts.staircase_chart import finding
from weighbridge.results.record.resolved import BenchedPool, PlannedLayout, ResolvedPlan

MINE: dict[str, Any] = {"layout": "mine"}
APART = "pool bench has 1 replica, and default.rgw.buckets.data 3"


def planned(apart: str = "", **changes: Any) -> ResolvedPlan:
    known: dict[str, Any] = {
        "host": "gateway-1",
        "pool": "bench",
        "user": "client.bench",
        "kept": Redundancy(replicas=3),
        "pg_num": 32,
        "rule": 0,
        "apart": apart,
    }
    pool = BenchedPool.model_validate({**known, **changes})
    layouts = (PlannedLayout(name="mine", gateway="existing"),)
    changed = {"layouts": layouts, "structures": {}, "pools": {"mine": pool}}
    return plan().model_copy(update=changed)


def stair(rados: float, gateway: float, apart: str = "", **changes: Any) -> Staircase:
    return only(
        planned(apart), [row(gateway, **MINE)], [below("rados", rados, **MINE, **changes)], []
    )


def test_a_gateway_is_a_share_of_a_pool_that_keeps_objects_as_its_own() -> None:
    found = stair(100, 40)
    assert levels(found)["rados"] == (100, None)
    assert levels(found)["gateway"] == (40, 0.4)
    rados = found.step("rados")
    assert rados is not None
    assert rados.note == (
        "pool bench: 3 replicas, 32 placement groups, CRUSH rule 0; from gateway-1"
    )
    assert finding([found]) == "Of what RADOS can do, clients get 40 % (mine)"
    assert [line.layer for line in ceiling_lines([found])["reads-read-swift-locust"]] == ["RADOS"]


def test_a_gateway_is_no_share_of_a_pool_that_is_unlike_its_own_and_no_ceiling_is_drawn() -> None:
    found = stair(100, 40, APART)
    assert levels(found)["rados"] == (100, None)
    assert levels(found)["gateway"] == (40, None)
    assert doubts([found]) == (f"RADOS of mine, 1 MB reads: not below ({APART})",)
    assert "RADOS" not in finding([found])
    assert ceiling_lines([found])["reads-read-swift-locust"] == ()


def test_a_gateway_above_a_pool_unlike_its_own_is_believed() -> None:
    found = stair(100, 140, APART)
    assert found.top.doubt is None
    (ranked,) = with_ceilings([row(140, **MINE)], [found])
    assert ranked.doubts == ()


def test_a_gateway_above_a_pool_like_its_own_may_be_on_more_hosts_and_is_ranked() -> None:
    found = stair(100, 140)
    assert found.top.doubt is not None
    assert found.top.doubt.verdict == "held below"
    assert found.top.doubt.text == (
        "1.4 times what RADOS can do, which was measured from one host, gateway-1: it may do more"
    )
    (ranked,) = with_ceilings([row(140, **MINE)], [found])
    assert (ranked.doubts, ranked.ranked) == ((), True)


def test_a_bench_whose_host_ran_out_of_cpu_is_a_lower_bound() -> None:
    found = stair(100, 40, resources=(cpu("gateway-1", "gateway"),))
    rados = found.step("rados")
    assert rados is not None
    assert rados.held.startswith("CPU of gateway-1")
    assert "RADOS at least 100" in found.words


def test_what_else_is_known_of_a_pool_is_beside_its_figure() -> None:
    made = planned(remark="it is in use by rbd")
    found = only(made, [row(40, **MINE)], [below("rados", 100, **MINE)], [])
    rados = found.step("rados")
    assert rados is not None
    assert rados.note.endswith("from gateway-1; it is in use by rbd")


def test_what_a_later_version_knows_of_a_pool_is_ignored() -> None:
    assert planned(colour="green").pools["mine"].kept == Redundancy(replicas=3)
