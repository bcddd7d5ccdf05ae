import re
from datetime import datetime
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from fake_outages import outage_run
from fake_run import WORKLOADS, fake_run, short_run
from made_cuts import record_made_cuts
from made_rows import altered, present
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results.features.open_run import open_run, read_runs
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.histogram import Histogram, rank_of
from weighbridge.results.run.resolved import Sheet
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested
from weighbridge.results.show.exports import distribution, export, histograms
from weighbridge.results.show.query import ask, schema_words
from weighbridge.results.show.tables import tables

SMALL = altered(WORKLOADS[0], workers=(1, 4), runtime=1.0)
HOSTILE = "x'; DROP TABLE steps; --"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunData, ...]:
    """Two runs of two layouts; the second with a fact whose value would be SQL."""
    runs = tmp_path_factory.mktemp("two")
    first = fake_run(runs, workloads=[SMALL], repeats=2)
    second = fake_run(runs, workloads=[SMALL], repeats=1, seed=7)
    record_made_cuts(first.folder, cuts=2)
    first.event("caches", "dropped", layout="swift")
    place = {"layout": "swift", "repeat": 0, "host": "store-1"}
    figure = {"kind": "cpu", "what": "CPU", "value": 100, "unit": "events/s"}
    first.attest([Attested.model_validate({**place, **figure})])
    second.add_facts([Sheet(title="gateway", layout="swift", facts={HOSTILE: HOSTILE})])
    found, left_out = read_runs([first.folder, second.folder])
    assert left_out == ()
    return found


@pytest.mark.parametrize("name", list(tables()))
@pytest.mark.long
def test_every_view_has_the_columns_that_are_described(
    two: tuple[RunData, ...], tuned_data: RunData, name: str, tmp_path: Path
) -> None:
    more = [tuned_data] if name in ("ledger", "trials") else []
    more += [open_run(outage_run(tmp_path).folder)] if name == "outages" else []
    layers = {"workloads": [SMALL], "repeats": 1, "layers": ("disk",)}
    more += [open_run(fake_run(tmp_path, **layers).folder)] if name == "staircase" else []
    answer = ask(f"select * from {name}", (*two, *more))
    assert answer.columns == tuple(column.name for column in tables()[name].columns)
    assert answer.lines
    described = schema_words()
    assert f"{name}: " in described
    for column in answer.columns:
        assert re.search(rf"^  {column} +[A-Z\[\]]+ +\S", described, re.MULTILINE)


def test_a_query_reads_all_runs(two: tuple[RunData, ...]) -> None:
    counts = ask("select run, count(*) from steps group by run order by count(*)", two).lines
    assert counts == ((two[1].manifest.run_id, 4), (two[0].manifest.run_id, 8))
    mean = "exp(avg(ln(throughput_ops_s)))"
    sql = f"select layout, {mean} from steps where workers = 4 group by layout order by layout"
    means = ask(sql, (two[0],))
    assert dict(means.lines) == pytest.approx(
        {row.layout: row.value("throughput") for row in two[0].rows if row.workers == 4}
    )


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("select value from facts where name like 'x%'", HOSTILE),  # never run as SQL
        ("select count(*) from steps", 12),
        ("select count(*) from query_table('st' || 'eps')", 12),  # a view of a computed name
        ("select * from query('select count(*) from st' || 'eps')", 12),
        ("select count(*) from summary where p99_low_ms is null", 8),
        ("select avg(p99_low_ms) from summary", None),  # unknown values count in no mean
    ],
)
def test_a_query_gives_what_was_recorded(two: tuple[RunData, ...], sql: str, value: object) -> None:
    assert ask(sql, two).lines == ((value,),)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        *(
            (f"select * from {source}", None)
            for source in (
                *("'{secret}'", "read_text('{secret}')", "read_csv('{secret}')"),
                *("glob('{folder}/*')", "two", "secret"),
            )
        ),
        *(
            (sql, "runs can only be read")
            for sql in (
                *("copy (select 1) to '{folder}/out.csv'", "attach '{folder}/out.db'"),
                *("install httpfs", "set enable_external_access = true", "drop table steps"),
                *("insert into facts select * from facts", "pragma threads=1"),
                "export database '{folder}/out'",
            )
        ),
    ],
)
def test_sql_gets_no_file_and_no_object_and_changes_nothing(
    two: tuple[RunData, ...], tmp_path: Path, sql: str, words: str | None
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nbetrayed\n")
    with pytest.raises(UsageError, match=words) as caught:
        ask(sql.format(secret=secret, folder=tmp_path), two)
    assert "betrayed" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [secret]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select * from stepz", "did you mean 'steps'"),
        ("select p95_ms from steps", r"p95_ms(.|\n)*p90_ms(.|\n)*steps has run, layout"),
        ("selec 1", r"syntax error at or near(.|\n)*The views are runs, summary, steps"),
        ("select 1; select 2", "expected one query, not 2"),
        ("", "expected one query, not 0"),
    ],
)
def test_an_invalid_query_is_told_the_views(two: tuple[RunData, ...], sql: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        ask(sql, two)
    assert "pg_" not in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        *("describe steps", "summarize summary", "from runs", "explain from summary"),
        "with a as (from summary) from a",
    ],
)
def test_every_statement_that_only_reads_is_allowed(two: tuple[RunData, ...], sql: str) -> None:
    assert ask(sql, two).lines


def test_what_is_no_run_is_named_and_duplicates_read_once(run: RunStore, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("manifest.json", "plan.resolved.json", "steps.jsonl"):
        (copy / name).write_bytes((run.folder / name).read_bytes())
    found, left_out = read_runs([run.folder, tmp_path, copy, tmp_path / "nowhere"])
    assert [data.store.folder for data in found] == [run.folder]
    assert left_out == (
        f"left out: {tmp_path}: is not the folder of a run: it has no manifest.json",
        f"left out: {copy}: the same run as {run.folder}",
        f"left out: {tmp_path / 'nowhere'}: is not the folder of a run: it has no manifest.json",
    )


def test_a_run_that_cannot_be_read_is_left_out_completely(run: RunStore, tmp_path: Path) -> None:
    for name in ("manifest.json", "plan.resolved.json"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    lines = (run.folder / "steps.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "steps.jsonl").write_bytes(lines[0] + b"{}\n" + lines[1])
    found, (sentence,) = read_runs([tmp_path])
    assert found == ()
    assert sentence.startswith(f"left out: {tmp_path}/steps.jsonl:2: ")


def test_telemetry_that_cannot_be_read_is_an_error_and_not_an_answer(tmp_path: Path) -> None:
    store = fake_run(tmp_path / "runs", workloads=[SMALL], repeats=1)
    path = next((store.folder / "telemetry").iterdir())
    path.write_bytes(path.read_bytes().replace(b'"kind":"host"', b'"kind":"ghost"', 1))
    found, _ = read_runs([store.folder])
    with pytest.raises(InvalidMeasurement, match=rf"{path}:2: "):
        ask("select count(*) from hosts", found)


RECORDED = Path(__file__).parents[2] / "data" / "hdrhistogram"
LINE = re.compile(r"^ *([0-9.]+) ([01]\.[0-9]{12}) +([0-9]+)(?: +([0-9.]+))?$")


def parsed(text: str) -> list[tuple[float, float, int]]:
    """(value in ms, percentile of 1, count at or below) of each line, as HdrHistogram plots it."""
    head, empty, *lines = text.splitlines()
    assert (head.split(), empty) == (["Value", "Percentile", "TotalCount", "1/(1-Percentile)"], "")
    found = [LINE.match(line) for line in lines if not line.startswith("#")]
    assert all(found)
    return [(float(match[1]), float(match[2]), int(match[3])) for match in found if match]


def test_a_histogram_log_gives_the_same_digits_as_the_java_tool() -> None:
    # step.hlog was read by HistogramLogProcessor of HdrHistogram 2.2.2: -tag read
    # -outputValueUnitRatio 1000.
    (line,) = [one for one in (RECORDED / "step.hlog").read_text().splitlines() if "=read," in one]
    logged = Histogram.decode(line.rpartition(",")[2])
    assert distribution(logged) == (RECORDED / "java-2.2.2.hgrm").read_text()


def test_the_log_of_a_step_is_read_by_the_codec_of_hdrhistogram(two: tuple[RunData, ...]) -> None:
    step = two[0].store.steps()[0]
    assert step.measurement is not None
    (tally,) = step.measurement.tallies
    (file,) = (one for one in histograms(two[0]).files if one.name == f"{step.key.file_name}.hlog")
    *head, line = file.content.decode().splitlines()
    start_s = datetime.fromisoformat(step.measurement.started_at).timestamp()
    assert head[2].startswith(f"#[StartTime: {start_s:.3f} (seconds since epoch)")
    tag, begin, length_s, max_ms, encoded = line.split(",")
    assert (tag, begin, float(length_s)) == ("Tag=read", "0.000", step.measurement.window_s)
    assert float(max_ms) == (tally.max_us or 0) / 1000
    assert HdrHistogram.decode(encoded).get_total_count() == tally.count


@given(st.lists(st.integers(1, 3_600_000_000), min_size=1, max_size=300))
def test_every_value_is_at_rank_ceil_n_p_and_the_last_the_exact_maximum(values: list[int]) -> None:
    lines = parsed(distribution(Histogram.of(values), max(values), sum(values)))
    ordered = sorted(values)
    for value_ms, share, count in lines:
        exact = ordered[rank_of(len(values), share * 100) - 1] if share else ordered[0]
        # To the top of its bucket, 0.1 % above at most, and to the three decimals that are printed.
        assert exact / 1000 - 0.0006 <= value_ms <= exact / 1000 * 1.001 + 0.0006
        assert count >= rank_of(len(values), share * 100) if share else count >= 1
    assert lines[-1] == (round(max(values) / 1000, 3), 1.0, len(values))
    assert [share for _, share, _ in lines] == sorted(share for _, share, _ in lines)


def test_of_six_samples_the_90th_percentile_is_the_highest_and_none_have_no_distribution() -> None:
    lines = parsed(distribution(Histogram.of([10, 20, 30, 40, 50, 60])))
    assert [value for value, share, _ in lines if share == 0.8] == [0.05]
    assert [value for value, share, _ in lines if share > 0.84] == [0.06, 0.06]
    with pytest.raises(InvalidMeasurement, match="no samples"):
        distribution(Histogram())


def test_each_step_and_operation_has_a_file_and_a_step_without_a_histogram_is_named(
    run: RunStore, tmp_path: Path
) -> None:
    data = open_run(run.folder)
    done = export(open_run(run.folder), "hgrm", out=tmp_path)
    measured = {
        key: step.measurement for key, step in data.steps.items() if step.measurement is not None
    }
    assert {path.name for path in done.paths} == {
        f"{key.file_name}.read.hgrm" for key in measured if "read" in key.workload
    } | {f"{key.file_name}.write.hgrm" for key in measured if "write" in key.workload} | {
        f"{key.file_name}.hlog" for key in measured
    }
    for key, measurement in measured.items():
        (tally,) = measurement.tallies
        lines = parsed((tmp_path / f"{key.file_name}.{tally.operation}.hgrm").read_text())
        assert lines[-1] == (present(tally.max_us) / 1000, 1.0, tally.count)
    says = "1 of 42 steps have no histogram: swift, swift, small-read, 16 workers, repeat 1"
    assert any(says in remark for remark in done.remarks)


@pytest.mark.parametrize(
    ("key", "left", "what"), [("latency", [], ", read: "), ("started_at", ["read.hgrm"], ": 'no ")]
)
def test_what_cannot_be_read_is_left_out_and_named(
    tmp_path: Path, key: str, left: list[str], what: str
) -> None:
    store = short_run(tmp_path / "runs", repeats=1)
    steps = store.folder / "steps.jsonl"
    steps.write_text(steps.read_text().replace(f'"{key}":"', f'"{key}":"no ', 1))
    done = export(open_run(store.folder), "hgrm", out=tmp_path)
    names = {path.name.partition(".r0.")[::2] for path in done.paths}
    assert names == {("swift.swift.small-read.w1", end) for end in ("read.hgrm", "hlog")} | {
        ("rgw-beast.swift.small-read.w1", end) for end in left
    }
    (remark,) = done.remarks
    assert f"rgw-beast, swift, small-read, 1 workers, repeat 1{what}" in remark
