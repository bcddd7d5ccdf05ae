import csv
from dataclasses import replace
from typing import Any, Literal, cast

import pytest

from made_rows import altered, made_row, made_workload, present
from weighbridge.common.structure import Redundancy, Structure
from weighbridge.results.features.layers import STAIRCASE, ceiling_lines, finding, staircase_lines
from weighbridge.results.features.staircase import (
    CeilingQuery,
    HardwareKind,
    LayerStep,
    Staircase,
    ceiling,
    doubts,
    gaps,
    percent,
    staircases,
    with_ceilings,
)
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import Resource
from weighbridge.results.judge.host_equality import BOUNDS, FREE_BOUND
from weighbridge.results.run.resolved import (
    BenchedPool,
    PlannedHardware,
    PlannedLayout,
    ResolvedPlan,
)
from weighbridge.results.run.telemetry import Attested
from weighbridge.results.show.table import Filled
from weighbridge.suites import Suite

MB = 10**6
STORES = ("store-1", "store-2", "store-3")
LAYERS = ("disk", "network", "rados", "object-server", "gateway")


def structure(**changes: Any) -> Structure:
    known: dict[str, Any] = {
        "entrances": ("gateway-1",),
        "gateways": ("gateway-1",),
        "stores": STORES,
        "disks": dict.fromkeys(STORES, (0,)),
        "replicas": 3,
        "copied_by": "store",
    }
    return Structure.model_validate({**known, **changes})


def plan(
    layout: str = "rgw-beast",
    *,
    layers: tuple[str, ...] = LAYERS,
    mix: bool = False,
    **changes: Any,
) -> ResolvedPlan:
    """Reads and writes of 1 MB: op/s and MB/s are the same figures."""
    mixed = {"read": 1, "write": 1}
    workloads = (
        made_workload(name="reads", operations=mixed if mix else {"read": 1}, workers=(1, 8)),
        made_workload(name="writes", operations={"write": 1}, workers=(1, 8)),
    )
    store = {"rgw": "rados", "swift": "object-server"}.get(layout.partition("-")[0])
    return ResolvedPlan(
        suite=Suite.model_validate(
            {"name": "s", "about": "s", "workloads": workloads, "layers": layers}
        ),
        hardware=PlannedHardware(name="h", clients=("client-1",)),
        layouts=(PlannedLayout(name=layout, gateway=layout.split("-", maxsplit=1)[0]),),
        structures={layout: structure(**{"layer": store, **changes})},
    )


def row(ops_s: float | None, workers: int = 8, **changes: Any) -> Row:
    known = {
        "layout": "rgw-beast",
        "workload": "reads",
        "workers": workers,
        "throughput_ops_s": ops_s,
        "bandwidth_mb_s": ops_s,
        "valid": True,
    }
    return made_row(**{**known, **changes})


def below(api: str, ops_s: float | None, **changes: Any) -> Row:
    return row(
        ops_s,
        **{"api": api, "layer": api, "driver": "rados" if api == "rados" else "locust", **changes},
    )


WRITES: dict[str, Any] = {"workload": "writes", "operation": "write"}
SWIFT: dict[str, Any] = {"layout": "swift"}


PLACE = {"layout": "x", "repeat": 0}


def disk(host: str, name: str, operation: str, pick: str, value_mb: float, **more: Any) -> Attested:
    size = more.pop("size", 64_000)
    what = f"disk {name} {pick} {operation} of {size} B"
    figure = {"kind": "disk", "unit": "B/s", "value": value_mb * MB, "promised": 1e9}
    asked_of = {"what": what, "operation": operation, "pick": pick, "request_bytes": size}
    return Attested.model_validate({**PLACE, "host": host, **figure, **asked_of, **more})


def link(sender: str, receiver: str, mb_s: float) -> Attested:
    bit_s = mb_s * MB * 8
    known = {"host": receiver, "kind": "network", "what": f"network from {sender}"}
    rates = {"value": bit_s, "promised": bit_s, "unit": "bit/s"}
    ends = {"sender": sender, "receiver": receiver}
    return Attested.model_validate({**PLACE, **known, **rates, **ends})


def both_ways(one: str, other: str, mb_s: float) -> list[Attested]:
    return [link(one, other, mb_s), link(other, one, mb_s)]


def hosts(disk_mb: float = 100, link_mb: float = 1000, layout: str = "rgw-beast") -> list[Attested]:
    """Three disks, one a store, and every pair of hosts."""
    known: dict[str, Any] = {"layout": layout, "size": MB, "promised": 1e12}
    found = [
        disk(host, "wb0", operation, pick, disk_mb, **known)
        for host in STORES
        for operation, pick in (("read", "random"), ("write", "sequential"))
    ]
    ends = [("client-1", name) for name in ("gateway-1", *STORES)] + [
        ("gateway-1", name) for name in STORES
    ]
    pairs = [pair for one, other in ends for pair in both_ways(one, other, link_mb)]
    return found + [altered(one, layout=layout, promised=None) for one in pairs]


def only(
    planned: ResolvedPlan, rows: list[Row], layers: list[Row], attested: list[Attested]
) -> Staircase:
    (stair,) = staircases(planned, rows, layers, attested)
    return stair


HAPROXY: dict[str, Any] = {"layout": "rgw-haproxy"}
RADOS: dict[str, Any] = {"api": "rados", "driver": "rados"}
SERVERS = "object-server"


def levels(stair: Staircase) -> dict[str, tuple[float | None, float | None]]:
    return {step.level: (step.throughput_ops_s, step.of_below) for step in stair.steps}


FRONT = plan("rgw-haproxy", front="HAProxy", daemons=2)
SWIFT_PLAN = plan("swift", copied_by="gateway")
SLOW_LINKS = {"disk_mb": 1000.0, "link_mb": 100.0}
INVALID = row(500, 8, valid=False, notes=("not valid",))
BEHIND = row(40, layer="gateway", **HAPROXY)


@pytest.mark.parametrize(
    ("planned", "rows", "layers", "links", "above_hardware"),
    [
        # The best valid worker count of the gateway.
        (
            plan(),
            [row(20, 1), row(60), INVALID],
            [below("rados", 150)],
            {},
            [(150, 0.5), (60, 0.4)],
        ),
        (plan(), [row(20, **WRITES)], [below("rados", 80, **WRITES)], {}, [(80, 0.8), (20, 0.25)]),
        # Writes to single disks of object servers are divided by the replicas; reads are not.
        (
            *(SWIFT_PLAN, [row(20, **SWIFT, **WRITES)]),
            *([below(SERVERS, 240, **SWIFT, **WRITES)], {}, [(80, 0.8), (20, 0.25)]),
        ),
        (
            SWIFT_PLAN,
            [row(24, **SWIFT)],
            [below(SERVERS, 240, **SWIFT)],
            {},
            [(240, 0.8), (24, 0.1)],
        ),
        # Three stores send a bench on the gateway's host no more than its own link carries.
        (plan(), [row(18)], [below("rados", 90)], SLOW_LINKS, [(90, 0.9), (18, 0.2)]),
        # A front is a share of the gateway behind it; two daemons may do more than one.
        (
            *(FRONT, [row(60, **HAPROXY)], [below("rados", 80, **HAPROXY), BEHIND]),
            *({"disk_mb": 200}, [(80, pytest.approx(80 / 600)), (40, 0.5), (60, 1.5)]),
        ),
        # A suite about RADOS itself has it on top.
        (plan(), [row(60, **RADOS)], [], {}, [(60, 0.2)]),
    ],
)
def test_each_layer_is_a_share_of_the_one_below(
    planned: ResolvedPlan,
    rows: list[Row],
    layers: list[Row],
    links: dict[str, float],
    above_hardware: list[tuple[float, float]],
) -> None:
    stair = only(planned, rows, layers, hosts(**links, layout=rows[0].layout))
    assert [(step.throughput_ops_s, step.of_below) for step in stair.steps[2:]] == above_hardware
    assert all(step.believable for step in stair.steps)


@pytest.mark.parametrize(
    ("planned", "gateway", "disks", "network"),
    [
        (plan(), row(20), 300, 1000),
        # Writes are counted after replication; Ceph's stores copy, Swift's gateway does.
        (plan(), row(20, **WRITES), 100, 1000),
        (SWIFT_PLAN, row(20, **SWIFT, **WRITES), 100, pytest.approx(1000 / 3)),
    ],
)
def test_hardware_is_what_clients_could_get(
    planned: ResolvedPlan, gateway: Row, disks: float, network: float
) -> None:
    stair = only(planned, [gateway], [], hosts(layout=gateway.layout))
    assert [step.throughput_ops_s for step in stair.steps[:2]] == [disks, network]


def test_a_staircase_is_a_sentence_with_shares_of_the_disks() -> None:
    stair = only(plan(), [row(60)], [below("rados", 150)], hosts())
    assert [step.of_disks for step in stair.steps] == [None, pytest.approx(10 / 3), 0.5, 0.2]
    assert stair.words == (
        "rgw-beast, 1 MB reads: disks 300 op/s → network 1,000 → RADOS 150 (50 % of its disks) → "
        "gateway 60.0 (40 % of RADOS)"
    )


def test_only_ceph_has_a_step_of_osds_alone() -> None:
    asked = (*LAYERS, "osd")
    ceph = only(plan(layers=asked), [row(20, **WRITES)], [], hosts())
    swift = only(
        plan("swift", layers=asked), [row(20, **SWIFT, **WRITES)], [], hosts(layout="swift")
    )
    assert "osd" in levels(ceph)
    assert "osd" not in levels(swift)


def test_one_daemon_did_not_do_less_than_the_front_before_it() -> None:
    lone = plan("rgw-haproxy", front="HAProxy", daemons=1)
    behind = row(40, layer="gateway", **HAPROXY)
    stair = only(lone, [row(60, **HAPROXY)], [behind], hosts(layout="rgw-haproxy"))
    assert (stair.top.name, stair.top.believable) == ("HAProxy", True)
    assert [step.level for step in stair.steps if not step.believable] == ["gateway"]


def test_an_unmeasured_or_failed_layer_is_a_gap_with_its_reason_that_shares_skip() -> None:
    disks = [one for one in hosts() if one.kind == "disk"]
    stair = only(plan(layers=("disk",)), [row(60)], [], disks)
    assert levels(stair) == {
        "disk": (300, None),
        "network": (None, None),
        "rados": (None, None),
        "gateway": (60, 0.2),
    }
    assert gaps([stair]) == (
        "Network of rgw-beast: not measured: --layers network",
        "RADOS of rgw-beast: not measured: --layers rados",
    )
    failed = below("rados", None, valid=False, notes=("not valid", "rados bench: 2 instances died"))
    stair = only(plan(), [row(60)], [failed], hosts())
    assert levels(stair)["rados"] == (None, None)
    assert gaps([stair]) == ("RADOS of rgw-beast: rados bench: 2 instances died",)


def test_without_layers_in_the_suite_or_bodies_of_requests_there_is_no_staircase() -> None:
    assert staircases(plan(layers=()), [row(60)], [], hosts()) == ()
    assert staircases(plan(), [row(60, operation="list", bandwidth_mb_s=None)], [], hosts()) == ()


@pytest.mark.parametrize(
    ("gateway", "layers", "attested", "doubted", "of_below"),
    [
        (row(400), [], hosts(), ("gateway", "from memory: 1.3 times what its disks"), 4 / 3),
        (row(109.9, **WRITES), [], hosts(), None, 1.099),
        (row(110.1, **WRITES), [], hosts(), ("disk", "too low: Gateway did 1.1 times"), 0.1101),
        (row(60), [below("rados", 50)], hosts(), ("rados", "too low: Gateway did 1.2 times"), 0.2),
        (row(60), [], hosts(link_mb=40), ("network", "too low: Gateway did 1.5 times"), 0.2),
    ],
)
def test_what_clients_got_is_believed_and_a_ceiling_below_it_is_not(
    gateway: Row,
    layers: list[Row],
    attested: list[Attested],
    doubted: tuple[str, str] | None,
    of_below: float,
) -> None:
    stair = only(plan(), [gateway], layers, attested)
    remarks = [(step.level, str(step.doubt)) for step in stair.steps if step.doubt is not None]
    assert [level for level, _ in remarks] == ([] if doubted is None else [doubted[0]])
    assert not doubted or remarks[0][1].startswith(doubted[1])
    assert (stair.top.believable, stair.top.of_below) == (True, pytest.approx(of_below))
    (ranked,) = with_ceilings([gateway], [stair])
    assert (ranked.ranked, ranked.doubts) == (True, gateway.doubts)
    assert ranked.notes == ((str(stair.top.doubt),) if stair.top.doubt else ())


def test_remarks_are_sentences_and_a_layer_that_is_too_low_has_no_shares() -> None:
    stair = only(plan(), [row(120, **WRITES)], [below("rados", 150, **WRITES)], hosts())
    assert [step.level for step in stair.steps if not step.believable] == ["disk"]
    assert levels(stair)["rados"] == (150, pytest.approx(0.15))
    assert doubts([stair])[0].startswith(
        "Disks of rgw-beast, 1 MB writes: too low (RADOS did 1.5 times this: it can do more"
    )


def cpu(host: str, tier: str, share: float = 0.99) -> Resource:
    return Resource.model_validate(
        {"what": "CPU", "host": host, "tier": tier, "share": share, "limit": "0.6"}
    )


def test_a_layer_whose_load_generator_ran_out_of_cpu_is_a_lower_bound() -> None:
    held = below("rados", 50, resources=(cpu("gateway-1", "gateway"),))
    stair = only(plan(), [row(60)], [held], hosts())
    rados = present(stair.step("rados"))
    assert rados.held == "CPU of gateway-1 (99 % of 0.6)"
    assert present(rados.doubt).verdict == "at least"
    assert "RADOS at least 50.0" in stair.words
    # Figures above it are then not surprising.
    assert (present(stair.top.doubt).verdict, stair.top.believable) == ("held below", True)


def test_a_gateway_out_of_cpu_was_not_limited_by_its_load_generator() -> None:
    for host, tier, held in (("gateway-1", "gateway", False), ("client-1", "client", True)):
        found = only(plan(), [row(60, resources=(cpu(host, tier),))], [], hosts())
        assert bool(found.top.held) is held
    store = below("object-server", 90, **SWIFT, resources=(cpu("gateway-1", "gateway"),))
    stair = only(plan("swift"), [row(60, **SWIFT)], [store], hosts(layout="swift"))
    assert all(step.held == "" for step in stair.steps)


def test_rows_near_a_ceiling_have_reached_it() -> None:
    rows = [row(20, 1), row(400, 8)]
    first, second = with_ceilings(rows, staircases(plan(), rows, [], hosts()))
    assert first == rows[0]
    assert (first.reached, second.reached) == ((), ("disk",))


def test_an_unsteady_row_is_not_a_step() -> None:
    moving = altered(
        row(60, 8), steady=False, notes=("not steady", "throughput falls by 30 % over the window")
    )
    assert only(plan(), [row(40, 1), moving], [], hosts()).top.throughput_ops_s == 40
    alone = only(plan(), [moving], [], hosts()).top
    assert alone.throughput_ops_s is None
    assert alone.note == "throughput falls by 30 % over the window"


def test_a_mix_notes_that_other_operations_shared_the_layers() -> None:
    rows = [row(30), row(30, operation="write")]
    reads, _ = staircases(plan(mix=True), rows, [], hosts())
    assert reads.top.note == "a mix: other operations shared it"


def test_the_csv_has_a_line_per_step_with_empty_gaps() -> None:
    stair = only(plan(layers=("disk",)), [row(60)], [], hosts())
    filled = Filled(STAIRCASE, tuple(each.of_run("r") for each in staircase_lines(stair)))
    lines = {line["level"]: line for line in csv.DictReader(filled.csv.splitlines())}
    assert list(lines) == ["disk", "network", "rados", "gateway"]
    top = lines["gateway"]
    assert (top["throughput_ops_s"], top["share_of_below"], top["below"]) == ("60.0", "0.2", "disk")
    assert (lines["rados"]["throughput_ops_s"], lines["rados"]["believable"]) == ("", "")
    assert lines["rados"]["note"] == "not measured: --layers rados"
    assert [*map(percent, (0.344, 1.5, 0.0123, None))] == ["34 %", "150 %", "1.2 %", ""]


MINE: dict[str, Any] = {"layout": "mine"}
APART = "pool bench has 1 replica, and default.rgw.buckets.data 3"
MORE_HOSTS = (
    "held below: 1.4 times what RADOS can do, which was measured from one host, gateway-1: "
    "it may do more"
)


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


@pytest.mark.parametrize(
    ("gateway", "apart", "share", "doubt", "said", "lines"),
    [
        (40, "", 0.4, "", "1 MB reads lose most at the gateway of mine: 40 %", ["RADOS"]),
        # No layer is a share of a pool that is unlike the gateway's own.
        (40, APART, None, "", "What the layers serve of 1 MB reads cannot be compared", []),
        (140, APART, None, "", "What the layers serve of 1 MB reads cannot be compared", []),
        # One like its own may be on more hosts than it was measured from.
        (140, "", 1.4, MORE_HOSTS, "1 MB reads lose most at the gateway of mine: 140 %", ["RADOS"]),
    ],
)
def test_a_gateway_is_a_share_of_a_pool_that_keeps_objects_as_its_own(
    gateway: float, apart: str, share: float | None, doubt: str, said: str, lines: list[str]
) -> None:
    found = stair(100, gateway, apart)
    assert levels(found) | {"disk": 0, "network": 0} == {
        "disk": 0,
        "network": 0,
        "rados": (100, None),
        "gateway": (gateway, share),
    }
    assert str(found.top.doubt or "") == doubt
    assert finding([found]).startswith(said)
    drawn = ceiling_lines([found])["reads-read-swift-locust"]
    assert [line.layer for line in drawn] == lines
    (ranked,) = with_ceilings([row(gateway, **MINE)], [found])
    assert (ranked.doubts, ranked.ranked) == ((), True)
    not_below = f"RADOS of mine, 1 MB reads: not below ({APART})"
    assert (not_below in doubts([found])) == bool(apart)


def test_what_is_known_of_a_pool_and_its_bench_is_beside_its_figure() -> None:
    full = stair(100, 40, resources=(cpu("gateway-1", "gateway"),))
    assert present(full.step("rados")).held.startswith("CPU of gateway-1")
    assert "RADOS at least 100" in full.words
    made = planned(remark="it is in use by rbd")
    found = only(made, [row(40, **MINE)], [below("rados", 100, **MINE)], [])
    assert present(found.step("rados")).note == (
        "pool bench: 3 replicas, 32 placement groups, CRUSH rule 0; from gateway-1; it is in use "
        "by rbd"
    )
    assert planned(colour="green").pools["mine"].kept == Redundancy(replicas=3)


CEILING_STORES = ("store-1", "store-2")


def structure_of(**changes: Any) -> Structure:
    disks = dict.fromkeys(CEILING_STORES, (0,))
    return structure(**{"stores": CEILING_STORES, "disks": disks, "replicas": 2, **changes})


def asked(operation: str = "read", size: float = 64_000) -> CeilingQuery:
    transfer = cast("Literal['read', 'write']", operation)
    return CeilingQuery(transfer, size, ("client-1",))


DISKS = [
    disk(host, "wb0", operation, pick, value)
    for host, factor in (("store-1", 1), ("store-2", 2))
    for operation, pick, value in (
        ("read", "random", 10 * factor),
        ("read", "sequential", 100 * factor),
        ("write", "random", 5 * factor),
        ("write", "sequential", 60 * factor),
    )
]


def said(found: LayerStep) -> tuple[float, str] | str:
    """MB/s and how they were found, or why nothing is known."""
    return found.note if found.bandwidth_mb_s is None else (found.bandwidth_mb_s, found.note)


def rate(found: LayerStep) -> float:
    return present(found.bandwidth_mb_s)


def of_disks(operation: str, **changes: Any) -> tuple[float, str] | str:
    return said(ceiling("disk", DISKS, structure_of(**changes), asked(operation)))


def of_each(name: str, operation: str, pick: str, mb_s: float, **more: Any) -> list[Attested]:
    """The same figure of a disk of each store."""
    return [disk(host, name, operation, pick, mb_s, **more) for host in CEILING_STORES]


def test_reads_come_from_all_disks_and_writes_go_to_as_many_as_there_are_replicas() -> None:
    size = "requests of 64 kB"
    assert of_disks("read") == (10 + 20, f"2 disks, random {size}")
    pick = f"2 disks, sequential or random {size}, divided by"
    assert of_disks("write") == ((60 + 120) / 2, f"{pick} 2 replicas")
    assert of_disks("write", replicas=3) == ((60 + 120) / 3, f"{pick} 3 replicas")
    # A journal on the same disk halves writes and not reads.
    twice = f"{pick} 2 replicas, each written twice (journal and data)"
    assert of_disks("write", writes=2) == ((60 + 120) / 2 / 2, twice)
    assert of_disks("read", writes=2) == of_disks("read")


def test_for_writes_the_better_of_sequential_and_random_requests_counts() -> None:
    attested = [*of_each("wb0", "write", "sequential", 40), *of_each("wb0", "write", "random", 70)]
    mixed = [attested[0], attested[2], *DISKS[4:]]
    for figures, wanted in ((attested, 70), (mixed, (70 + 120) / 2)):
        assert rate(ceiling("disk", figures, structure_of(), asked("write"))) == wanted


def test_separate_journal_disks_limit_writes_if_they_are_slower() -> None:
    own = structure_of(
        disks={"store-1": (0,)}, journals={"store-1": (1,)}, stores=("store-1",), replicas=1
    )
    for journal, wanted in ((40, 40), (90, 60)):
        attested = [
            disk("store-1", name, "write", "sequential", value)
            for name, value in (("wb0", 60), ("wb1", journal))
        ]
        assert rate(ceiling("disk", attested, own, asked("write"))) == wanted


def test_only_disks_that_hold_objects_count_and_of_deployments_the_median() -> None:
    figures = [*of_each("wb0", "read", "random", 1000), *of_each("wb1", "read", "random", 10)]
    separate = structure_of(disks=dict.fromkeys(CEILING_STORES, (1,)))
    assert rate(ceiling("disk", figures, separate, asked("read"))) == 20
    again = [
        altered(one, repeat=repeat, value=one.value * by)
        for repeat, by in ((1, 2), (2, 7))
        for one in DISKS
    ]
    assert rate(ceiling("disk", [*DISKS, *again], structure_of(), asked("read"))) == 60


def test_the_nearest_measured_size_by_ratio_is_used_and_named() -> None:
    attested = [
        *of_each("wb0", "read", "random", 1, size=4096),
        *of_each("wb0", "read", "random", 50, size=4 * 2**20),
    ]
    words = "2 disks, random requests of 4 MiB, the nearest measured to 64 MB"
    for size, wanted in ((64 * MB, (100, words)), (16_000, 2)):
        found = ceiling("disk", attested, structure_of(), asked("read", size))
        assert wanted in (said(found), rate(found))


UNSIZED = [altered(one, operation=None, pick=None, request_bytes=None) for one in DISKS]
OSDS = [
    altered(disk(host, "0", "write", "sequential", 30), kind="osd", what="osd.0 write")
    for host in CEILING_STORES
]


@pytest.mark.parametrize(
    ("kind", "attested", "operation", "changes", "why"),
    [
        ("disk", DISKS[:4], "read", {}, "not measured on every disk that holds objects"),
        ("disk", UNSIZED, "read", {}, "not measured: --layers disk"),
        ("disk", [], "read", {}, "not measured: --layers disk"),
        ("disk", DISKS, "read", {"disks": {}}, "objects are kept in memory, not on disk"),
        ("osd", OSDS[:1], "write", {}, "not measured on every host of OSDs"),
        ("osd", OSDS, "read", {}, "the OSDs' own bench only writes"),
    ],
)
def test_what_is_not_measured_is_a_gap_with_its_reason_not_a_smaller_sum(
    kind: HardwareKind, attested: list[Attested], operation: str, changes: dict[str, Any], why: str
) -> None:
    assert said(ceiling(kind, attested, structure_of(**changes), asked(operation))) == why
    assert ceiling(kind, attested, None, asked(operation)).throughput_ops_s is None


def test_the_bound_is_wider_for_figures_without_a_limit() -> None:
    free = [altered(one, promised=None) for one in DISKS]
    for attested, bound in ((DISKS, BOUNDS["disk"]), (free, FREE_BOUND)):
        assert ceiling("disk", attested, structure_of(), asked("read")).bound == bound
    # The OSDs' bench is divided by the replicas.
    assert rate(ceiling("osd", OSDS, structure_of(), asked("write"))) == (30 + 30) / 2


def nics(**mb_s: float) -> dict[str, float]:
    return {name.replace("_", "-"): value * MB * 8 for name, value in mb_s.items()}


Links = tuple[list[Attested], dict[str, float]]


def links(client: float, gateway: float, store: float) -> Links:
    """All pairs as measured with a NIC of this many MB/s on each host, and the NICs."""
    limits = {"client-1": client, "gateway-1": gateway, **dict.fromkeys(CEILING_STORES, store)}
    ends = [("client-1", name) for name in ("gateway-1", *CEILING_STORES)]
    ends += [("gateway-1", name) for name in CEILING_STORES]
    attested = [
        found
        for one, other in ends
        for found in both_ways(one, other, min(limits[one], limits[other]))
    ]
    return attested, {name: value * MB * 8 for name, value in limits.items()}


def network(hosts: Links, operation: str, **changes: Any) -> tuple[float, str] | str:
    attested, limits = hosts
    query = replace(asked(operation), nics_bit_s=limits)
    return said(ceiling("network", attested, structure_of(**changes), query))


@pytest.mark.parametrize(
    ("hosts", "operation", "changes", "wanted"),
    [
        # A client receives at most what its link carries, whatever gateway and stores could send.
        (links(100, 500, 500), "read", {}, (100, "what client-1 receives")),
        (links(1000, 1000, 40), "read", {}, (80, "what store-1, store-2 send")),
        # The gateway sends 100 once; two stores can receive 2 x 100, twice what clients write.
        (links(1000, 100, 100), "write", {}, (100, "what gateway-1 receives")),
        (
            links(1000, 100, 100),
            "write",
            {"replicas": 3},
            (pytest.approx(200 / 3), "what store-1, store-2 receive, 3 times"),
        ),
        # A gateway that sends each replica sends that many times.
        (
            links(1000, 100, 100),
            "write",
            {"copied_by": "gateway"},
            (50, "what gateway-1 sends, 2 times"),
        ),
    ],
)
def test_the_network_is_its_narrowest_crossing(
    hosts: Links, operation: str, changes: dict[str, Any], wanted: tuple[float, str]
) -> None:
    assert network(hosts, operation, **changes) == wanted


def test_the_links_of_all_clients_add_up() -> None:
    attested, limits = links(100, 500, 500)
    attested += both_ways("client-2", "gateway-1", 60)
    both = replace(
        asked("read"), clients=("client-1", "client-2"), nics_bit_s={**limits, **nics(client_2=60)}
    )
    found = ceiling("network", attested, structure_of(), both)
    assert said(found) == (160, "what client-1, client-2 receive")
    unknown = replace(both, clients=("client-1", "client-3"))
    why = "not measured: what client-3 receives (--layers network)"
    assert said(ceiling("network", attested, structure_of(), unknown)) == why


def test_a_gateway_is_not_limited_to_the_links_of_slower_stores() -> None:
    attested, limits = links(1000, 60, 40)
    among_stores = [one for one in attested if "client-1" not in (one.sender, one.receiver)]
    client = both_ways("client-1", "gateway-1", 1000)
    # No store carried more than 40 to it, but its own NIC allows 60: less than both stores send.
    slow = [altered(one, value=30 * MB * 8, promised=40 * MB * 8) for one in client]
    assert network(([*among_stores, *slow], limits), "read")[0] == 60


def test_a_front_on_its_own_host_adds_a_crossing() -> None:
    attested, limits = links(1000, 500, 500)
    slow = [*both_ways("client-1", "balancer-1", 70), *both_ways("balancer-1", "gateway-1", 70)]
    hosts = ([*attested, *slow], {**limits, **nics(balancer_1=70)})
    assert network(hosts, "read", entrances=("balancer-1",))[0] == 70


def test_the_better_of_a_pair_measured_alone_and_among_others_counts() -> None:
    attested, limits = links(100, 500, 500)
    crowd = [altered(one, value=one.value / 4, what=f"{one.what}, all at once") for one in attested]
    assert network(([*attested, *crowd], limits), "read")[0] == 100


def test_an_unmeasured_link_makes_a_gap_that_names_it() -> None:
    attested, limits = links(100, 500, 500)
    lacking = [one for one in attested if "store-2" not in (one.sender, one.receiver)]
    why = "not measured: what store-2 sends (--layers network)"
    assert network((lacking, limits), "read") == why


def test_links_without_limits_are_as_fast_as_measured() -> None:
    free = [altered(one, promised=None) for one in links(100, 500, 500)[0]]
    found = ceiling("network", free, structure_of(), asked("read"))
    assert (rate(found), found.bound) == (100, FREE_BOUND)


def test_a_host_that_is_gateway_and_store_has_no_crossing_between_them() -> None:
    alone = ("all-1",)
    one_host = structure_of(
        entrances=alone, gateways=alone, stores=alone, disks={"all-1": (0,)}, replicas=1
    )
    known = replace(asked("write"), nics_bit_s=nics(client_1=80, all_1=80))
    assert rate(ceiling("network", both_ways("client-1", "all-1", 80), one_host, known)) == 80
