"""Tables of every run: runs, results, steps, seconds, effects, hosts, facts; and of features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results.figures.doubt import Doubt, doubt_brief, doubt_text, marks_of, power_words
from weighbridge.results.figures.metrics import METRICS, Figures, by_column, compared
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.figures.steadiness import NOT_STEADY
from weighbridge.results.figures.summary import NOT_VALID, Row, shown
from weighbridge.results.figures.validity import class_words, least_samples
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.judge.reasons import reasons
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, show_figure, show_p, show_ratio, upper
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import EndpointTally, Measurement, StepKey, StepResult, Tally
from weighbridge.results.show.feature import FEATURES
from weighbridge.results.show.table import Cell, Column, Filled, Line, Table, columns, line
from weighbridge.suites import DEFAULT_DRIVER, ENCRYPTION, SIGNING, Factor, parts_of

RUN: Final = "run text | Name of the run.\n"
_CELL: Final = f"""
{RUN}
layout text | The layout that was measured. | Layout
twin_of text | The layout that this one repeats as an A/A control, for the noise of this machine;
    else unknown. | A/A control of
api text | The interface that requests used. | API
driver text | The program that made the load.
layer text | The layer below or beside the gateway that got the load; unknown for the gateway.
    | Layer
workload text | Name of the workload in the suite. | Workload
"""
_WORKERS: Final = "workers integer | Clients that each kept one request outstanding. | Workers\n"
_STEP: Final = f"""
{_CELL}
{_WORKERS}
repeat integer | Which visit of the step, from 1.
rate_per_s number 1/s | The rate of a step of a search for one; unknown for ordinary steps.
search_step integer | Which step of that search, from 1.
operation text | The operation on objects.
"""
"""What identifies an operation of a step among those of all runs."""
_LOWER_BOUNDS: Final = """
lower_bounds texts | Metrics whose figure is a lower bound: requests that had not ended took as long
    or longer.
"""


def doubt_texts(doubts: Iterable[Doubt]) -> tuple[str, ...]:
    """Each doubt with its grade, grave (not comparable) or mild (provisional)."""
    return tuple(doubt_text(one) for one in doubts)


# Runs and their facts.


def _runs(data: RunData) -> Iterator[Line]:
    manifest, plan = data.manifest, data.plan
    yield line(
        data,
        manifest,
        error=manifest.error or None,
        layouts=tuple(one.name for one in plan.layouts),
        hardware=plan.hardware.name,
        repeats=plan.suite.repeats,
        steps=len(data.steps),
        weighbridge=manifest.weighbridge_version or None,
        folder=str(data.store.folder),
    )


RUNS: Final = Table(
    "runs",
    "A line for each run.",
    columns(f"""
{RUN}
suite text | The suite that was replayed.
state text | running, done, failed or interrupted.
created_at time | When it started, UTC.
ended_at time | When it ended, UTC.
error text | Why it failed; unknown where it did not.
layouts texts | The layouts that were measured, in the requested order.
hardware text | The hardware file.
repeats integer | Planned visits of every step.
steps integer | Recorded steps, including those without a measurement.
gaps texts | What the folder lacks.
weighbridge text | The version of Weighbridge that made it.
command texts | The command that repeats it, as separate words.
folder text | Its path.
"""),
    _runs,
)
FACTS: Final = Table(
    "facts",
    "A line for each fact of the manifest: the machine, and the versions and settings of each "
    "layout.",
    columns(f"""
{RUN}
title text | What the fact belongs to.
layout text | The layout that it is about; unknown where it is about all.
name text | Name of the fact.
value text | Its value as text.
"""),
    lambda data: (
        line(sheet, name=name, value=value)
        for sheet in data.manifest.sheets
        for name, value in sheet.facts.items()
    ),
)
EVENTS: Final = Table(
    "events",
    "A line for each event of the run apart from measurements.",
    columns(f"""
{RUN}
at time | When, UTC.
kind text | Kind of event.
layout text | The layout that it is about, if one.
text text | What happened.
"""),
    lambda data: map(line, data.events),
)
ATTESTATION: Final = Table(
    "attestation",
    "A line for each capacity of a deployment's host, before it was measured.",
    columns(f"""
{RUN}
layout text | The layout that was deployed.
repeat integer | Which deployment of the layout, from 1.
host text | Which host.
kind text | cpu, disk or network.
what text | What was measured, in words.
value number | Capacity; more is better.
unit text | The unit of value and promised.
promised number | What the hardware file promises.
operation text | read or write, of disks.
pick text | sequential or random, of disks.
request_bytes integer B | Size of a request, of disks.
sender text | Which host sent, of networks.
receiver text | Which host received, of networks.
"""),
    lambda data: (line(one, repeat=one.repeat + 1) for one in data.attested),
)


# The table of a run: a line for each cell.


def _values() -> Iterator[Column]:
    for one in METRICS.values():
        head = one.title if one.paper else ""
        yield Column(
            one.column, "integer" if one.is_integer else "number", one.about, one.unit, head
        )


def _pairs(names: tuple[str, str], unit: str, about: str) -> Iterator[Column]:
    for end, name in zip(("Lower", "Upper"), names, strict=True):
        yield Column(name, "number", f"{end} {about}", unit)


def _intervals() -> Iterator[Column]:
    for one in compared():
        about = f"end of the 95 % interval of {one.name} over the repeats; unknown for one repeat."
        yield from _pairs(one.spread_columns, one.unit, about)


def _bins() -> Iterator[Column]:
    for one in METRICS.values():
        if one.binned:
            about = f"end of the bin that holds {one.name}, where the driver counts in bins."
            yield from _pairs(one.bin_columns, one.unit, about)


def _caveat(row: Row) -> str:
    if not row.valid:
        return NOT_VALID
    return NOT_STEADY if row.steady is False else doubt_brief(row.doubts)


def row_lines(
    rows: Iterable[Row], controls: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Line]:
    """A line of `summary` for each row; `controls`: A/A controls with the layouts they repeat."""
    for row in rows:
        texts = {one.column: shown(row, one.key) for one in METRICS.values() if one.paper}
        yield line(
            row,
            **by_column(row),
            twin_of=controls.get(row.layout),
            doubts=doubt_texts(row.doubts),
            power_cuts=None if row.power is None else row.power.words,
        ).showing({**texts, "doubts": _caveat(row)})


def _summary_notes(data: RunData) -> Iterator[str]:
    yield (
        "Geometric means of the repeats, ± half of their 95 % interval; max is the highest of all. "
        f"{UNKNOWN}: unknown, or a repeat had fewer operations than the percentile needs "
        f"(p90 {least_samples(90)}, p99 {least_samples(99)})."
    )
    yield "Errors are those of all repeats, including those left out."
    if any(row.within("max") is not None for row in data.rows):
        yield "(10, 20]: the bin that holds the latency, where the driver counts in bins."
    yield from _caveats(data.rows, data.comparison)


def _caveats(rows: Sequence[Row], comparison: Comparison) -> Iterator[str]:
    if marks := power_words(marks_of([row.power for row in rows])):
        yield f"Writes, {marks}."
    for one in reasons(rows, comparison):
        yield f"{upper(one.text)}."


SUMMARY: Final = Table(
    "summary",
    "A line for each layout, workload, operation and worker count: geometric means of the valid "
    "repeats.",
    (
        *columns(f"""
{_CELL}
operation text | The operation on objects. | Operation
object_size_bytes number B | Size of an object, or of the part that a request is about, or the
    expected mean.
sent text | What the engine sends, in the terms of HTTP.
{_WORKERS}
repeats integer | Number of repeats that count. | Repeats
"""),
        *_values(),
        *_intervals(),
        *_bins(),
        *columns(f"""
saturated text | The resource that may have been the bottleneck, in words.
limited_by text | What limited it, by kind: the gateway's or the stores' CPU, disks, the network,
    the load generator, or nothing seen; empty if unknown.
valid boolean | Whether failures, the driver's own load and Little's law were within bounds.
steady boolean | Whether it kept its level over the window; unknown where that cannot be determined.
ranked boolean | Whether it allows conclusions: valid, not unsteady, and in no grave doubt.
{_LOWER_BOUNDS}
provisional boolean | Whether it is ranked, but in doubt: it allows no claim.
doubts texts | Doubts, each with its grade, grave (not comparable) or mild (provisional), and the
    metrics that it applies to. | Caveat
power_cuts text | What power cuts did to objects of this layout, and what it has on disk when it
    acknowledges a write, for operations that write; unknown where no layout was tried and none
    acknowledges what is not on disk. | Power cuts
notes texts | What a reader must know.
"""),
    ),
    lambda data: row_lines((*data.rows, *data.layers), data.plan.twins),
    _summary_notes,
)


def rows_table(
    rows: Iterable[Row], run: str, controls: Mapping[str, str] = MappingProxyType({})
) -> Filled:
    """The same table of other rows."""
    return Filled(SUMMARY, tuple(one.of_run(run) for one in row_lines(rows, controls)))


# Steps and what is inside of them.


def _key_line(data: RunData, key: StepKey, *sources: object, **cells: Cell) -> Line:
    return line(
        key, *sources, repeat=key.repeat + 1, twin_of=data.plan.twins.get(key.layout), **cells
    )


def _steps(data: RunData) -> Iterator[Line]:
    operations = {
        workload.name: parts_of(workload.operations)
        for layout in data.plan.layouts
        for one in data.plan.passes_of(layout.name)
        for workload in one.workloads
    }
    for key, step in data.steps.items():
        if step.measurement is not None:
            for tally in step.measurement.tallies:
                yield _step(data, step, tally.operation, step.measurement, tally)
        else:
            # A line for each planned operation, so that counts by operation are complete.
            for operation in operations.get(key.workload, (None,)):
                yield _step(data, step, operation)


def _step(
    data: RunData,
    step: StepResult,
    operation: str | None,
    measured: Measurement | None = None,
    tally: Tally | None = None,
) -> Line:
    visit = data.visits[step.key]
    point = next((one for name, one in visit.points.items() if name == operation), None)
    min_us = None if tally is None else tally.min_us
    return _key_line(
        data,
        step.key,
        visit,
        measured,
        tally,
        point,
        **by_column(point or Figures(), intervals=False),
        operation=operation,
        visit=step.order + 1,
        measured=measured is not None,
        tool=None if measured is None else measured.driver,
        min_ms=None if min_us is None else min_us / 1000,
        error_classes=tuple(
            f"{name}: {count}"
            for name, count in (tally.errors if tally is not None else {}).items()
        ),
        endpoints=tuple(map(endpoint_text, () if measured is None else measured.endpoints)),
        endpoint_imbalance=None if measured is None else measured.imbalance,
        driver_cpu_share=None if measured is None or measured.load is None else measured.load.share,
        signing=_factor(SIGNING, data, step.key),
        encryption=_factor(ENCRYPTION, data, step.key),
        remarks=() if measured is None else measured.notes,
    )


def _factor(factor: Factor, data: RunData, key: StepKey) -> str | None:
    suite = data.plan.suite
    workload = next((one for one in suite.workloads if one.name == key.workload), None)
    # Other drivers decide it themselves.
    if key.api != "s3" or key.driver != DEFAULT_DRIVER or workload is None:
        return None
    return suite.factor_label(factor, workload)


STEPS: Final = Table(
    "steps",
    "A line for each step, repeat and operation, with the last result of a step that was repeated; "
    "also for steps without a measurement.",
    (
        *columns(f"""
{_STEP}
visit integer | Which step of the run it was, from 1, in order of time.
measured boolean | Whether the step has a measurement; if not, notes say why.
valid boolean | Whether failures, the driver's load and Little's law were within bounds.
steady boolean | Whether it kept its level over the window; unknown where that cannot be determined.
ranked boolean | Whether it allows conclusions by itself: valid and not unsteady.
started_at time | Start of the window, UTC.
window_s number s | Length of the window.
warmup_s number s | Length of the warm-up before it.
tool text | The driver's name for the tool that made the requests.
"""),
        *_values(),
        *_bins(),
        *columns(f"""
min_ms number ms | The fastest operation that succeeded.
{_LOWER_BOUNDS}
bytes integer B | Bytes of their complete bodies.
error_classes texts | Operations that failed by class, each `class: count`.
connections integer | Connections that were made inside the window, for all operations of the step;
    unknown if the driver does not count them.
endpoints texts | Each of several endpoints, for all requests of the step: those that succeeded, its
    p90, failures by class, and whether it was left out.
endpoint_imbalance number | How many times the mean of all endpoints the busiest one served; unknown
    for one.
driver_cpu_share number | Share of its CPU limit that the driver used, from 0 to 1.
driver_cpu_us_per_op number us | CPU time of the driver for a successful operation of any kind;
    unknown if the driver does not measure it.
signing text | How S3 requests were signed; empty for other APIs, and for drivers that decide it.
encryption text | How stores were asked to encrypt S3 objects; empty as for `signing`.
notes texts | Why it is not valid, and what else a reader must know.
remarks texts | Messages of the driver.
"""),
    ),
    _steps,
)


def _seconds(data: RunData) -> Iterator[Line]:
    for key, step in data.steps.items():
        for one in step.measurement.seconds if step.measurement is not None else ():
            yield _key_line(
                data,
                key,
                one,
                operations=one.count,
                failures=class_words(one.failures),
                mean_ms=one.sum_us / one.count / 1000 if one.count else None,
                max_ms=one.max_us / 1000 if one.count else None,
            )


SECONDS: Final = Table(
    "seconds",
    "A line for each second of the window, for each operation of each step that has a series.",
    columns(f"""
{_STEP}
second integer s | Seconds since the start of the window.
operations integer | Operations that succeeded.
bytes integer B | Bytes of their complete bodies.
errors integer | Operations that failed.
failures text | The same by class; empty also where the driver does not know.
in_flight integer | Requests outstanding when the second began; unknown of some drivers.
mean_ms number ms | Mean latency; unknown where nothing succeeded.
max_ms number ms | Highest latency; unknown where nothing succeeded.
"""),
    _seconds,
)


def _hosts(data: RunData) -> Iterator[Line]:
    for key, telemetry in data.telemetry():
        limits = {one.host: one for one in telemetry.head.hosts}
        for second in telemetry.hosts:
            limit = limits.get(second.host)
            models = [one.model for one in second.disks or () if one.model is not None]
            yield _key_line(
                data,
                key,
                second,
                limit,
                **_sums("disk", second.disks, _OF_DISKS),
                **_sums("model_disk", models or None, _OF_MODELS),
                memory_limit_bytes=None if limit is None else limit.memory_bytes,
            )


_OF_DISKS: Final = ("read_bytes", "written_bytes", "reads", "writes", "busy_s")
_OF_MODELS: Final = ("busy_s", "flushes", "destaged_bytes", "late_s")


def _sums(prefix: str, disks: Sequence[object] | None, names: Sequence[str]) -> dict[str, Cell]:
    """Over all disks of a host; unknown where none was sampled."""
    if disks is None:
        return dict.fromkeys(f"{prefix}_{name}" for name in names)
    return {f"{prefix}_{name}": sum(getattr(one, name) for one in disks) for name in names}


HOSTS: Final = Table(
    "hosts",
    "A line for each host and second while a step ran: use between two samples, and limits.",
    columns(f"""
{_STEP.replace("operation text | The operation on objects.", "")}
host text | Which host.
tier text | client, gateway, storage, shared, or the machine that runs them as containers.
phase text | warm-up, measure, drain or unplaced.
second integer s | Seconds since the start of the window; negative in the warm-up.
at_s number s | The exact time of the later sample.
span_s number s | Time between the two samples.
cpu_s number s | CPU seconds used.
cpus number | CPUs that may be used; unknown where not limited.
throttled_s number s | How long it was throttled by its CPU limit.
memory_bytes integer B | Memory in use at the later sample.
memory_held_bytes integer B | The same without page cache.
memory_limit_bytes integer B | Memory limit.
received_bytes integer B | Received by its NIC.
sent_bytes integer B | Sent by its NIC.
nic_bits_s number bit/s | Limit of its NIC.
disk_read_bytes integer B | Read from all its disks.
disk_written_bytes integer B | Written to all its disks.
disk_reads integer | Requests to read.
disk_writes integer | Requests to write.
disk_busy_s number s | Time with requests in progress, summed over its disks.
model_disk_busy_s number s | Time that the media of its disks with a model worked, summed over them.
model_disk_flushes integer | Flushes of the caches of its disks with a model.
model_disk_destaged_bytes integer B | Bytes that went from these caches to the media.
model_disk_late_s number s | How much later than their models say these disks answered, summed over
    requests.
"""),
    _hosts,
)


# Effects.


METRIC_KEYS: Final = ", ".join(f"{one.key} ({one.better} is better)" for one in compared())
RATIO_ENDS: Final = """
ratio_low number | Lower end of its 95 % interval, in a tuning widened for all looks.
ratio_high number | Upper end of its interval.
"""


def effects_of(comparison: Comparison) -> tuple[Effect, ...]:
    """Its effects, without those over all worker counts of a workload that has a single one."""
    cells: dict[tuple[object, ...], int] = {}
    for one in comparison.effects:
        cells[_compared(one)] = cells.get(_compared(one), 0) + (one.workers is not None)
    return tuple(
        one
        for one in comparison.effects
        if one.workers is not None or one.sides is None or cells[_compared(one)] != 1
    )


def _compared(one: Effect) -> tuple[object, ...]:
    place = one.workload, one.operation, one.api, one.driver
    return *place, one.metric, one.baseline, one.subject


def effect_lines(comparison: Comparison) -> Iterator[Line]:
    """A line of `effects` for each effect of a comparison."""
    for one in effects_of(comparison):
        yield line(
            one,
            **ratio_cells(one.ratio),
            repeats=None if one.ratio is None else one.ratio.repeats,
            doubts=doubt_texts(one.doubts),
        ).showing(
            {
                "ratio": interval_text(one.ratio),
                "p": show_p(one.p),
                "q": show_p(one.q),
                "rank_p": show_p(one.rank_p),
                "delta": UNKNOWN if one.delta is None else f"{one.delta:+.2f}",
                "smallest": UNKNOWN if one.smallest is None else show_ratio(one.smallest),
                "workers": "all" if one.workers is None else str(one.workers),
                "doubts": doubt_brief(one.doubts) if one.reasons == "" else one.reasons,
            }
        )


def ratio_cells(ratio: Ratio | None, name: str = "ratio") -> dict[str, Cell]:
    """A ratio, and the ends of its interval."""
    if ratio is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: ratio.value, f"{name}_low": ratio.low, f"{name}_high": ratio.high}


def interval_text(ratio: Ratio | None) -> str:
    """`2.6 (2.4 to 2.8)`."""
    if ratio is None:
        return UNKNOWN
    if ratio.low is None or ratio.high is None:
        return show_figure(ratio.value)
    ends = f"{show_figure(ratio.low)} to {show_figure(ratio.high)}"
    return f"{show_figure(ratio.value)} ({ends})"


def effect_notes(rows: Sequence[Row], comparison: Comparison) -> Iterator[str]:
    """What ratios and tests mean, the noise floor, and caveats about `rows`."""
    yield (
        f"Ratio, with its 95 % interval: the layout's figure divided by that of "
        f"{comparison.baseline}, of geometric means; above 1 is better for throughput, worse for "
        "latencies."
    )
    yield (
        "q: p-value of Welch's test on logarithms, corrected over "
        f"{comparison.tests} cells (Benjamini and Hochberg). "
        "n: repeats of the side that has fewer."
    )
    for one in comparison.noise:
        yield one.words
    yield from _caveats(rows, comparison)


EFFECTS: Final = Table(
    "effects",
    "A line for each metric, workload and worker count of each layout compared with the first; "
    "workers unknown: over all of several.",
    columns(f"""
{RUN}
workload text | Name of the workload in the suite.
operation text | The operation on objects.
api text | The interface that requests used. | API
driver text | The program that made the load.
about text | Name of the requests. | Requests
workers integer | Worker count; unknown for all of them together. | Workers
metric text | {METRIC_KEYS}. | Metric
baseline text | The layout that the subject is compared with.
subject text | The layout that is compared. | Layout
baseline_value number | Geometric mean of the baseline's repeats, in the metric’s unit.
subject_value number | The same of the subject.
ratio number | The subject's figure divided by the baseline's, of geometric means. | Ratio
{RATIO_ENDS}
adjusted number | The factor in the ratio by which what other programs cost is taken out of it.
repeats integer | Repeats of the side that has fewer. | n
p number | Of Welch's test on logarithms, two-sided.
primary boolean | Whether the metric is throughput or p90, whose tests are corrected by themselves.
q number | The same, corrected over these cells, or over all others (Benjamini and Hochberg). | q
rank_p number | Of the Mann-Whitney test, two-sided.
delta number | Cliff's delta, from -1 to 1.
smallest number | The smallest ratio above 1 that this number of repeats would find 8 times in 10.
noise number | The noise floor of this machine, a ratio above 1; unknown with few A/A controls.
verdict text | better, worse, too small to matter, not significant, provisional or not comparable.
    | Verdict
doubts texts | Doubts about either side, each with its grade: grave (not comparable) or mild
    (provisional). | Caveat
text text | The verdict in one sentence.
"""),
    lambda data: effect_lines(data.comparison),
    lambda data: effect_notes(data.rows, data.comparison),
)


def endpoint_p90(same: Sequence[EndpointTally]) -> tuple[float | None, str]:
    """The p90 in ms of all latencies, None with too few; and why they cannot be read."""
    try:
        merged = Histogram.merged(
            Histogram.decode(one.latency) for one in same if one.latency is not None
        )
    except InvalidMeasurement as error:
        return None, f"latencies unreadable: {error}"
    if merged.count < least_samples(90):
        return None, ""
    return merged.percentile_us(90) / 1000, ""


def endpoint_text(one: EndpointTally) -> str:
    """One endpoint of a step, for tables."""
    p90_ms, fault = endpoint_p90([one])
    parts = [
        f"{one.count} succeeded",
        *([f"p90 {p90_ms:.3g} ms"] if p90_ms is not None else []),
        *([fault] if fault else []),
        *(f"{count} {name}" for name, count in sorted(one.errors.items())),
        *(["left out"] if one.left_out else []),
    ]
    return f"{one.name}: {', '.join(parts)}"


# All tables.


CORE: Final = (RUNS, SUMMARY, STEPS, SECONDS, EFFECTS, ATTESTATION, EVENTS, HOSTS, FACTS)


@cache
def tables() -> Mapping[str, Table]:
    """Every table by name, in order. Raises UsageError for two of one name."""
    found: dict[str, Table] = {}
    for one in (*CORE, *feature_tables()):
        if one.name in found:
            raise UsageError(
                f"two tables are named {one.name!r}",
                advice="Uninstall one of the packages that add a feature.",
            )
        found[one.name] = one
    return MappingProxyType(found)


def feature_tables() -> Iterator[Table]:
    """The tables of features."""
    for feature in FEATURES.values():
        yield from feature.tables
