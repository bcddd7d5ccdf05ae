"""What programs beside the hosts used of their machine, from telemetry with known figures."""

from __future__ import annotations

import pytest

from made_rows import altered
from recorded_use import GATEWAY, recorded, used
from weighbridge.results.analysis.steps.bottleneck import limit_words
from weighbridge.results.analysis.steps.use import beside_words, step_use
from weighbridge.results.record.telemetry import HostLimits


def test_heavy_use_by_other_programs_is_reported() -> None:
    machine = HostLimits(host="this machine", tier="machine", cpus=2)
    for cpu_s, words in (
        (1.5, "other programs used 0.900 of this machine’s 2 CPUs"),
        (0.9, ""),
    ):
        use = step_use(
            recorded(
                used(machine, cpu_s=cpu_s), used(GATEWAY, cpu_s=0.6), hosts=(machine, GATEWAY)
            ),
            10.0,
        )
        assert beside_words([use.beside]) == words
        assert limit_words(use.resources) == "CPU of gateway-1 (100 % of 0.6)", (
            "the machine is no host"
        )
    unknown = step_use(
        recorded(used(machine, cpu_s=1.5), used(GATEWAY), hosts=(machine, GATEWAY)), 10.0
    )
    assert (unknown.beside, unknown.others) == (None, None)
    assert beside_words([unknown.beside]) == ""


def test_use_by_others_excludes_hosts_and_conductor() -> None:
    machine = HostLimits(host="this machine", tier="machine", cpus=2)
    sampled = used(machine, cpu_s=1.5, conductor_cpu_s=0.1, kernel_cpu_s=0.3)
    use = step_use(recorded(sampled, used(GATEWAY, cpu_s=0.6), hosts=(machine, GATEWAY)), 10.0)
    assert use.others == pytest.approx(0.25)
    assert beside_words([use.beside]) == "other programs used 0.500 of this machine’s 2 CPUs"
    assert step_use(recorded(used(GATEWAY, cpu_s=0.6)), 10.0).others is None


def test_seconds_without_samples_of_every_host_are_left_out_of_use_by_others() -> None:
    machine = HostLimits(host="this machine", tier="machine", cpus=2)
    complete = used(machine, cpu_s=1.8)
    # In second 3 the machine was idle: if it counted, the share would differ.
    complete[3] = altered(complete[3], cpu_s=0.0)
    host = used(GATEWAY, cpu_s=0.2)
    host[3] = altered(host[3], cpu_s=None)
    use = step_use(recorded(complete, host, hosts=(machine, GATEWAY)), 10.0)
    assert (use.others, use.lab) == (pytest.approx(0.8), True)
    lines = recorded(complete, host[:3] + host[4:], hosts=(machine, GATEWAY))
    assert step_use(lines, 10.0).others == pytest.approx(0.8)


def test_with_too_few_seconds_use_by_others_is_unknown() -> None:
    machine = HostLimits(host="this machine", tier="machine", cpus=2)
    host = [altered(one, cpu_s=None) if one.second < 6 else one for one in used(GATEWAY, cpu_s=0.2)]
    use = step_use(recorded(used(machine, cpu_s=1.8), host, hosts=(machine, GATEWAY)), 10.0)
    assert (use.others, use.lab) == (None, True)
    assert not step_use(recorded(used(GATEWAY, cpu_s=0.2)), 10.0).lab
