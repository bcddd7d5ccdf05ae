import re
from collections import Counter
from pathlib import Path

import pytest

from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered
from made_up import fake_measurement
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.analysis.steps.summary import summarize
from weighbridge.results.analysis.steps.use import StepUse
from weighbridge.results.influx.points import FIELDS, TAGS, RunPoints
from weighbridge.results.metrics import GOODPUT, OUTAGE_METRICS, SHARES
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore

SMALL = (altered(WORKLOADS[0], workers=(1, 4), runtime=3.0),)
LONG = (*SMALL, altered(WORKLOADS[1], workers=(4,), runtime=12.0))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """Both drivers, a layer, and a step that failed; shared, so not to be changed."""
    return fake_run(
        tmp_path_factory.mktemp("runs"),
        layouts=("rgw-beast",),
        workloads=LONG,
        repeats=2,
        layers=("rados",),
        driver="locust,cosbench",
        spoilt=StepFaults(failed=(("rgw-beast", "small-read", 4),)),
    )


def split(line: str) -> tuple[str, dict[str, str], dict[str, str], int]:
    """The parts of a line without escapes."""
    head, fields, at = line.split(" ")
    name, *tags = head.split(",")
    return (
        name,
        dict(one.split("=") for one in tags),
        dict(one.split("=") for one in fields.split(",")),
        int(at),
    )


def fields_of(store: RunStore, step: StepResult, name: str) -> list[dict[str, str]]:
    """Of each point of a step in this measurement."""
    found = map(split, RunPoints(store).step(step))
    return [fields for kind, _, fields, _ in found if kind == name]


def measured_step(store: RunStore) -> tuple[StepResult, Measurement]:
    """One by Locust."""
    return next(
        (step, step.measurement)
        for step in store.steps()
        if step.measurement is not None and step.key.driver == "locust"
    )


def lines(store: RunStore) -> list[str]:
    points = RunPoints(store)
    return [*points.run(), *(line for step in store.steps() for line in points.step(step))]


def test_a_run_has_only_documented_measurements_tags_and_fields(store: RunStore) -> None:
    seen: dict[str, tuple[set[str], set[str]]] = {}
    for name, tags, fields, _ in map(split, lines(store)):
        seen.setdefault(name, (set(), set()))[0].update(tags)
        seen[name][1].update(fields)
    assert {name: tags for name, (tags, _) in seen.items()} == {
        name: set(TAGS[name]) for name in TAGS if name != "weighbridge_live"
    }
    # The fake drivers report no first bytes and too few samples for a p99.9 in bins, no workload is
    # offered beyond capacity or has a fault, and the fake machine reports no other programs.
    overload = {one.column for one in (GOODPUT, *SHARES)}
    first_bytes = {
        f"first_byte_{of}{end}" for of in ("", "p50_", "p99_") for end in ("ms", "at_least")
    }
    faults = {one.column for one in OUTAGE_METRICS}
    untold = {*first_bytes, *overload, *faults, "p99_9_low_ms", "p99_9_high_ms", "others_share"}
    assert {name: fields for name, (_, fields) in seen.items()} == {
        name: {*FIELDS[name]} - untold for name in seen
    }


def test_lower_bounds_are_marked_and_a_step_has_the_use_of_other_programs(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, measured = measured_step(store)
    (tally,) = measured.tallies
    late = Histogram.of([9_000_000] * (tally.count // 4)).encode()
    stalled = altered(tally, in_flight=late, in_flight_max_us=9_000_000)
    step = altered(step, measurement=altered(measured, tallies=(stalled,)))
    monkeypatch.setattr(
        "weighbridge.results.influx.points.step_use", lambda *_: StepUse(others=0.42)
    )
    (fields,) = fields_of(store, step, "weighbridge_step")
    marks = [fields[f"{name}_at_least"] for name in ("p50", "p90", "p99", "max")]
    assert marks == ["0i", "1i", "1i", "1i"]
    assert float(fields["others_share"]) == 0.42


def test_the_points_of_a_step_are_the_figures_of_the_table(store: RunStore) -> None:
    points = {
        (tags["driver"], tags["workload"], tags["workers"], int(tags["repeat"]) - 1): fields
        for name, tags, fields, _ in map(split, lines(store))
        if name == "weighbridge_step" and "layer" not in tags
    }
    rows = [(row, one) for row in summarize(store.plan(), store.steps()) for one in row.points]
    assert len(rows) == len(points) > 0
    for row, one in rows:
        fields = points[row.driver, row.workload, str(row.workers), one.repeat]
        assert float(fields["throughput_ops_s"]) == one.value("throughput")
        assert [fields.get(f"p{p}_ms") for p in (50, 90, 99)] == [
            v and repr(v) for v in map(one.value, ("p50", "p90", "p99"))
        ]
        assert fields["samples"] == f"{one.count('samples')}i"
        assert fields["valid"] == f"{int(one.valid)}i"
        assert fields.get("steady") == (None if one.steady is None else f"{int(one.steady)}i")
        for name in ("p50", "p90", "p99"):
            within = one.within(name)
            assert fields.get(f"{name}_low_ms") == (None if within is None else repr(within.low_ms))


def test_a_percentile_of_too_few_samples_is_left_out(store: RunStore) -> None:
    step, measured = measured_step(store)
    key = step.key
    few = fake_measurement(
        workload=key.workload, workers=key.workers, window_s=50 * 0.01 / key.workers
    )
    assert 10 <= few.tallies[0].count < 100 <= measured.tallies[0].count
    (fields,) = fields_of(store, altered(step, measurement=few), "weighbridge_step")
    assert "p90_ms" in fields
    assert "p99_ms" not in fields


def test_points_have_the_times_of_the_window_and_its_seconds(store: RunStore) -> None:
    step, _ = measured_step(store)
    began = 1415102400000
    times: dict[str, set[int]] = {}
    for name, _, _, at in map(split, RunPoints(store).step(step)):
        times.setdefault(name, set()).add(at - began)
    assert times["weighbridge_second"] == {0, 1000, 2000}
    assert times["weighbridge_step"] == {3000}
    assert times["weighbridge_host"] == {-1000, 0, 1000, 2000, 3000}


def test_points_are_reproducible_and_unique(store: RunStore) -> None:
    once = lines(store)
    assert once == lines(store)
    places = Counter((line.split(" ")[0], line.split(" ")[2]) for line in once)
    assert max(places.values()) == 1


def test_a_step_without_a_measurement_has_no_point(store: RunStore) -> None:
    failed = next(step for step in store.steps() if step.measurement is None)
    assert not list(RunPoints(store).step(failed))


def test_a_host_without_a_limit_of_cpus_has_cpus_used_and_no_share(store: RunStore) -> None:
    step, _ = measured_step(store)
    telemetry = store.telemetry(step.key)
    assert telemetry is not None
    hosts = tuple(altered(one, cpus=None) for one in telemetry.head.hosts)
    copy = fake_run(
        store.folder.parent.parent / "unlimited",
        layouts=("rgw-beast",),
        workloads=SMALL,
        repeats=1,
        telemetry=False,
    )
    with copy.record_telemetry(altered(telemetry.head, hosts=hosts)) as file:
        file.write(telemetry.hosts)
    found = fields_of(copy, step, "weighbridge_host")
    assert found
    assert all("cpus_used" in fields and "cpu_share" not in fields for fields in found)


def test_a_second_in_which_nothing_succeeded_has_counts_and_no_latency(store: RunStore) -> None:
    step, measured = measured_step(store)
    first, *others = measured.seconds
    barren = altered(first, count=0, bytes=0, errors=9, max_us=0, sum_us=0, bands=())
    odd = altered(step, measurement=altered(measured, seconds=(barren, *others)))
    fields = fields_of(store, odd, "weighbridge_second")[0]
    assert fields == {"ops": "0i", "bytes": "0i", "errors": "9i"}


def test_samples_without_a_window_have_no_point(tmp_path: Path) -> None:
    copy = fake_run(tmp_path, layouts=("rgw-beast",), workloads=SMALL, repeats=1)
    step = copy.steps()[0]
    telemetry = copy.telemetry(step.key)
    assert telemetry is not None
    with copy.record_telemetry(telemetry.head) as file:
        file.write(altered(one, phase="unplaced") for one in telemetry.hosts)
    names = {split(line)[0] for line in RunPoints(copy).step(step)}
    assert names == {"weighbridge_second", "weighbridge_step"}


def test_live_rates_have_the_tags_of_their_step(store: RunStore) -> None:
    (line,) = RunPoints(store).live(store.steps()[0].key, "measure", (120.5, 1e6), 0, 1415102400500)
    name, tags, fields, at = split(line)
    assert (name, at) == ("weighbridge_live", 1415102400500)
    assert set(tags) == {*TAGS[name]} - {"layer"}
    assert fields == {"ops_s": "120.5", "bytes_s": "1000000.0", "errors": "0i"}


def test_an_invalid_time_is_an_error(store: RunStore) -> None:
    step, measured = measured_step(store)
    odd = altered(step, measurement=altered(measured, started_at="yesterday"))
    with pytest.raises(InvalidMeasurement, match="'yesterday' is not a time"):
        list(RunPoints(store).step(odd))


def test_a_run_without_telemetry_has_no_points_of_hosts(tmp_path: Path) -> None:
    bare = fake_run(tmp_path, layouts=("swift",), workloads=SMALL, repeats=1, telemetry=False)
    wanted = {"weighbridge_run", "weighbridge_second", "weighbridge_step"}
    assert {split(line)[0] for line in lines(bare)} == wanted


def test_every_measurement_tag_and_field_is_documented_and_nothing_else() -> None:
    text = (Path(__file__).parents[3] / "docs" / "influxdb.md").read_text()
    tags = text[text.index("Tags of all but the first are") : text.index("| measurement")]
    of_all = set(re.findall(r"`(\w+)`", tags))
    rows = {
        cells[1].strip(" `"): cells
        for line in text.splitlines()
        if (cells := line.split("|"))[1:2] and "`weighbridge_" in cells[1]
    }
    of_step = text[text.index("Fields of `weighbridge_step`") :].split("\n\n")[1]
    rows["weighbridge_step"][4] = "".join(line.split("|")[2] for line in of_step.splitlines())
    assert set(rows) == set(TAGS) == set(FIELDS)
    for name, cells in rows.items():
        further = set(re.findall(r"`(\w+)`", cells[3]))
        assert (further | of_all if name != "weighbridge_run" else {"run", "suite"}) == set(
            TAGS[name]
        )
        assert set(re.findall(r"`(\w+)`", cells[4])) == set(FIELDS[name])
