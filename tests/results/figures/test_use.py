"""What limited a step, from telemetry with known figures."""

from typing import Any

import pytest

from made_rows import altered, present
from recorded_use import CLIENT, GATEWAY, IDLE, STORE, recorded, used
from weighbridge.results.figures.use import (
    NOTHING_SEEN,
    Resource,
    StepUse,
    Throttled,
    aside_words,
    daemon_figures,
    daemon_words,
    limit_brief,
    limit_words,
    limited_by,
    over_repeats,
    quota_touches,
    step_use,
)
from weighbridge.results.run.telemetry import (
    DiskLimit,
    DiskSecond,
    HostLimits,
    HostSecond,
    ProbeSecond,
    Telemetry,
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


def test_throttling_is_recorded_for_each_host_with_a_quota_and_period_counters() -> None:
    limits = altered(GATEWAY, cpu_period_ms=10.0)
    free = HostLimits(host="store-9", tier="storage")
    seconds = used(limits, cpu_s=0.594, cpu_periods=100, throttled_periods=80, throttled_s=0.4)
    use = step_use(recorded(seconds, used(free, cpu_s=0.1), hosts=(limits, free)), 10.0)
    (throttled,) = use.throttled
    assert throttled.host == "gateway-1"
    assert (throttled.quota_cpus, throttled.period_ms) == (0.6, 10.0)
    assert (throttled.share_of_periods, throttled.stall_ms) == pytest.approx((0.8, 5.0))
    assert (throttled.throttled_periods, throttled.throttled_s) == pytest.approx((800, 4.0))
    touched = present(quota_touches(use, 90, 8.0))
    assert "throttled in 80 % of its periods of 10 ms, 5.00 ms each time" in touched
    assert quota_touches(use, 90, 11.0) is None
    words = limit_words(use.resources)
    assert words == "CPU of gateway-1 (99 % of 0.6, throttled in 80 % of periods of 10 ms)"
    use = step_use(recorded(used(GATEWAY, cpu_s=0.6)), 10.0)
    assert use.throttled == ()
    assert quota_touches(use, 100, 1.0) is None


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ({GATEWAY: 0.384}, "none above 80 %: gateway-1 CPU 64 %"),
        ({GATEWAY: 0.4795}, "none above 80 %: gateway-1 CPU 79 %"),
        ({GATEWAY: 0.5, STORE: 0.297}, "CPU of store-1 (99 % of 0.3), also CPU of gateway-1"),
        ({CLIENT: 0.45}, "CPU of client-1 (90 % of 0.5): the driver’s own limit"),
    ],
)
def test_the_most_used_resource_is_named_first_and_only_if_saturated_as_a_limit(
    hosts: dict[HostLimits, float], words: str
) -> None:
    seconds = [
        used(limits, cpu_s=cpu_s, memory_held_bytes=900 * 2**20) for limits, cpu_s in hosts.items()
    ]
    found = step_use(recorded(*seconds, hosts=tuple(hosts)), 10.0).resources
    assert limit_words(found) == words
    assert len(hosts) == 1 or limit_brief(found) == "store-1 CPU 99 % +1"


@pytest.mark.parametrize(
    ("what", "share", "limit"),
    [
        ({"written_bytes": 190_000_000, "writes": 10}, 0.95, "200 MB/s written"),
        ({"read_bytes": 190_000_000, "written_bytes": 50_000_000}, 0.95, "200 MB/s read"),
        ({"writes": 900}, 0.9, "1000 writes/s"),
        ({"busy_s": 0.85, "waited_s": 3.0}, 0.85, "the time, with a request in progress"),
        # The kernel counts ticks in which there was a request, however short it was: a disk is
        # never busier than its requests in progress.
        ({"busy_s": 1.0, "waited_s": 0.04, "writes": 200}, 0.2, "1000 writes/s"),
    ],
)
def test_disk_use_is_of_the_nearest_limit(what: dict[str, Any], share: float, limit: str) -> None:
    found = resources(used(STORE, disks=disk(**what)), hosts=(STORE,))["disk of store-1"]
    assert (found.share, found.limit) == (pytest.approx(share), limit)


def test_disks_of_one_host_are_numbered() -> None:
    two = HostLimits(host="store-1", tier="storage", disks=(DiskLimit(), DiskLimit()))
    both = (*disk(), *disk(busy_s=0.9, waited_s=2.0))
    assert limit_words(tuple(resources(used(two, disks=both), hosts=(two,)).values())) == (
        "disk 2 of store-1 (90 % of the time, with a request in progress)"
    )


def test_nic_use_is_that_of_the_busier_direction() -> None:
    found = resources(used(GATEWAY, sent_bytes=120_000_000, received_bytes=10_000_000))
    nic = found["network of gateway-1"]
    assert (nic.share, nic.limit) == (pytest.approx(0.96), "1 Gbit/s sent")


@pytest.mark.parametrize(("mib", "saturated"), [(950, False), (1000, True)])
def test_memory_is_saturated_only_if_almost_none_is_left(mib: int, saturated: bool) -> None:
    found = resources(used(GATEWAY, memory_held_bytes=mib * 2**20))
    assert found["memory of gateway-1"].saturated is saturated


def test_resources_without_limit_or_samples_have_no_figure() -> None:
    bare = HostLimits(host="store-1", tier="storage")
    known = used(bare, cpu_s=0.9, sent_bytes=10**9, received_bytes=0, memory_held_bytes=5)
    assert resources(known, hosts=(bare,)) == resources(used(GATEWAY)) == {}
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
    cut = altered(recorded(used(GATEWAY, cpu_s=0.5)), tail=None)
    assert step_use(cut, 10.0).gaps == ("its recording was cut short",)


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
    read = disk(read_bytes=500)
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
        ("haproxy.a", {"backend.qcur": 3.0, "frontend.scur": 16.0}, "3.00 requests wait in"),
        ("haproxy.a", {"backend.qcur": 0.5}, ""),
        ("apache.a", {"workers_busy": 150.0, "workers_idle": 0.0}, "has no idle worker (150 busy)"),
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
    assert said in aside_words([use])
    assert bool(aside_words([use])) == bool(said)
    quiet = StepUse(queues={probe: ""})
    assert aside_words([use, quiet]) == "", "in half of the repeats is not in most"
    assert aside_words([StepUse()]) == ""


def of(what: Any, tier: Any, share: float) -> Resource:
    return Resource(what=what, host=f"{tier}-{what}", tier=tier, share=share, limit="1")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([("CPU", "gateway", 0.99), ("disk", "storage", 0.5)], "the gateway’s CPU"),
        ([("disk", "storage", 0.9), ("disk", "storage", 0.95)], "the stores’ disks"),
        (
            [("CPU", "gateway", 0.85), ("disk", "storage", 0.95)],
            "the stores’ disks and the gateway’s CPU",
        ),
        ([("network", "storage", 0.81)], "the network"),
        ([("CPU", "client", 0.9)], "the load generator"),
        ([("network", "client", 0.9)], "the load generator"),
        ([("memory", "storage", 0.94), ("CPU", "gateway", 0.79)], NOTHING_SEEN),
    ],
)
def test_what_limited_a_step_is_named_by_kind_the_most_used_first(
    found: list[tuple[str, str, float]], words: str
) -> None:
    assert limited_by([of(*one) for one in found]) == words


def test_a_ceiling_that_was_reached_limits_even_if_no_resource_looks_full() -> None:
    idle = [of("CPU", "gateway", 0.5)]
    assert limited_by(idle, ("disk",)) == "the stores’ disks"
    assert limited_by([of("disk", "storage", 0.9)], ("disk", "network")) == (
        "the stores’ disks and the network"
    )


MACHINE = HostLimits(host="this machine", tier="machine", cpus=2)


def test_heavy_use_by_other_programs_is_reported() -> None:
    hosts = (MACHINE, GATEWAY)
    for cpu_s, words in ((1.5, "other programs used 0.900 of this machine’s 2 CPUs"), (0.9, "")):
        seconds = (used(MACHINE, cpu_s=cpu_s), used(GATEWAY, cpu_s=0.6))
        use = step_use(recorded(*seconds, hosts=hosts), 10.0)
        assert aside_words([use]) == words
        assert limit_words(use.resources) == "CPU of gateway-1 (100 % of 0.6)", "of hosts alone"
    unknown = step_use(recorded(used(MACHINE, cpu_s=1.5), used(GATEWAY), hosts=hosts), 10.0)
    assert (unknown.others, aside_words([unknown])) == (None, "")


def test_use_by_others_excludes_hosts_and_conductor() -> None:
    sampled = used(MACHINE, cpu_s=1.5, conductor_cpu_s=0.1, kernel_cpu_s=0.3)
    use = step_use(recorded(sampled, used(GATEWAY, cpu_s=0.6), hosts=(MACHINE, GATEWAY)), 10.0)
    assert use.others == pytest.approx(0.25)
    assert aside_words([use]) == "other programs used 0.500 of this machine’s 2 CPUs"
    assert step_use(recorded(used(GATEWAY, cpu_s=0.6)), 10.0).others is None


def test_seconds_without_samples_of_every_host_are_left_out_of_use_by_others() -> None:
    complete = used(MACHINE, cpu_s=1.8)
    # In second 3 the machine was idle: if it counted, the share would differ.
    complete[3] = altered(complete[3], cpu_s=0.0)
    host = used(GATEWAY, cpu_s=0.2)
    host[3] = altered(host[3], cpu_s=None)
    use = step_use(recorded(complete, host, hosts=(MACHINE, GATEWAY)), 10.0)
    assert (use.others, use.lab) == (pytest.approx(0.8), True)
    lines = recorded(complete, host[:3] + host[4:], hosts=(MACHINE, GATEWAY))
    assert step_use(lines, 10.0).others == pytest.approx(0.8)


def test_with_too_few_seconds_use_by_others_is_unknown() -> None:
    host = [altered(one, cpu_s=None) if one.second < 6 else one for one in used(GATEWAY, cpu_s=0.2)]
    use = step_use(recorded(used(MACHINE, cpu_s=1.8), host, hosts=(MACHINE, GATEWAY)), 10.0)
    assert (use.others, use.lab) == (None, True)
    assert not step_use(recorded(used(GATEWAY, cpu_s=0.2)), 10.0).lab


def throttled(
    *,
    periods: int = 1000,
    stops: int = 960,
    stopped_s: float | None = 5.0,
    period_ms: float | None = 10.0,
) -> Throttled:
    return Throttled(
        host="gateway-1",
        quota_cpus=0.6,
        period_ms=period_ms,
        periods=periods,
        throttled_periods=stops,
        throttled_s=stopped_s,
        window_s=10.0,
    )


LONG = throttled(periods=100, stops=80, stopped_s=3.6, period_ms=100.0)
"""Stopped for 45 ms in 80 of 100 periods: 36 % of the time."""


@pytest.mark.parametrize(
    ("percent", "latency_ms", "touched"),
    [
        (90, 63.0, True),  # what lies beyond is stopped
        (90, 4.0, True),  # what lies before was spared
        (99, 51.0, True),
        (50, 2.0, False),  # it ran for more than half of the time
        (90, 200.0, False),  # so slow that a stop is little of it
        (100, 70.0, True),
        (100, 300.0, False),
    ],
)
def test_frequent_and_long_stops_set_a_percentile(
    percent: float, latency_ms: float, touched: bool
) -> None:
    assert LONG.touches(percent, latency_ms) is touched


def test_short_or_rare_stops_do_not_set_a_much_longer_latency_or_another_percentile() -> None:
    assert throttled().stall_ms == pytest.approx(5.2, abs=0.01)
    assert not throttled().touches(90, 35.0)
    assert throttled().touches(90, 9.0)
    few = throttled(stops=10, stopped_s=0.4, period_ms=100.0)
    assert not few.touches(90, 30.0)
    assert few.touches(99, 30.0)


def test_cpus_stopped_at_once_wait_at_most_one_period() -> None:
    assert throttled(stops=500, stopped_s=9.0).stall_ms == 10.0
    assert throttled(stops=500, stopped_s=9.0, period_ms=None).stall_ms == pytest.approx(18.0)


def test_unknown_stops_set_no_latency() -> None:
    unknown = throttled(stopped_s=None)
    assert unknown.stall_ms is None
    assert not unknown.touches(100, 0.1)
    assert not throttled(stops=0, stopped_s=0.0).touches(100, 0.1)
    uncounted = used(GATEWAY, cpu_s=0.6, throttled_s=1.0)
    assert step_use(recorded(uncounted), 10.0).throttled == ()


def test_the_host_stopped_longest_is_named() -> None:
    use = StepUse(throttled=(throttled(), LONG))
    assert quota_touches(use, 90, 8.0) == LONG.words
    assert quota_touches(use, 50, 300.0) is None
    assert "gateway-1 (limit 0.6 CPU) was throttled in 80 % of its periods" in LONG.words


def telemetry(*lines: tuple[str, float, dict[str, float]]) -> Telemetry:
    made = [
        ProbeSecond(
            second=int(at_s), at_s=at_s, phase="measure", host="store-1", probe=probe, values=values
        )
        for probe, at_s, values in lines
    ]
    return recorded(hosts=(), probes=made)


def by_label(found: Telemetry, window_s: float = 10.0) -> dict[str, float]:
    return {label: value for (_, label), value in daemon_figures(found, window_s).items()}


def test_counters_are_shown_by_their_increase_over_all_daemons_of_a_kind() -> None:
    found = telemetry(
        ("osd.0", 0.5, {"op": 1000, "op_latency_sum_s": 5.0, "op_latency_count": 1000}),
        ("osd.1", 0.6, {"op": 0, "op_latency_sum_s": 0.0, "op_latency_count": 0}),
        ("osd.0", 4.5, {"op": 1400, "op_latency_sum_s": 6.0, "op_latency_count": 1400}),
        ("osd.1", 4.6, {"op": 400, "op_latency_sum_s": 3.0, "op_latency_count": 400}),
    )
    assert by_label(found) == {
        "{} op/s": pytest.approx(200),
        "an operation takes {} ms": pytest.approx(5.0),
    }


def test_gauges_are_means_and_shares_cover_only_the_window() -> None:
    found = telemetry(
        ("radosgw.gateway-1", 1.0, {"qactive": 4, "cache_hit": 100, "cache_miss": 100}),
        ("radosgw.gateway-1", 2.0, {"qactive": 8, "cache_hit": 190, "cache_miss": 110}),
    )
    assert by_label(found) == {"{} requests in work": 6.0, "{} % of metadata from its cache": 90.0}


UNCHANGED = {"get_hits": 5.0, "get_misses": 1.0}


@pytest.mark.parametrize(
    "lines",
    [
        [("osd.0", 1.0, {"op": 5.0})],
        [("osd.0", 1.0, {"op": 5.0}), ("osd.0", 12.0, {"op": 50.0})],  # outside the window
        [("osd.0", 1.0, {"op": 500.0}), ("osd.0", 2.0, {"op": 3.0})],  # it began again
        [("memcached.g", 1.0, UNCHANGED), ("memcached.g", 2.0, UNCHANGED)],
        [
            (daemon, at_s, {counter: at_s * 10})  # one of two daemons does not have it
            for daemon, counter in (("osd.0", "op"), ("osd.1", "other"))
            for at_s in (1.0, 2.0)
        ],
    ],
)
def test_what_is_unknown_gives_no_figure(lines: list[tuple[str, float, dict[str, float]]]) -> None:
    assert by_label(telemetry(*lines)) == {}


def test_words_over_repeats_have_the_medians() -> None:
    repeats = [
        telemetry(*[("osd.0", at, {"op": at * rate}) for at in (1.0, 2.0)]) for rate in (10, 30, 20)
    ]
    assert daemon_words([step_use(one, 5.0) for one in repeats]) == "osd: 20.0 op/s"
    assert daemon_words([]) == ""
