from __future__ import annotations

from typing import Any

import pytest

from made_rows import altered
from weighbridge.common.structure import Structure
from weighbridge.results.analysis.layers.staircase import Ceiling, CeilingGap, CeilingQuery, ceiling
from weighbridge.results.analysis.sameness import BOUNDS, FREE_BOUND
from weighbridge.results.record.telemetry import Attested

STORES = ("store-1", "store-2")
MB = 10**6
PLACE = {"layout": "x", "repeat": 0}


def structure(**changes: Any) -> Structure:
    known: dict[str, Any] = {
        "entrances": ("gateway-1",),
        "gateways": ("gateway-1",),
        "stores": STORES,
        "disks": dict.fromkeys(STORES, (0,)),
        "replicas": 2,
        "copied_by": "store",
    }
    return Structure.model_validate({**known, **changes})


def asked(operation: str = "read", size: float = 64_000, *, in_order: bool = False) -> CeilingQuery:
    return CeilingQuery.model_validate(
        {"operation": operation, "size_bytes": size, "in_order": in_order, "clients": ("client-1",)}
    )


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


def rate(found: Ceiling | CeilingGap) -> float:
    assert isinstance(found, Ceiling), found
    return found.bytes_s / MB


def test_reads_come_from_all_disks_and_writes_go_to_as_many_as_there_are_replicas() -> None:
    def of(query: CeilingQuery, **changes: Any) -> float:
        return rate(ceiling("disk", DISKS, structure(**changes), query))

    assert of(asked("read")) == 10 + 20
    assert of(asked("read", in_order=True)) == 100 + 200
    assert of(asked("write")) == (60 + 120) / 2
    assert of(asked("write"), replicas=3) == (60 + 120) / 3


def test_for_writes_the_better_of_sequential_and_random_requests_counts() -> None:
    attested = [
        disk(host, "wb0", "write", pick, value)
        for host in STORES
        for pick, value in (("sequential", 40), ("random", 70))
    ]
    for figures, wanted in ((attested, 70), (attested[:2] + DISKS[4:], (70 + 120) / 2)):
        assert rate(ceiling("disk", figures, structure(), asked("write"))) == wanted


def test_a_journal_on_the_same_disk_halves_writes_and_not_reads() -> None:
    twice = ceiling("disk", DISKS, structure(writes=2), asked("write"))
    assert rate(twice) == (60 + 120) / 2 / 2
    assert isinstance(twice, Ceiling)
    assert twice.how.endswith("by 2 replicas, each written twice (journal and data)")
    assert rate(ceiling("disk", DISKS, structure(writes=2), asked("read"))) == 30


def test_separate_journal_disks_limit_writes_if_they_are_slower() -> None:
    own = structure(
        disks={"store-1": (0,)}, journals={"store-1": (1,)}, stores=("store-1",), replicas=1
    )
    for journal, wanted in ((40, 40), (90, 60)):
        attested = [
            disk("store-1", name, "write", "sequential", value)
            for name, value in (("wb0", 60), ("wb1", journal))
        ]
        assert rate(ceiling("disk", attested, own, asked("write"))) == wanted


def test_only_disks_that_hold_objects_count() -> None:
    databases = [disk(host, "wb0", "read", "random", 1000) for host in STORES]
    objects = [disk(host, "wb1", "read", "random", 10) for host in STORES]
    separate = structure(disks=dict.fromkeys(STORES, (1,)))
    assert rate(ceiling("disk", [*databases, *objects], separate, asked("read"))) == 20


def test_the_nearest_measured_size_by_ratio_is_used_and_named() -> None:
    sizes = ((4096, 1), (4 * 2**20, 50))
    attested = [
        disk(host, "wb0", "read", "random", value, size=size)
        for host in STORES
        for size, value in sizes
    ]
    found = ceiling("disk", attested, structure(), asked("read", 64 * MB))
    assert rate(found) == 100
    assert isinstance(found, Ceiling)
    assert found.how == "2 disks, random requests of 4 MiB, the nearest measured to 64 MB"
    assert rate(ceiling("disk", attested, structure(), asked("read", 16_000))) == 2


def test_the_median_over_deployments_counts() -> None:
    again = [
        altered(one, repeat=repeat, value=one.value * by)
        for repeat, by in ((1, 2), (2, 7))
        for one in DISKS
    ]
    assert rate(ceiling("disk", [*DISKS, *again], structure(), asked("read"))) == 60


@pytest.mark.parametrize(
    ("attested", "changes", "why"),
    [
        ([one for one in DISKS if one.host == "store-1"], {}, "not measured on every disk"),
        (
            [altered(one, operation=None, pick=None, request_bytes=None) for one in DISKS],
            {},
            "not measured: --layers disk",
        ),
        ([], {}, "not measured: --layers disk"),
        (DISKS, {"disks": {}}, "objects are kept in memory"),
    ],
)
def test_an_unmeasured_disk_makes_a_gap_with_its_reason_not_a_smaller_sum(
    attested: list[Attested], changes: dict[str, Any], why: str
) -> None:
    found = ceiling("disk", attested, structure(**changes), asked("read"))
    assert isinstance(found, CeilingGap)
    assert found.why.startswith(why)


def test_an_unknown_gateway_has_no_ceilings() -> None:
    for kind in ("disk", "osd", "network"):
        assert isinstance(ceiling(kind, DISKS, None, asked("read")), CeilingGap)


def test_the_bound_is_wider_for_figures_without_a_limit() -> None:
    free = [altered(one, promised=None) for one in DISKS]
    for attested, bound in ((DISKS, BOUNDS["disk"]), (free, FREE_BOUND)):
        found = ceiling("disk", attested, structure(), asked("read"))
        assert isinstance(found, Ceiling)
        assert found.bound == bound


def test_the_osds_bench_is_divided_by_the_replicas() -> None:
    attested = [
        altered(
            disk(host, f"{number}", "write", "sequential", 30),
            kind="osd",
            what=f"osd.{number} write",
        )
        for number, host in enumerate(STORES)
    ]
    assert rate(ceiling("osd", attested, structure(), asked("write"))) == (30 + 30) / 2
    assert ceiling("osd", attested[:1], structure(), asked("write")) == CeilingGap(
        why="not measured on every host of OSDs"
    )
    assert isinstance(ceiling("osd", attested, structure(), asked("read")), CeilingGap)


def nics(**mb_s: float) -> dict[str, float]:
    return {name.replace("_", "-"): value * MB * 8 for name, value in mb_s.items()}


def links(client: float, gateway: float, store: float) -> tuple[list[Attested], dict[str, float]]:
    """All pairs as measured with a NIC of this many MB/s on each host, and the NICs."""
    limits = {"client-1": client, "gateway-1": gateway, **dict.fromkeys(STORES, store)}
    ends = [("client-1", name) for name in ("gateway-1", *STORES)] + [
        ("gateway-1", name) for name in STORES
    ]
    attested = [
        found
        for one, other in ends
        for found in both_ways(one, other, min(limits[one], limits[other]))
    ]
    return attested, {name: value * MB * 8 for name, value in limits.items()}


def network(
    hosts: tuple[list[Attested], dict[str, float]], operation: str, **changes: Any
) -> Ceiling | CeilingGap:
    attested, limits = hosts
    return ceiling(
        "network", attested, structure(**changes), altered(asked(operation), nics_bit_s=limits)
    )


def test_the_network_is_its_narrowest_crossing() -> None:
    # One client receives at most what its link carries, whatever gateway and stores could send.
    assert rate(network(links(100, 500, 500), "read")) == 100
    # Two stores send 40 each.
    assert rate(network(links(1000, 1000, 40), "read")) == 80


def test_the_links_of_all_clients_add_up() -> None:
    attested, limits = links(100, 500, 500)
    attested += both_ways("client-2", "gateway-1", 60)
    both = altered(
        asked("read"), clients=("client-1", "client-2"), nics_bit_s={**limits, **nics(client_2=60)}
    )
    found = ceiling("network", attested, structure(), both)
    assert rate(found) == 160
    assert isinstance(found, Ceiling)
    assert found.how == "what client-1, client-2 receive"
    unknown = altered(both, clients=("client-1", "client-3"))
    assert ceiling("network", attested, structure(), unknown) == CeilingGap(
        why="not measured: what client-3 receives (--layers network)"
    )


def test_a_gateway_is_not_limited_to_the_links_of_slower_stores() -> None:
    attested, limits = links(1000, 60, 40)
    among_stores = [one for one in attested if "client-1" not in (one.sender, one.receiver)]
    client = both_ways("client-1", "gateway-1", 1000)
    # No store carried more than 40 to it, but its own NIC allows 60: less than both stores send.
    slow = [altered(one, value=30 * MB * 8, promised=40 * MB * 8) for one in client]
    assert rate(network(([*among_stores, *slow], limits), "read")) == 60


def test_a_gateway_that_sends_each_replica_sends_that_many_times() -> None:
    found = network(links(1000, 100, 100), "write", copied_by="gateway")
    assert rate(found) == 50
    assert isinstance(found, Ceiling)
    assert found.how == "what gateway-1 sends, 2 times"


def test_stores_that_forward_replicas_receive_them_all_but_not_from_the_gateway() -> None:
    # The gateway sends 100 once; two stores can receive 2 x 100, twice what clients write.
    assert rate(network(links(1000, 100, 100), "write")) == 100
    assert rate(network(links(1000, 100, 100), "write", replicas=3)) == pytest.approx(200 / 3)


def test_a_front_on_its_own_host_adds_a_crossing() -> None:
    attested, limits = links(1000, 500, 500)
    slow = [*both_ways("client-1", "balancer-1", 70), *both_ways("balancer-1", "gateway-1", 70)]
    hosts = ([*attested, *slow], {**limits, **nics(balancer_1=70)})
    assert rate(network(hosts, "read", entrances=("balancer-1",))) == 70


def test_the_better_of_a_pair_measured_alone_and_among_others_counts() -> None:
    attested, limits = links(100, 500, 500)
    crowd = [altered(one, value=one.value / 4, what=f"{one.what}, all at once") for one in attested]
    assert rate(network(([*attested, *crowd], limits), "read")) == 100


def test_an_unmeasured_link_makes_a_gap_that_names_it() -> None:
    attested, limits = links(100, 500, 500)
    lacking = [one for one in attested if "store-2" not in (one.sender, one.receiver)]
    assert network((lacking, limits), "read") == CeilingGap(
        why="not measured: what store-2 sends (--layers network)"
    )


def test_links_without_limits_are_as_fast_as_measured() -> None:
    attested, _ = links(100, 500, 500)
    free = [altered(one, promised=None) for one in attested]
    found = network((free, {}), "read")
    assert rate(found) == 100
    assert isinstance(found, Ceiling)
    assert found.bound == FREE_BOUND


def test_a_host_that_is_gateway_and_store_has_no_crossing_between_them() -> None:
    one_host = structure(
        entrances=("all-1",),
        gateways=("all-1",),
        stores=("all-1",),
        disks={"all-1": (0,)},
        replicas=1,
    )
    known = altered(asked("write"), nics_bit_s=nics(client_1=80, all_1=80))
    assert rate(ceiling("network", both_ways("client-1", "all-1", 80), one_host, known)) == 80
