import gzip
import logging
import os
import re
import ssl
import subprocess
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_influx import FakeInflux, InfluxReply
from fake_run import WORKLOADS, StepFaults, fake_run
from grafana_boards import BOARD, TARGETS, asked_for
from made_rows import altered, present, summarize
from made_up import fake_measurement
from weighbridge.common.errors import InvalidMeasurement, TargetError, UsageError
from weighbridge.conductor.plan import AGAIN
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.use import StepUse
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Measurement, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.show import influx as influx_server
from weighbridge.results.show.influx import (
    Away,
    InfluxConnection,
    InfluxServer,
    RunPoints,
    WriteRefused,
    point,
    send_run,
)

SMALL = (altered(WORKLOADS[0], workers=(1, 4), runtime=3.0),)
LONG = (*SMALL, altered(WORKLOADS[1], workers=(4,), runtime=12.0))


def named(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def documented() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Tags and fields of each measurement, as docs/influxdb.md has them."""
    text = (Path(__file__).parents[3] / "docs" / "influxdb.md").read_text()
    of_all = text[text.index("Tags of all but the first are") : text.index("| measurement")]
    tags, fields = {}, {}
    for line in text.splitlines():
        cells = line.split("|")
        if cells[1:2] and "`weighbridge_" in cells[1]:
            name = cells[1].strip(" `")
            tags[name] = {"run", "suite"} if name == "weighbridge_run" else named(cells[3] + of_all)
            fields[name] = named(cells[4])
    of_step = text[text.index("Fields of `weighbridge_step`") :].split("\n\n")[1]
    fields["weighbridge_step"] = named("".join(one.split("|")[2] for one in of_step.splitlines()))
    return tags, fields


TAGS, FIELDS = documented()


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
    head, fields, at = line.split(" ")
    name, *tags = head.split(",")
    return (
        name,
        dict(one.split("=") for one in tags),
        dict(one.split("=") for one in fields.split(",")),
        int(at),
    )


def fields_of(store: RunStore, step: StepResult, name: str) -> list[dict[str, str]]:
    found = map(split, RunPoints(store).step(step))
    return [fields for kind, _, fields, _ in found if kind == name]


def measured_step(store: RunStore) -> tuple[StepResult, Measurement]:
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
        name: TAGS[name] for name in TAGS if name != "weighbridge_live"
    }
    # The fake drivers report no first bytes, no workload is offered beyond capacity or has a fault,
    # and the fake machine reports no other programs.
    first_bytes = {
        f"first_byte_{of}{end}" for of in ("", "p50_", "p99_") for end in ("ms", "at_least")
    }
    rare = {one.column for one in METRICS.values() if one.of_overload or one.of_outage}
    untold = {*first_bytes, *rare, "others_share"}
    assert {name: fields for name, (_, fields) in seen.items()} == {
        name: FIELDS[name] - untold for name in seen
    }


def test_lower_bounds_are_marked_and_a_step_has_the_use_of_other_programs(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, measured = measured_step(store)
    (tally,) = measured.tallies
    late = Histogram.of([9_000_000] * (tally.count // 4)).encode()
    stalled = altered(tally, in_flight=late, in_flight_max_us=9_000_000)
    step = altered(step, measurement=altered(measured, tallies=(stalled,)))
    monkeypatch.setattr("weighbridge.results.show.influx.step_use", lambda *_: StepUse(others=0.42))
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


def test_a_host_without_a_limit_of_cpus_has_cpus_used_and_no_share(store: RunStore) -> None:
    step, _ = measured_step(store)
    telemetry = present(store.telemetry(step.key))
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


def test_samples_without_a_window_and_a_run_without_telemetry_have_no_points_of_hosts(
    tmp_path: Path,
) -> None:
    workload = altered(SMALL[0], workers=(1,))
    copy = fake_run(tmp_path, layouts=("rgw-beast",), workloads=[workload], repeats=1)
    (step,) = copy.steps()
    telemetry = present(copy.telemetry(step.key))
    with copy.record_telemetry(telemetry.head) as file:
        file.write(altered(one, phase="unplaced") for one in telemetry.hosts)
    names = {split(line)[0] for line in lines(copy)}
    assert names == {"weighbridge_run", "weighbridge_second", "weighbridge_step"}
    (copy.folder / "telemetry" / f"{step.key.file_name}.jsonl").unlink()
    assert {split(line)[0] for line in lines(copy)} == names


def test_live_rates_have_the_tags_of_their_step(store: RunStore) -> None:
    (line,) = RunPoints(store).live(store.steps()[0].key, "measure", (120.5, 1e6), 0, 1415102400500)
    name, tags, fields, at = split(line)
    assert (name, at) == ("weighbridge_live", 1415102400500)
    assert set(tags) == TAGS[name] - {"layer"}
    assert set(fields) == FIELDS[name]
    assert fields == {"ops_s": "120.5", "bytes_s": "1000000.0", "errors": "0i"}


def test_an_invalid_time_is_an_error(store: RunStore) -> None:
    step, measured = measured_step(store)
    odd = altered(step, measurement=altered(measured, started_at="yesterday"))
    with pytest.raises(InvalidMeasurement, match="'yesterday' is not a time"):
        list(RunPoints(store).step(odd))


AT_MS = 1415102400000


@pytest.mark.parametrize(
    ("tags", "fields", "line"),
    [
        ({"run": "r"}, {"ops": 3, "mean_ms": 2.0}, ["m,run=r ops=3i,mean_ms=2.0"]),
        # What is unknown is omitted and never 0.
        ({"run": "r", "layer": None}, {"ops": 0, "p90": None}, ["m,run=r ops=0i"]),
        ({"a b": "x=1, y"}, {"ops": 3}, [r"m,a\ b=x\=1\,\ y ops=3i"]),
        ({"run": "r"}, {"p90": None}, []),
    ],
)
def test_a_point_is_a_line_of_what_is_known_of_it(
    tags: dict[str, str | None], fields: dict[str, int | float | None], line: list[str]
) -> None:
    assert list(point("m", tags, fields, AT_MS)) == [f"{one} {AT_MS}" for one in line]


@pytest.mark.parametrize("text", ["two\nlines", "ends in a \\", "bell\a"])
def test_a_text_that_servers_read_differently_is_refused(text: str) -> None:
    with pytest.raises(InvalidMeasurement, match="cannot be written in line protocol"):
        list(point("m", {"run": text}, {"ops": 3}, AT_MS))


@given(
    st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f"), min_size=1).filter(
        lambda text: not text.endswith("\\")
    )
)
def test_every_tag_is_read_back_as_it_was(text: str) -> None:
    (line,) = point("m", {"tag": text}, {"ops": 3}, AT_MS)
    tag, _, rest = line.removeprefix("m,tag=").rpartition(" ops=")
    assert rest == f"3i {AT_MS}"
    assert not re.search(r"(?<!\\)[,= ]", tag)
    assert re.sub(r"\\([,= ])", r"\1", tag) == text


@pytest.fixture
def sent_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A run of one step with points, which are sent in batches of seven."""
    monkeypatch.setattr(influx_server, "BATCH", 7)
    failed = StepFaults(failed=(("swift", "small-read", 4),))
    return fake_run(tmp_path, layouts=("swift",), workloads=SMALL, repeats=1, spoilt=failed)


@pytest.fixture
def sent_lines(sent_store: RunStore) -> list[str]:
    return lines(sent_store)


def server(influx: FakeInflux) -> InfluxServer:
    return InfluxServer(url=influx.url)


def test_every_point_is_sent_once_in_batches_and_steps_without_a_measurement_are_counted(
    sent_store: RunStore, sent_lines: list[str]
) -> None:
    with FakeInflux() as influx:
        sent = send_run(sent_store, server(influx))
    assert influx.taken == sent_lines
    assert (sent.points, sent.steps, sent.unplaced) == (len(sent_lines), 1, 1)
    assert "1 steps without a measurement" in sent.words
    assert [line for write in influx.writes for line in write.lines] == sent_lines
    assert {len(write.lines) for write in influx.writes[:-1]} == {7}


def test_a_server_that_is_away_is_tried_again(sent_store: RunStore, sent_lines: list[str]) -> None:
    soon = InfluxReply(503, fields=(("Retry-After", "0"),))
    answers = [InfluxReply(503), soon, InfluxReply(how="torn"), InfluxReply(429)]
    with FakeInflux(*answers) as influx:
        send_run(sent_store, server(influx), retry_s=0.01)
    assert influx.taken == sent_lines


@pytest.mark.parametrize("asked", [(), (("Retry-After", "86400"),)])
def test_a_server_that_stays_away_is_an_error_with_the_number_of_points_sent(
    sent_store: RunStore, asked: tuple[tuple[str, str], ...]
) -> None:
    away = InfluxReply(503, '{"message":"busy"}', asked)
    with (
        FakeInflux(InfluxReply(), otherwise=away) as influx,
        pytest.raises(TargetError, match="answered 503: busy\n7 points were sent") as at,
    ):
        send_run(sent_store, server(influx), retry_s=0.01)
    assert isinstance(at.value.__cause__, Away)
    assert {tuple(write.lines) for write in influx.writes} == {
        tuple(write.lines) for write in influx.writes[:2]
    }


def test_refusals_are_errors_at_once(sent_store: RunStore) -> None:
    with (
        FakeInflux(InfluxReply(401, '{"error":"authorization failed"}')) as influx,
        pytest.raises(WriteRefused, match="authorization failed"),
    ):
        send_run(sent_store, server(influx))
    assert len(influx.writes) == 1


def test_refused_lines_do_not_block_others_and_are_an_error(
    sent_store: RunStore, sent_lines: list[str]
) -> None:
    conflict = InfluxReply(400, '{"error":"partial write: field type conflict"}')
    with (
        FakeInflux(InfluxReply(), conflict) as influx,
        pytest.raises(TargetError, match="partial write") as at,
    ):
        send_run(sent_store, server(influx))
    assert influx.taken == [*sent_lines[:7], *sent_lines[14:]]
    assert f"{len(sent_lines) - 7} points were sent; of 7 others" in at.value.message


def test_of_a_step_measured_again_only_the_last_result_is_sent(sent_store: RunStore) -> None:
    first = sent_store.steps()[0]
    later = altered(present(first.measurement), started_at="2014-11-05T12:00:00Z")
    sent_store.append(altered(first, measurement=later))
    with FakeInflux() as influx:
        send_run(sent_store, server(influx))
    steps = [line for line in influx.taken if line.startswith("weighbridge_step")]
    assert [line.rsplit(" ", 1)[-1] for line in steps] == [str(1415188800000 + 3000)]


VARIABLES = {one["name"]: one for one in BOARD["templating"]["list"] if one["type"] == "query"}
QUERIES = [
    *(target["query"] for target in TARGETS),
    *(one["query"] for one in VARIABLES.values()),
    BOARD["annotations"]["list"][0]["target"]["query"],
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_uses_only_measurements_fields_and_tags_that_are_written(query: str) -> None:
    (name,) = re.findall(r'FROM "(\w+)"', query)
    assert {*re.findall(r'"([a-z]\w*)"', query)} <= {name, *TAGS[name], *FIELDS[name]}
    assert {*re.findall(r"\$([a-z]+)\b", query)} <= {*VARIABLES}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target["query"][:60]))
def test_a_panel_draws_series_of_gateways_only_for_each_set_of_tags(target: dict[str, str]) -> None:
    query = target["query"]
    name, field, _ = asked_for(query)
    assert field in FIELDS[name]
    grouped = {*re.findall(r'"(\w+)"', query.partition(" GROUP BY ")[2])}
    assert TAGS[name] - {"suite"} <= grouped  # a run has one suite
    assert {*re.findall(r"\$tag_([a-z]+)", target["alias"])} <= grouped
    assert "\"layer\" = ''" in query  # what is below a gateway is no layout's
    assert "$timeFilter" in query


def test_an_a_a_control_is_not_drawn_among_the_layouts() -> None:
    layout = VARIABLES["layout"]
    shown = re.compile(layout["regex"].strip("/"))
    names = ("rgw-beast", f"rgw-beast{AGAIN}", "swift")
    assert [name for name in names if shown.search(name)] == ["rgw-beast", "swift"]
    assert "allValue" not in layout  # all of them are then those that are listed


TOKEN = "user:planted-secret"
ENVIRONMENT = {"WEIGHBRIDGE_INFLUX_TOKEN": TOKEN}
LINES = ["m,run=r ops=3i 1415102400000", "m,run=r ops=4i 1415102401000"]


def sent(url: str, token: str = TOKEN, deadline_s: float = 5.0) -> InfluxConnection:
    environment = {"WEIGHBRIDGE_INFLUX_TOKEN": token}
    server = InfluxServer.parse(url, environment)
    connection = InfluxConnection(server, deadline_s=deadline_s, retry_s=0.01)
    connection.write(LINES)
    connection.close(20)
    assert (connection.given, connection.sent + connection.lost) == (2, 2)
    return connection


def lost(reply: InfluxReply, deadline_s: float = 5.0) -> Away | WriteRefused:
    """The error by which the lines are lost if the server always sends this reply."""
    with FakeInflux(otherwise=reply) as influx:
        connection = sent(influx.url, deadline_s=deadline_s)
    assert connection.lost == 2
    return present(connection.error)


def test_a_write_is_one_request_in_milliseconds_with_bucket_organization_and_token() -> None:
    with FakeInflux() as influx:
        assert sent(f"{influx.url}/?bucket=weights&org=lab").sent == 2
    (write,) = influx.writes
    assert write.path == "/api/v2/write"
    assert write.query == {"bucket": "weights", "org": "lab", "precision": "ms"}
    assert write.token == f"Token {TOKEN}"
    assert write.lines == LINES
    with FakeInflux() as influx:
        sent(influx.url, token="")
    assert influx.writes[0].token is None


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (InfluxReply(500, '{"code":"unavailable","message":"busy\\nnow"}'), "500: busy now$"),
        (InfluxReply(502), "answered 502"),
        *(
            (InfluxReply(503, fields=(("Retry-After", asked),)), "answered 503")
            for asked in ("Fri, 31 Dec 9999 23:59:59 GMT", "-5", "nan", "inf", "1e300", "soon")
        ),
        (InfluxReply(429), "answered 429"),
        # Of a proxy's page only the reason is shown.
        (InfluxReply(503, "\n<html><h1>503</h1></html>"), "503: Service Unavailable$"),
        (InfluxReply(503, "[" * 10_000), r"503: \[\["),
        (InfluxReply(how="torn"), "HTTP"),
        (InfluxReply(how="hang"), "no complete answer within 0.2 s$"),
        (InfluxReply(how="drip"), "no complete answer within 0.2 s$"),
        *((InfluxReply(one, how="endless"), "more than 1048576 bytes") for one in (204, 400)),
    ],
)
def test_a_server_that_cannot_write_is_retried_then_away(reply: InfluxReply, words: str) -> None:
    error = lost(reply, deadline_s=0.2 if reply.how in ("hang", "drip") else 5.0)
    assert isinstance(error, Away)
    assert re.search(words, error.message)


@pytest.mark.parametrize(
    ("status", "batch", "advice"),
    [
        (401, False, "WEIGHBRIDGE_INFLUX_TOKEN"),
        (403, False, "right to "),
        (404, False, "?bucket=NAME"),
        *((status, True, "") for status in (400, 413, 422)),
    ],
)
def test_a_refusal_is_an_error_with_its_reason(status: int, batch: bool, advice: str) -> None:
    error = lost(InfluxReply(status, '{"error":"partial write: input field \\"ops\\" dropped=1"}'))
    assert isinstance(error, WriteRefused)
    assert f'answered {status}: partial write: input field "ops"' in error.message
    assert error.batch is batch
    assert advice in error.advice


@pytest.mark.parametrize("status", [200, 301, 302, 307, 308])
def test_an_answer_with_another_status_is_no_success_and_no_redirect_is_followed(
    status: int,
) -> None:
    with FakeInflux() as elsewhere:
        place = f"{elsewhere.url}/api/v2/write"
        error = lost(InfluxReply(status, fields=(("Location", place),)))
    assert isinstance(error, WriteRefused)
    assert f"answered {status}" in error.message
    assert not elsewhere.writes


@pytest.mark.parametrize(
    "body",
    [
        lambda: "\xe9 planted".encode("latin-1"),
        lambda: gzip.compress(b"a" * 2**27, 1),
        lambda: "é".encode("utf-16"),
    ],
)
def test_an_error_whose_body_is_no_text_keeps_its_status(body: Callable[[], bytes]) -> None:
    error = lost(InfluxReply(401, body(), (("Content-Encoding", "gzip"),)))
    assert error.message.endswith("answered 401: Unauthorized")


@pytest.mark.parametrize(
    "spelt",
    [
        lambda token: token,
        lambda token: quote(token, safe=""),
        lambda token: b64encode(f"u:{token}".encode()).decode(),
        lambda token: token.replace("/", "\\u002f"),
        lambda token: token.replace("/", "&#47;"),
    ],
)
def test_a_token_is_hidden_however_a_server_repeats_it(spelt: Callable[[str], str]) -> None:
    token = "aB3/cD4/eF5gH6iJ7kL8mN9oP0"
    with FakeInflux(otherwise=InfluxReply(401, f"x {spelt(token)}")) as influx:
        error = present(sent(influx.url, token=token).error)
    assert re.search(r"answered 401: x (dTp)?\*{3}$", error.message)


def test_a_server_with_an_untrusted_certificate_is_sent_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    named = "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    command = [*made.split(), *named.split(), "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with FakeInflux(tls=context) as influx:
        error = sent(influx.url).error
        assert isinstance(error, WriteRefused)
        assert "certificate is not accepted" in error.message
        assert "SSL_CERT_FILE" in error.advice
        assert not influx.writes
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        sent(influx.url)
        assert influx.taken == LINES


def test_a_token_is_in_no_error_no_text_and_no_log(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    answers = [
        InfluxReply(503, f'{{"message":"{TOKEN}"}}'),
        InfluxReply(how="torn"),
        InfluxReply(401, f"no such user: {TOKEN}"),
    ]
    server = InfluxServer.parse("http://h", ENVIRONMENT)
    with FakeInflux(*answers) as influx:
        server = server.model_copy(update={"url": influx.url})
        connection = InfluxConnection(server, said.append, retry_s=0.01)
        connection.write(LINES)
        connection.close(20)
    assert len(influx.writes) == 3
    assert influx.writes[-1].token == f"Token {TOKEN}"
    out, err = capfd.readouterr()
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("root")]
    shown = [*said, *ours, out, err, str(connection), repr(server), repr(connection.error)]
    assert "answered 401: no such user: ***" in "".join(shown)
    assert "planted-secret" not in "".join(shown)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        *(
            (url, "not of the form http://")
            for url in ("influx.example:8086", "ftp://influx.example", "http://")
        ),
        *((url, "its host or port is invalid") for url in ("http://h:port", "http://h:99999")),
        ("http://h/?buckt=b", "did you mean 'bucket'"),
        ("http://h/?bucket=", "empty bucket"),
        ("http://user:planted-secret@h", "user or a password"),
        ("user:planted-secret@h", "not of the form http://"),
        ("http://h/?token=planted-secret", "bucket and org, nothing else"),
        ("http://h/?planted-secret", "bucket and org, nothing else"),
        ("http://h/#planted-secret", "not of the form http://"),
        ("http://user:planted-secret", "its host or port is invalid"),
        ("http://planted-secret\u2100@h", "its host or port is invalid"),
    ],
)
def test_invalid_urls_and_those_with_secrets_are_refused_unrepeated(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as at:
        InfluxServer.parse(url, ENVIRONMENT)
    assert "planted-secret" not in str(at.value)


def test_a_server_has_the_option_that_it_was_parsed_from() -> None:
    wholly = "http://h:8086?bucket=b&org=o"
    for url in ("http://h:8086", "https://h/influx", wholly, "http://h?bucket=a+b"):
        server = InfluxServer.parse(url, ENVIRONMENT)
        assert server.option == url
        assert InfluxServer.parse(server.option, ENVIRONMENT) == server


def token_of(**environment: str) -> str:
    return InfluxServer.parse("http://h", environment).token.get_secret_value()


def test_a_missing_token_is_an_error_and_an_empty_one_is_not() -> None:
    with pytest.raises(UsageError, match=r"\$WEIGHBRIDGE_INFLUX_TOKEN is not set"):
        token_of()
    assert token_of(WEIGHBRIDGE_INFLUX_TOKEN="") == ""
    assert token_of(INFLUX_TOKEN="t") == "t"


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("planted-secret\n", 0o640, "others may read it"),
        *((text, 0o600, "token") for text in ("", "two words\n", "caf\u00e9")),
    ],
)
def test_a_token_is_read_from_a_file_that_only_its_owner_may_read(
    tmp_path: Path, text: str, mode: int, words: str
) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(UsageError, match=words) as at:
        token_of(WEIGHBRIDGE_INFLUX_TOKEN_FILE=str(path))
    assert "planted-secret" not in str(at.value)
    path.write_text("planted-secret\n")
    path.chmod(0o600)
    assert token_of(WEIGHBRIDGE_INFLUX_TOKEN_FILE=str(path)) == "planted-secret"


def test_a_token_or_authorities_that_never_end_are_refused_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe", 0o600)
    sparse = tmp_path / "sparse"
    sparse.touch(0o600)
    os.truncate(sparse, 2**33)
    for path, words in ((pipe, "is a pipe"), (sparse, "is larger than")):
        with pytest.raises(UsageError, match=words):
            token_of(WEIGHBRIDGE_INFLUX_TOKEN_FILE=str(path))
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        with pytest.raises(UsageError, match=rf"SSL_CERT_FILE: .*{words}"):
            InfluxServer.parse("https://h", ENVIRONMENT)
