"""Guard facts, each of them; and pairs of layouts of two runs."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.common.errors import UsageError
from weighbridge.results.analysis.across_runs.guard import (
    GUARD_FACTS,
    ComparedRun,
    differences_csv,
    guard,
    planned_differences,
    read_compared_run,
)
from weighbridge.results.analysis.across_runs.runs_comparison import RUNS, across_runs, match
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.statistics import TTest, welch

MACHINE = {
    "cpu": "made up",
    "cpus": "2",
    "memory": "24684096 kB",
    "sysctl kernel.osrelease": "6.1",
    "sysctl net.core.somaxconn": "4096",
    "package boto3": "1.44",
    "load before": "1.0 2.0 3.0",
}
PAIRS = (("rgw-beast", "rgw-beast"), ("swift", "swift"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ComparedRun:
    small = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    store = fake_run(tmp_path_factory.mktemp("runs"), workloads=[small], repeats=1, telemetry=False)
    store.add_facts(
        [Sheet(title="machine", facts=MACHINE), Sheet(title="driver", facts={"locust": "2.47"})]
    )
    found = read_compared_run(store.folder)
    hosts = found.plan.hardware.hosts
    disk = {"bandwidth": 2e8}
    data = {
        name: one.model_dump() | {"nic": {"rate": 1e9}, "disks": [disk] if "store" in name else []}
        for name, one in hosts.items()
    }
    return changed(found, hardware=found.plan.hardware.model_dump() | {"hosts": data})


def changed(
    run: ComparedRun,
    *,
    sheet: Sheet | None = None,
    suite: dict[str, Any] | None = None,
    **plan: Any,
) -> ComparedRun:
    """The run with another sheet, suite or part of its plan."""
    sheets = {(one.title, one.layout): one for one in run.manifest.sheets} | (
        {(sheet.title, sheet.layout): sheet} if sheet else {}
    )
    data = run.plan.model_dump()
    resolved = type(run.plan).model_validate(
        {**data, "suite": {**data["suite"], **(suite or {})}, **plan}
    )
    return altered(
        run, manifest=altered(run.manifest, sheets=tuple(sheets.values())), plan=resolved
    )


def machine(**facts: str | None) -> Sheet:
    data = {**MACHINE, **{name.replace("__", "."): text for name, text in facts.items()}}
    return Sheet(
        title="machine", facts={name: text for name, text in data.items() if text is not None}
    )


def hosts(run: ComparedRun, name: str, **limits: Any) -> dict[str, Any]:
    data = run.plan.hardware.model_dump()
    data["hosts"][name] |= limits
    return {"hardware": data}


def workloads(run: ComparedRun, **fields: Any) -> dict[str, Any]:
    (one,) = run.plan.suite.model_dump()["workloads"]
    return {"suite": {"workloads": [{**one, **fields}]}}


def test_runs_with_different_or_unknown_quota_periods_or_cpus_are_not_compared(
    run: ComparedRun,
) -> None:
    hardware = hosts(run, "gateway-1", cpus=0.6)["hardware"]
    short, long, unknown = (
        changed(run, hardware=hardware | {"cpu_period": period_s}) for period_s in (0.01, 0.1, None)
    )
    one, two = (
        changed(run, **hosts(run, "gateway-1", cpus=None, cpuset=own)) for own in ("2-3", "4")
    )
    period = "0.6 CPU in periods of 10 ms"
    for a, b, said in ((short, long, period), (short, unknown, period), (one, two, "CPUs 2-3, ")):
        assert guard(a, a, PAIRS).unlike == ()
        with pytest.raises(UsageError, match=rf"hosts \(gateway-1\): {said}"):
            guard(a, b, PAIRS)


def test_a_run_equals_itself_in_everything(run: ComparedRun) -> None:
    found = guard(run, run, PAIRS)
    assert found.same == GUARD_FACTS
    assert (found.unknown, found.unlike, found.differs) == ((), (), ())


CHANGES = {
    "cpu": lambda run: {"sheet": machine(cpu="another")},
    "cpus": lambda run: {"sheet": machine(cpus="4")},
    "memory": lambda run: {"sheet": machine(memory="12684096 kB")},
    "kernel": lambda run: {"sheet": machine(**{"sysctl kernel.osrelease": "6.12"})},
    "sysctl": lambda run: {"sheet": machine(**{"sysctl net.core.somaxconn": "128"})},
    "hosts": lambda run: hosts(run, "gateway-1", cpus=4.0),
    "network": lambda run: hosts(run, "gateway-1", nic={"rate": 1e10}),
    "disks": lambda run: hosts(run, "store-1", disks=[{"bandwidth": 1e8}]),
    "api": lambda run: {"suite": {"api": ("s3",)}},
    "workloads": lambda run: workloads(run, runtime=60.0),
    "cache": lambda run: {"suite": {"cache": "none"}},
    "age": lambda run: {"suite": {"age": {"fill": 0.1}}},
    "driver": lambda run: {"suite": {"processes": 4}},
    "driver-version": lambda run: {"sheet": Sheet(title="driver", facts={"locust": "2.48"})},
    "seed": lambda run: {"suite": {"seed": 7}},
    "replicas": lambda run: {
        "structures": {
            name: one.model_dump() | {"replicas": 2}
            for name, one in run.plan.structures.items()
            if name == "swift"
        }
    },
    "acknowledgement": lambda run: {
        "sheet": Sheet(title="gateway", layout="swift", facts={"acknowledgement": "one replica"})
    },
}


@pytest.mark.parametrize("fact", GUARD_FACTS)
def test_each_differing_guard_fact_is_refused_by_name_unless_allowed(
    fact: str, run: ComparedRun
) -> None:
    other = changed(run, **CHANGES[fact](run))
    with pytest.raises(UsageError, match=rf"(?m)^  {fact}[: ]") as refused:
        guard(run, other, PAIRS)
    assert f"--despite {fact}" in refused.value.advice
    found = guard(run, other, PAIRS, [fact])
    assert {one.fact for one in found.unlike} == {fact}
    assert fact not in found.same
    assert guard(run, other, PAIRS, ["all"]).unlike == found.unlike


def test_all_differences_are_listed_at_once_with_both_values(run: ComparedRun) -> None:
    other = changed(run, sheet=machine(cpu="another", cpus="4"), suite={"seed": 7})
    with pytest.raises(UsageError) as refused:
        guard(run, other, PAIRS, ["seed"])
    assert refused.value.message.splitlines()[1:] == [
        "  cpu: made up in A, another in B",
        "  cpus: 2 in A, 4 in B",
    ]


def test_a_fact_known_of_one_run_differs_and_one_known_of_none_is_unknown(run: ComparedRun) -> None:
    silent = changed(run, sheet=machine(cpu=None))
    with pytest.raises(UsageError, match="cpu: made up in A, not known in B"):
        guard(run, silent, PAIRS)
    found = guard(silent, silent, PAIRS)
    assert found.unknown == ("cpu",)
    assert "cpu" not in found.same


def test_memory_that_differs_by_what_a_kernel_reserves_is_equal(run: ComparedRun) -> None:
    assert guard(run, changed(run, sheet=machine(memory="24684012 kB")), PAIRS).unlike == ()


def test_an_extra_workload_or_worker_count_in_one_run_is_no_difference(run: ComparedRun) -> None:
    (one,) = run.plan.suite.model_dump()["workloads"]
    more = changed(
        run,
        suite={
            "workloads": [{**one, "workers": (1, 64)}, {**one, "name": "other", "runtime": 9.0}]
        },
    )
    found = guard(run, more, PAIRS)
    assert found.unlike == ()
    assert [one.text for one in found.differs] == [
        "workloads: small-read at 1 in A, small-read at 1/64, other at 1 in B"
    ]


def test_differences_that_are_the_point_of_comparing_are_listed_and_not_refused(
    run: ComparedRun,
) -> None:
    data = [one.model_dump() for one in run.plan.layouts]
    data[1] |= {"release": "swift-2.38", "settings": {"proxy": {"workers": 4}}}
    other = changed(
        run, layouts=data, sheet=machine(**{"package boto3": "1.45", "load before": "9 9 9"})
    )
    other = altered(other, manifest=altered(other.manifest, weighbridge_version="0.2.0"))
    lines = {one.text for one in guard(run, other, PAIRS).differs}
    assert lines == {
        "weighbridge: 0.1.0 in A, 0.2.0 in B",
        "machine (package boto3): 1.44 in A, 1.45 in B",
        "swift (release): none-0 in A, swift-2.38 in B",
        "swift (proxy.workers): not recorded in A, 4 in B",
    }


def sized(
    run: ComparedRun, value: int | None, *, given: object = None, key: str = "proxy.workers"
) -> ComparedRun:
    """The run with a setting that follows the size of hosts, or that its file gives."""
    part, name = key.split(".")
    data = [one.model_dump() for one in run.plan.layouts]
    if given is not None:
        data[1]["settings"] = {part: {name: given}}
    found = changed(run, layouts=data)
    own = [] if value is None else [{"key": key, "value": value, "size": key.startswith("osd")}]
    plan = found.plan.model_dump() | {"by_size": {"swift": own}}
    return altered(found, plan=type(run.plan).model_validate(plan))


def apart(one: ComparedRun, other: ComparedRun) -> list[tuple[str, str, str, str]]:
    found = guard(one, other, PAIRS).differs
    return [(each.of, each.a, each.b, each.kind) for each in found if each.fact == "swift"]


def test_a_setting_that_a_file_gave_and_that_now_follows_the_hosts_size_differs_by_its_value_alone(
    run: ComparedRun,
) -> None:
    threads, key = "proxy.workers", "osd.memory_target"
    before, now = sized(run, None, given=4), sized(run, 4)
    size = sized(run, None, given="1536MiB", key=key)
    odd = sized(run, None, given="1.0001kB", key=key)
    for a, b, found in (
        (before, now, []),
        (before, sized(run, 2), [(threads, "4", "2", "computed")]),
        (now, sized(run, 2), [(threads, "4", "2", "differs")]),
        (run, now, [(threads, "not recorded", "4", "not recorded")]),
        # Sizes are equal however they are written.
        (size, sized(run, 1536 * 2**20, key=key), []),
        (size, sized(run, 512 * 2**20, key=key), [(key, "1536 MiB", "512 MiB", "computed")]),
        (odd, size, [(key, "1.0001kB", "1536 MiB", "differs")]),
    ):
        assert apart(a, b) == found
    for other in (now, before):
        (one,) = planned_differences(run, other, PAIRS)
        assert one.kind == "not recorded"


def test_differences_are_written_with_the_guard_facts_first(run: ComparedRun) -> None:
    other = changed(run, suite={"seed": 7})
    other = altered(other, manifest=altered(other.manifest, weighbridge_version=""))
    lines = differences_csv(guard(run, other, PAIRS, ["seed"])).splitlines()
    assert lines == ["guard,fact,of,a,b", "yes,seed,,2014,7", "no,weighbridge,,0.1.0,not known"]


def test_an_unknown_guard_fact_and_a_folder_that_is_no_run_are_refused(
    run: ComparedRun, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"'kernal' .*'kernel'"):
        guard(run, run, PAIRS, ["kernal"])
    with pytest.raises(UsageError, match=r"manifest\.json"):
        read_compared_run(tmp_path)


def test_layouts_are_matched_by_name_or_as_requested(run: ComparedRun) -> None:
    assert match(run, run) == PAIRS
    assert match(run, run, ["swift"]) == (("swift", "swift"),)
    assert match(run, run, ["rgw-beast=swift"]) == (("rgw-beast", "swift"),)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["swft"], "A has no layout 'swft' (did you mean 'swift'?); B has no layout 'swft'"),
        (["swift=none"], "B has no layout 'none'"),
        (["swift", "swift=swift"], "named twice"),
    ],
)
def test_unknown_layouts_are_refused(asked: list[str], said: str, run: ComparedRun) -> None:
    with pytest.raises(UsageError) as refused:
        match(run, run, asked)
    assert said in str(refused.value)


def test_runs_without_a_common_layout_are_refused_with_their_layouts(run: ComparedRun) -> None:
    data = [{**one.model_dump(), "name": f"{one.name}-tuned"} for one in run.plan.layouts]
    with pytest.raises(
        UsageError, match="A has rgw-beast, swift; B has rgw-beast-tuned, swift-tuned"
    ):
        match(run, changed(run, layouts=data))


def runs(
    draw: random.Random, count: int, between: float, apart: float = 0.0
) -> tuple[TTest, list[float]]:
    """B vs A, and the means of A and of `count` - 1 earlier runs: five repeats with 5 % scatter
    each.
    """
    made = []
    for number in range(count + 1):
        level = draw.gauss(0, between) + (apart if number == count else 0.0)
        made.append([math.exp(level + draw.gauss(0, 0.05)) for _ in range(5)])
    return welch(made[-1], made[0]), [sum(map(math.log, one)) / 5 for one in made[:-1]]


@pytest.mark.parametrize("count", [3, pytest.param(4, marks=pytest.mark.test_all), 8])
@pytest.mark.parametrize("between", [0.0, pytest.param(0.03, marks=pytest.mark.test_all), 0.1])
def test_runs_of_the_same_thing_are_called_different_at_most_5_times_in_100(
    count: int, between: float
) -> None:
    draw, called, alone = random.Random(6), 0, 0
    for _ in range(1000):
        tested, means = runs(draw, count, between)
        alone += tested.p <= 0.05
        called += across_runs(tested, means).p <= 0.05
    assert called <= 0.06 * 1000
    if between == 0.1:
        assert alone >= 0.4 * 1000  # repeats of the two runs alone


def test_a_change_beyond_the_scatter_of_runs_is_found() -> None:
    draw = random.Random(7)
    found = sum(
        across_runs(*runs(draw, 6, 0.03, apart=-0.3)).p_beyond(1.05) <= 0.05 for _ in range(300)
    )
    assert found >= 0.9 * 300


def test_earlier_runs_that_happen_to_agree_make_nothing_more_certain() -> None:
    tested = welch([9.0, 10.0, 11.0, 10.5, 9.5], [8.0, 9.0, 10.0, 9.5, 8.5])
    wide = across_runs(tested, [0.1, 0.1, 0.1])
    assert wide.error == tested.error
    assert (wide.freedom, wide.difference) == (RUNS - 1, tested.difference)
    with pytest.raises(ValueError, match="2 runs give no scatter"):
        across_runs(tested, [0.1, 0.2])
