"""What limited a step, from telemetry with known figures."""

from __future__ import annotations

from typing import Any

import pytest

from made_rows import altered
from recorded_use import CLIENT, GATEWAY, IDLE, STORE, recorded, used
from weighbridge.results.analysis.steps.bottleneck import limit_brief, limit_words, limited_by
from weighbridge.results.analysis.steps.use import (
    Queue,
    Resource,
    over_repeats,
    queue_words,
    quota_touches,
    step_use,
)
from weighbridge.results.record.telemetry import (
    DiskLimit,
    DiskSecond,
    HostLimits,
    HostSecond,
    ProbeSecond,
)


def resources(
    *seconds: list[HostSecond], hosts: tuple[HostLimits, ...] = (GATEWAY,)
) -> dict[str, Resource]:
    return {one.name: one for one in step_use(recorded(*seconds, hosts=hosts), 10.0).resources}


def disk(**what: Any) -> tuple[DiskSecond, ...]:
    return (DiskSecond.model_validate({**IDLE, **what}),)


def test_cpu_use_is_relative_to_the_quota_and_named_if_it_is_the_bottleneck() -> None:
    found = resources(used(GATEWAY, cpu_s=0.582, cpu_periods=10, throttled_periods=9))
    cpu = found["CPU of gateway-1"]
    assert cpu.share == pytest.approx(0.97)
    assert limit_words([cpu]) == "CPU of gateway-1 (97 % of 0.6, throttled in 90 % of its periods)"
    assert limit_brief([cpu]) == "gateway-1 CPU 97 %"


def test_without_a_quota_cpu_use_is_relative_to_the_cpus_of_a_machine_of_the_hosts_own() -> None:
    host = HostLimits(host="gateway-1", tier="gateway", cores=40)
    (cpu,) = resources(used(host, cpu_s=39.2), hosts=(host,)).values()
    assert cpu.words == "CPU of gateway-1 (98 % of 40)"
    assert cpu.saturated
    shared = HostLimits(host="gateway-1", tier="gateway")
    assert resources(used(shared, cpu_s=39.2), hosts=(shared,)) == {}


@pytest.mark.parametrize(
    ("cpu_s", "throttled_periods", "saturated"),
    [(0.31, 5, True), (0.31, 4, False), (0.29, 10, False)],
)
def test_a_cpu_throttled_in_half_of_its_periods_is_saturated_if_half_of_its_quota_is_used(
    cpu_s: float, throttled_periods: int, saturated: bool
) -> None:
    found = resources(
        used(GATEWAY, cpu_s=cpu_s, cpu_periods=10, throttled_periods=throttled_periods)
    )
    assert found["CPU of gateway-1"].saturated == saturated


def test_the_sentence_of_a_limit_names_the_period_if_known() -> None:
    limits = altered(GATEWAY, cpu_period_ms=10.0)
    found = resources(
        used(limits, cpu_s=0.594, cpu_periods=100, throttled_periods=73), hosts=(limits,)
    )
    assert (
        limit_words([found["CPU of gateway-1"]])
        == "CPU of gateway-1 (99 % of 0.6, throttled in 73 % of periods of 10 ms)"
    )


def test_throttling_is_recorded_for_each_host_with_a_quota() -> None:
    limits = altered(GATEWAY, cpu_period_ms=10.0)
    free = HostLimits(host="store-9", tier="storage")
    seconds = used(limits, cpu_s=0.5, cpu_periods=100, throttled_periods=80, throttled_s=0.4)
    use = step_use(recorded(seconds, used(free, cpu_s=0.1), hosts=(limits, free)), 10.0)
    (throttled,) = use.throttled
    assert throttled.host == "gateway-1"
    assert (throttled.tier, throttled.quota_cpus, throttled.period_ms) == ("gateway", 0.6, 10.0)
    assert (
        throttled.share_of_periods,
        throttled.share_of_time,
        throttled.stall_ms,
    ) == pytest.approx((0.8, 0.4, 5.0))
    assert throttled.stalls == 800
    assert quota_touches(use, 90, 8.0) == (
        "gateway-1 (limit 0.6 CPU) was throttled in 80 % of its periods of 10 ms, 5.00 ms each time"
    )
    assert quota_touches(use, 90, 11.0) is None


def test_a_host_without_period_counters_has_no_throttling() -> None:
    use = step_use(recorded(used(GATEWAY, cpu_s=0.6)), 10.0)
    assert use.throttled == ()
    assert quota_touches(use, 100, 1.0) is None


def test_without_saturation_the_most_used_is_named_but_not_as_bottleneck() -> None:
    use = step_use(recorded(used(GATEWAY, cpu_s=0.384, memory_held_bytes=900 * 2**20)), 10.0)
    assert limit_words(use.resources) == "none above 80 %: gateway-1 CPU 64 %"
    just_below = step_use(recorded(used(GATEWAY, cpu_s=0.4795)), 10.0)
    assert limit_words(just_below.resources) == "none above 80 %: gateway-1 CPU 79 %"


def test_the_most_used_resource_is_first_and_others_are_named() -> None:
    use = step_use(
        recorded(used(GATEWAY, cpu_s=0.5), used(STORE, cpu_s=0.297), hosts=(GATEWAY, STORE)), 10.0
    )
    assert limit_words(use.resources) == "CPU of store-1 (99 % of 0.3), also CPU of gateway-1"
    assert limit_brief(use.resources) == "store-1 CPU 99 % +1"


def test_the_clients_cpu_is_called_the_drivers_own_limit() -> None:
    use = step_use(recorded(used(CLIENT, cpu_s=0.45), hosts=(CLIENT,)), 10.0)
    assert limit_words(use.resources) == "CPU of client-1 (90 % of 0.5): the driver’s own limit"


@pytest.mark.parametrize(
    ("what", "share", "limit"),
    [
        ({"written_bytes": 190_000_000, "writes": 10}, 0.95, "200 MB/s written"),
        ({"read_bytes": 190_000_000, "written_bytes": 50_000_000}, 0.95, "200 MB/s read"),
        ({"writes": 900}, 0.9, "1000 writes/s"),
        ({"busy_s": 0.85, "waited_s": 3.0}, 0.85, "the time, with a request in progress"),
    ],
)
def test_disk_use_is_relative_to_the_nearest_limit(
    what: dict[str, Any], share: float, limit: str
) -> None:
    found = resources(used(STORE, disks=disk(**what)), hosts=(STORE,))["disk of store-1"]
    assert (found.share, found.limit) == (pytest.approx(share), limit)


def test_a_disk_is_never_busier_than_its_requests_in_progress() -> None:
    """The kernel counts ticks in which there was a request, however short it was."""
    found = resources(
        used(STORE, disks=disk(busy_s=1.0, waited_s=0.04, writes=200)), hosts=(STORE,)
    )["disk of store-1"]
    assert found.share == pytest.approx(0.2)  # of the requests a second, not of the time


def test_disks_of_one_host_are_numbered() -> None:
    two = HostLimits(host="store-1", tier="storage", disks=(DiskLimit(), DiskLimit()))
    both = (
        DiskSecond.model_validate(IDLE),
        DiskSecond.model_validate({**IDLE, "busy_s": 0.9, "waited_s": 2.0}),
    )
    assert limit_words(tuple(resources(used(two, disks=both), hosts=(two,)).values())) == (
        "disk 2 of store-1 (90 % of the time, with a request in progress)"
    )


def test_nic_use_is_that_of_the_busier_direction() -> None:
    found = resources(used(GATEWAY, sent_bytes=120_000_000, received_bytes=10_000_000))[
        "network of gateway-1"
    ]
    assert (found.share, found.limit) == (pytest.approx(0.96), "1 Gbit/s sent")


def test_memory_is_saturated_only_if_almost_none_is_left() -> None:
    assert not resources(used(GATEWAY, memory_held_bytes=950 * 2**20))[
        "memory of gateway-1"
    ].saturated
    assert resources(used(GATEWAY, memory_held_bytes=1000 * 2**20))["memory of gateway-1"].saturated


def test_resources_without_limit_or_samples_have_no_figure() -> None:
    bare = HostLimits(host="store-1", tier="storage")
    assert (
        resources(
            used(bare, cpu_s=0.9, sent_bytes=10**9, received_bytes=0, memory_held_bytes=5),
            hosts=(bare,),
        )
        == {}
    )
    assert resources(used(GATEWAY)) == {}
    assert limit_words(()) is None
    assert limit_brief(()) is None
    assert limited_by(()) is None


def test_seconds_outside_the_window_do_not_count() -> None:
    before = [altered(one, second=-1, at_s=-0.5, cpu_s=9.0) for one in used(GATEWAY, 1)]
    after = [
        altered(one, second=10, at_s=11.0, phase="drain", cpu_s=9.0) for one in used(GATEWAY, 1)
    ]
    use = step_use(recorded(before, used(GATEWAY, cpu_s=0.3), after), 10.0)
    assert use.gateway_cpu_s == pytest.approx(3.0)


def test_cpu_seconds_cover_the_window_and_are_unknown_if_less_than_half_was_sampled() -> None:
    assert step_use(recorded(used(GATEWAY, 6, cpu_s=0.5)), 10.0).gateway_cpu_s == pytest.approx(5.0)
    little = step_use(recorded(used(GATEWAY, 4, cpu_s=0.5)), 10.0)
    assert (little.gateway_cpu_s, little.resources) == (None, ())
    assert little.gaps == ("gateway-1: sampled in less than half of the window",)


def test_cpu_seconds_of_a_tier_are_unknown_if_those_of_one_host_are() -> None:
    other = altered(STORE, host="store-2")
    both = recorded(
        used(STORE, cpu_s=0.1),
        used(other, cpu_s=0.2),
        used(CLIENT, cpu_s=0.4),
        hosts=(CLIENT, STORE, other),
    )
    assert step_use(both, 10.0).storage_cpu_s == pytest.approx(3.0)
    assert step_use(both, 10.0).gateway_cpu_s is None
    one = recorded(used(STORE, cpu_s=0.1), used(other), hosts=(STORE, other))
    assert step_use(one, 10.0).storage_cpu_s is None


def test_what_disks_of_all_stores_read_covers_the_window_and_is_unknown_if_one_is() -> None:
    other = altered(STORE, host="store-2")
    read = (DiskSecond.model_validate({**IDLE, "read_bytes": 500}),)
    two = (*read, *read)
    both = recorded(used(STORE, 6, disks=read), used(other, disks=two), hosts=(STORE, other))
    assert step_use(both, 10.0).disk_read_bytes == pytest.approx(15_000)
    for blind in (None, ()):
        unknown = recorded(used(STORE, disks=read), used(other, disks=blind), hosts=(STORE, other))
        assert step_use(unknown, 10.0).disk_read_bytes is None
    seldom = recorded(used(STORE, disks=read), used(other, 4, disks=read), hosts=(STORE, other))
    assert step_use(seldom, 10.0).disk_read_bytes is None
    gateway = recorded(used(GATEWAY, disks=read), hosts=(GATEWAY,))
    assert step_use(gateway, 10.0).disk_read_bytes is None, "not a store"


def test_if_one_host_has_both_tiers_neither_is_known() -> None:
    shared = HostLimits(host="all-1", tier="shared", cpus=1)
    use = step_use(
        recorded(used(shared, cpu_s=0.9), used(GATEWAY, cpu_s=0.1), hosts=(shared, GATEWAY)), 10.0
    )
    assert (use.gateway_cpu_s, use.storage_cpu_s) == (None, None)
    assert limit_words(use.resources) == "CPU of all-1 (90 % of 1)"


def test_a_recording_that_was_cut_short_says_so() -> None:
    complete = recorded(used(GATEWAY, cpu_s=0.5))
    assert step_use(altered(complete, tail=None), 10.0).gaps == ("its recording was cut short",)


def test_over_repeats_shares_are_medians() -> None:
    uses = [step_use(recorded(used(GATEWAY, cpu_s=cpu_s)), 10.0) for cpu_s in (0.12, 0.54, 0.6)]
    (cpu,) = over_repeats(uses)
    assert cpu.share == pytest.approx(0.9)
    assert over_repeats([]) == ()


@pytest.mark.parametrize(
    ("probe", "values", "said"),
    [
        ("radosgw.a", {"qlen": 28.0, "qactive": 16.0}, "12.0 requests wait in radosgw.a"),
        ("radosgw.a", {"qlen": 16.0, "qactive": 16.0}, ""),
        ("radosgw.a", {"qlen": 16.0}, ""),  # alone it counts those that are worked on as well
        (
            "haproxy.a",
            {"backend.qcur": 3.0, "frontend.scur": 16.0},
            "3.00 requests wait in haproxy.a",
        ),
        ("haproxy.a", {"backend.qcur": 0.5}, ""),
        (
            "apache.a",
            {"workers_busy": 150.0, "workers_idle": 0.0},
            "apache.a has no idle worker (150 busy)",
        ),
        ("apache.a", {"workers_busy": 16.0, "workers_idle": 84.0}, ""),
        ("osd.0", {"op": 900.0}, ""),
        ("unknown.a", {"qlen": 28.0, "qactive": 16.0}, ""),
    ],
)
def test_waiting_requests_are_reported_and_those_in_progress_are_not(
    probe: str, values: dict[str, float], said: str
) -> None:
    lines = [
        ProbeSecond(
            second=at, at_s=at + 0.5, phase="measure", host="gateway-1", probe=probe, values=values
        )
        for at in range(3)
    ]
    use = step_use(recorded(used(GATEWAY, cpu_s=0.1), probes=lines), 10.0)
    assert queue_words([use.queues]) == said
    assert queue_words([use.queues, (Queue(probe=probe, waiting=0.0),)]) == "", (
        "in half of the repeats is not in most"
    )
    assert queue_words([()]) == ""
