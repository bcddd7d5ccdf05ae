"""Endpoints that a command line names become the layouts that files would make of them."""

from __future__ import annotations

import csv
import io
import math
import os
import signal
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from stub_run import SUITE, Run
from tests.weighbridge.killed_runs import LAYOUTS, compared_stubs, only
from tls_proxy import authority
from weighbridge import selection
from weighbridge.budget import (
    ASSUMED,
    SHORTEST_WINDOW_S,
    Budgeted,
    RepeatScatter,
    claim,
    comparisons_of,
    fit,
    sentences,
    spread_here,
)
from weighbridge.command import main, weighbridge
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.plan import Plan, make_plan
from weighbridge.conductor.time_estimate import (
    REPORTING_S,
    TimeAllowance,
    TimeEstimate,
    show_duration,
)
from weighbridge.gateways.existing.existing import Existing
from weighbridge.gateways.existing.settings import ExistingSettings
from weighbridge.results.features.find import highest_rates
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.rate_search import MOST_STEPS
from weighbridge.results.figures.metrics import compared
from weighbridge.results.figures.statistics import LEVEL, smallest_ratio
from weighbridge.results.run.resolved import Sheet
from weighbridge.results.run.step import Pass, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.selection import EndpointLine, endpoint_layouts
from weighbridge.suites import Overload
from weighbridge.topologies.loader import Planned, load_layout

HARDWARE = selection.hardware_named("this-machine")
FILE = """
name: a
about: S3 at https://store.example:8443 and Swift at http://store.example/auth/v1.0
gateway: existing
release: any
place: {}
settings:
  about: S3 at https://store.example:8443 and Swift at http://store.example/auth/v1.0
  s3: {url: "https://store.example:8443", credentials: profile theirs}
  swift: {auth_url: "http://store.example/auth/v1.0", user_env: ST_USER, key_env: ST_KEY}
"""


def settings(planned: Planned) -> ExistingSettings:
    assert isinstance(planned.gateway, Existing)
    return planned.gateway.settings


def of_line(environment: dict[str, str], **line: tuple[str, ...]) -> list[ExistingSettings]:
    return [settings(one) for one in endpoint_layouts(EndpointLine(**line), HARDWARE, environment)]


def refused(environment: dict[str, str], **line: tuple[str, ...]) -> list[str]:
    with pytest.raises(DocumentError) as error:
        endpoint_layouts(EndpointLine(**line), HARDWARE, environment)
    return [str(one) for one in error.value.faults]


def test_a_layout_of_a_line_is_that_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(FILE)
    line = EndpointLine(
        s3=("a=https://store.example:8443",),
        swift=("a=http://store.example/auth/v1.0",),
        profiles=("theirs",),
    )
    (planned,) = endpoint_layouts(line, HARDWARE, {})
    by_file = load_layout(tmp_path / "a.yaml", HARDWARE)
    assert settings(planned) == settings(by_file)
    assert planned.layout == by_file.layout
    (tmp_path / "again.yaml").write_text(planned.text)
    assert load_layout(tmp_path / "again.yaml", HARDWARE).layout == planned.layout


def test_a_profile_is_of_all_s3_endpoints_or_of_the_one_that_it_names() -> None:
    urls = ("a=http://a.example", "b=http://b.example", "c=http://c.example")
    for profiles in (("usual", "b=theirs"), ("b=theirs", "usual")):
        found = of_line({}, s3=urls, profiles=profiles)
        keys = [one.s3.credentials for one in found if one.s3 is not None]
        assert keys == ["profile usual", "profile theirs", "profile usual"]
    alone = of_line({}, s3=urls, profiles=("b=theirs",))
    assert [one.s3.credentials for one in alone if one.s3] == ["aws", "profile theirs", "aws"]


def test_keys_of_swift_are_of_all_endpoints_or_of_the_one_that_their_names_end_with() -> None:
    own = {"ST_USER": "u", "ST_KEY": "k", "ST_USER_OLD_STORE": "u2", "ST_KEY_OLD_STORE": "k2"}
    urls = ("old-store=http://a.example/auth/v1.0", "new=http://b.example/auth/v1.0")
    found = [one.swift for one in of_line(own, swift=urls) if one.swift is not None]
    assert [(one.user_env, one.key_env) for one in found] == [
        ("ST_USER_OLD_STORE", "ST_KEY_OLD_STORE"),
        ("ST_USER", "ST_KEY"),
    ]


def test_with_nothing_but_a_token_the_url_of_swift_is_its_storage() -> None:
    url = ("a=http://a.example/v1/AUTH_me",)
    (token,) = of_line({"OS_AUTH_TOKEN": "t"}, swift=url)
    assert token.swift is not None
    assert (token.swift.storage_urls, token.swift.token_env) == (
        ("http://a.example/v1/AUTH_me",),
        "OS_AUTH_TOKEN",
    )
    (keyed,) = of_line({"OS_AUTH_TOKEN": "t", "ST_KEY": "k"}, swift=url)
    assert keyed.swift is not None
    assert keyed.swift.token_env is None


def test_region_and_authorities_come_from_the_variables_of_the_usual_tools(tmp_path: Path) -> None:
    ca, _ = authority(tmp_path, ["localhost"])
    here = {"AWS_REGION": "eu-west-1", "AWS_CA_BUNDLE": str(ca)}
    secure, plain = of_line(here, s3=("a=HTTPS://a.example", "b=http://b.example"))
    assert secure.s3 is not None
    assert plain.s3 is not None
    assert (secure.s3.region, secure.s3.ca_file) == ("eu-west-1", str(ca))
    assert (plain.s3.region, plain.s3.ca_file) == ("eu-west-1", None)
    (fault,) = refused({"AWS_CA_BUNDLE": "/none"}, s3=("a=https://a.example",))
    assert fault.startswith("$AWS_CA_BUNDLE:1:1: s3.ca_file: /none: No such file")


def test_a_file_of_authorities_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "ca.pem")
    url = ("a=https://a.example",)
    for variable, urls in (("AWS_CA_BUNDLE", {"s3": url}), ("OS_CACERT", {"swift": url})):
        (fault,) = refused({variable: str(pipe), "ST_KEY": "k"}, **urls)
        assert f"ca_file: {pipe}: is a pipe, not a regular file" in fault


def test_all_that_is_wrong_is_reported_at_once_where_it_was_given() -> None:
    faults = refused(
        {},
        s3=("a=htp://x", "a=http://y", "http://z", "B=http://x", "c="),
        swift=("a=http://x/auth?b",),
        profiles=("d=x", "a= x"),
    )
    heads = [one.splitlines()[0] for one in faults]
    for head in (
        "--s3:1:1: expected NAME=URL, such as a=https://store.example:8443",
        "--s3:1:3: the URL is missing",
        "--profile:1:1: there is no --s3 d=URL (known: a, B)",
        "--s3:1:3: s3.url: give a URL such as https://store.example:8443",
        "--swift:1:3: swift.auth_url: give a URL without ? and #",
        "--s3:1:1: name: use lower-case letters, digits and hyphens, 40 at most, no hyphen first",
    ):
        assert head in heads
    assert any(head.startswith("--s3:1:1: 'a' has a URL already: ") for head in heads)
    assert any(head.startswith("--profile:1:3: s3.credentials: ") for head in heads)


def test_a_key_in_a_url_is_refused_and_not_repeated() -> None:
    (fault,) = refused({}, s3=("a=https://me:planted@store.example",))
    assert "a user or key must not be in a URL" in fault
    assert "planted" not in fault


def test_endpoints_have_their_own_suite_hardware_and_apis() -> None:
    line = EndpointLine(s3=("a=http://a.example", "b=http://b.example"))
    chosen = selection.select(None, (), None, line=line)
    assert (chosen.suite.name, chosen.suite.api, chosen.hardware.name) == (
        "endpoints",
        ("s3",),
        "this-machine",
    )
    assert [one.layout.name for one in chosen.layouts] == ["a", "b"]
    other = selection.select("quick", (), None, line=line)
    assert (other.suite.name, other.suite.api) == ("quick", ("s3",))


def test_an_s3_endpoint_and_a_swift_endpoint_are_not_compared() -> None:
    line = EndpointLine(s3=("a=http://a.example",), swift=("c=http://c.example/auth/v1.0",))
    chosen = selection.select(None, (), None, line=line)
    with pytest.raises(UsageError, match="a does not have the swift API; c does not have the s3"):
        make_plan(chosen.suite, chosen.hardware, chosen.layouts)


ASSUME = RepeatScatter(share=ASSUMED)

LONG = [{**workload, "runtime": "60s", "warmup": "1s"} for workload in SUITE["workloads"]]


def fitted(run: Run, budget_s: float) -> Budgeted:
    return fit(run.suite, run.hardware, run.planned, budget_s)


def repeat_s(run: Run) -> float:
    return TimeEstimate.of(run.plan()).left_s()


def test_as_many_repeats_are_planned_as_fit_whatever_the_suite_says(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for repeats in (5, 7):
        found = fitted(run, REPORTING_S + repeats * repeat_s(run) + 1)
        assert found.plan.suite.repeats == repeats
        assert len(found.plan.visits) == repeats * 2
        assert found.seconds <= found.plan.budget_s  # type: ignore[operator]
        assert not found.shortened


def test_windows_are_shortened_if_too_few_repeats_for_a_claim_would_fit(tmp_path: Path) -> None:
    run = Run(tmp_path, workloads=LONG)
    found = fitted(run, REPORTING_S + 3 * repeat_s(run))
    assert found.plan.suite.repeats == 5
    windows = {workload.name: workload.runtime for workload in found.plan.suite.workloads}
    assert all(SHORTEST_WINDOW_S < window < 60 for window in windows.values())
    assert found.seconds <= REPORTING_S + 3 * repeat_s(run)
    lines = sentences(found, 600, ASSUME)
    assert any("small from 60 s to" in text for text in lines)
    assert any("36 requests" in text for text in lines)
    assert {key.workload for visit in found.plan.visits for key in found.plan.keys(visit)} == set(
        windows
    )
    assert all(
        one.runtime == windows[one.name]
        for ways in found.plan.passes.values()
        for way in ways
        for one in way.workloads
    )


def test_windows_keep_their_length_if_shortening_them_allows_no_claim(tmp_path: Path) -> None:
    run = Run(tmp_path)
    found = fitted(run, REPORTING_S + 3.5 * repeat_s(run))
    assert found.plan.suite.repeats == 3
    assert not found.shortened
    longer = show_duration(REPORTING_S + 5 * repeat_s(run))
    assert (
        sentences(found, 600, ASSUME)[-1]
        == f"n = 3: no difference can be claimed, which needs 5 repeats: about {longer}"
    )


def test_one_repeat_gets_the_longest_windows_that_fit(tmp_path: Path) -> None:
    run = Run(tmp_path, workloads=LONG)
    found = fitted(run, REPORTING_S + 0.5 * repeat_s(run))
    assert found.plan.suite.repeats == 1
    assert all(SHORTEST_WINDOW_S <= one.runtime < 60 for one in found.plan.suite.workloads)
    assert found.seconds <= REPORTING_S + 0.5 * repeat_s(run)


def test_a_budget_too_short_for_one_repeat_is_refused_with_its_time(tmp_path: Path) -> None:
    run = Run(tmp_path, workloads=LONG)
    with pytest.raises(
        UsageError,
        match=r"too short for one repeat, which takes about .* even with windows of 10 s",
    ):
        fitted(run, 30)


def overloaded(plan: Plan) -> dict[str, tuple[Pass, ...]]:
    """The passes of a plan, with all workloads beyond capacity."""
    beyond = {"overload": Overload(within=1.0), "rate_per_s": 10.0}
    return {
        name: tuple(
            way.model_copy(
                update={"workloads": tuple(one.model_copy(update=beyond) for one in way.workloads)}
            )
            for way in passes
        )
        for name, passes in plan.passes.items()
    }


def test_claims_depend_on_repeats_scatter_and_the_number_of_tests(tmp_path: Path) -> None:
    plan = Run(tmp_path, repeats=7).plan()
    tests = comparisons_of(plan)
    # For each metric 2 and 1 cells of reads, and 1 of writes; goodput is of overload alone, and
    # stalls of steps in which something dies.
    assert tests == 4 * sum(not (metric.of_overload or metric.of_outage) for metric in compared())
    beyond = plan.model_copy(update={"passes": overloaded(plan)})
    assert comparisons_of(beyond) == 4 * sum(not metric.of_outage for metric in compared())
    assert "no difference can be claimed" in claim(plan, ASSUME, 4)
    least = (smallest_ratio(0.14, 7, level=LEVEL / tests, bound=1.1) - 1) * 100
    sentence = claim(plan, RepeatScatter(share=0.14, cells=24, run="earlier"))
    shown = (
        f"differences of about {math.ceil(least)} % would be found 8 times in 10 in each of "
        f"{tests} tests"
    )
    assert (
        sentence == f"n = 7: if repeats scatter by 14 % as in earlier (median of 24 cells), {shown}"
    )
    assert least > (smallest_ratio(0.14, 7) - 1) * 100 + 10
    assert "if repeats scatter by 15 % (assumed: no earlier run on this machine)" in claim(
        plan, ASSUME
    )


@pytest.mark.long
def test_the_scatter_is_that_of_the_newest_run_that_has_one(tmp_path: Path) -> None:
    here, run = tmp_path / "runs", Run(tmp_path, repeats=3)
    assert spread_here(here, run.hardware) == ASSUME
    (here / "9-no-run").mkdir(parents=True)
    (here / "9-no-run" / "manifest.json").write_text("{}")
    sheet = Sheet(title="machine", facts=facts_of_machine(run.hardware))
    made = []
    for repeats, facts in (
        (3, sheet),
        (1, sheet),
        (3, sheet.model_copy(update={"facts": {**sheet.facts, "cpu": "another"}})),
    ):
        one = Run(tmp_path / str(len(made)), repeats=repeats)
        store = RunStore.create(here, plan_yaml="", plan=one.plan(), suite="trial", sheets=[facts])
        one.into(store)
        made.append(store.folder.rename(here / f"{len(made)}-run"))
    found = spread_here(here, run.hardware)
    rows = open_run(made[0]).rows
    scatter = [
        statistics.stdev(math.log(point.value("throughput")) for point in row.used) for row in rows
    ]
    tails = [
        statistics.stdev(math.log(point.value("p90")) for point in row.used if point.value("p90"))
        for row in rows
    ]
    assert (found.run, found.cells) == ("0-run", 2 * len(rows))
    assert found.share == pytest.approx(statistics.median([*scatter, *tails]))


def test_an_allowance_reserves_time_for_the_report_and_subtracts_time_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("weighbridge.conductor.time_estimate.time.monotonic", lambda: now[0])
    one = TimeAllowance(600, spent_s=200)
    now[0] = 150.0
    assert one.left_s() == 600 - 200 - 50 - REPORTING_S


def test_a_budget_with_a_number_of_repeats_is_refused() -> None:
    done = CliRunner().invoke(
        weighbridge, ["compare", "--budget", "2h", "--repeats", "5"], standalone_mode=False
    )
    assert isinstance(done.exception, UsageError)
    assert "--budget and --repeats both set" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "why"), [("2", "not a quantity"), ("soon", "not a quantity"), ("0s", "above 0")]
)
@pytest.mark.parametrize("verb", [["compare"], ["resume", "."]])
def test_a_budget_that_is_not_a_time_is_refused(verb: list[str], text: str, why: str) -> None:
    done = CliRunner().invoke(weighbridge, [*verb, "--budget", text])
    assert done.exit_code == 2
    assert why in done.output


Cli = Callable[..., tuple[str, str]]


@pytest.mark.parametrize("budget", ["9m30s", "9:30"])
def test_a_budget_may_be_a_time_as_it_is_printed(run_cli: Cli, tmp_path: Path, budget: str) -> None:
    ends = ("--s3", "a=http://a.example", "--s3", "b=http://b.example")
    words = ("--budget", budget, "--duration", "0:10", "--dry-run", "--out", tmp_path)
    out, _ = run_cli(0, "compare", *ends, *words)
    assert "9:30 is enough for" in out


LISTS = """\
  - name: lists
    objects: {size: 4KiB}
    operations: {list: 1}
    workers: [1]
    runtime: 2s
"""


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("COLUMNS", "200")
    return compared_stubs(tmp_path, monkeypatch, more="repeats: 5\n", workloads=LISTS)


@pytest.mark.parametrize(
    ("bound", "hint"),
    [
        (("p900<=50ms",), "did you mean 'p90'?"),
        (("p90<=50",), "is not a quantity"),
        (("p90<50ms",), "is not <="),
        (("throughput<=5ms",), "is not a latency"),
        (("p90<=50ms", "--driver", "cosbench"), "not at a rate"),
    ],
)
def test_a_wrong_bound_and_a_driver_without_rates_are_refused_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], run_cli: Cli, bound: tuple[str, ...], hint: str
) -> None:
    _, err = run_cli(2, *arguments, "--find", *bound)
    assert hint in err
    assert not (tmp_path / "runs").exists()


def test_the_answer_is_a_sentence_a_table_and_a_bar_in_terminal_and_report(
    tmp_path: Path, arguments: tuple[str, ...], run_cli: Cli
) -> None:
    out, err = run_cli(0, *arguments, "--find", "p90<=20ms")
    assert err == ""
    assert "no rate is searched for lists" in out
    sentence = next(line for line in out.splitlines() if line.startswith("4 KiB reads within"))
    assert sentence.startswith("4 KiB reads within p90 <= 20 ms over 4 connections: rgw-a serves ")
    assert ", swift-b " in sentence
    assert "provisional: few repeats" in sentence
    assert "The highest rates within" in out
    store = RunStore.open(only(tmp_path))
    assert {step.key.repeat for step in store.steps()} == {0}
    assert {step.key.workload for step in store.steps()} == {"small"}
    report = (store.derived / "report.html").read_text()
    assert "The highest rates within p90 &lt;= 20 ms" in report
    assert sentence.rstrip(".") in report.replace("&lt;", "<")
    assert 'id="highest-rates"' in report
    again = run_cli(0, "report", "--no-charts", store.folder)[0]
    assert sentence in again
    assert run_cli(0, "resume", "--no-charts", store.folder)[0].startswith(
        f"{store.folder}: every step is measured"
    )
    exported = ("export", store.folder, "--to", "csv", "--table", "steps", "--out", "-")
    lines = list(csv.DictReader(io.StringIO(run_cli(0, *exported)[0])))
    rates = [line["rate_per_s"] for line in lines if line["layout"] == "rgw-a"]
    assert rates[0] == ""
    assert all(float(rate) > 0 for rate in rates[1:])
    assert len(lines) == len(store.steps())


@pytest.mark.parametrize("at", [1, 3, 9])
def test_a_killed_search_is_resumed_by_the_command_and_nothing_is_measured_twice(
    tmp_path: Path, arguments: tuple[str, ...], run_cli: Cli, at: int
) -> None:
    child = os.fork()
    if not child:
        real, left = RunStore.append, [at]

        def append(store: RunStore, step: StepResult) -> None:
            real(store, step)
            left[0] -= step.key.rate_per_s is not None
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

        RunStore.append = append  # type: ignore[method-assign]  # in this process alone
        sys.argv = ["weighbridge", *arguments, "--find", "p90<=20ms"]
        try:
            main()
        finally:
            os._exit(70)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    folder = only(tmp_path)
    before = (folder / "steps.jsonl").read_bytes()
    run_cli(0, "report", "--no-charts", folder)
    found = highest_rates(open_run(folder))
    assert found is not None
    assert "the search is not finished" in found.sentences[0]
    out, _ = run_cli(0, "resume", "--no-charts", folder)
    assert (folder / "steps.jsonl").read_bytes().startswith(before)
    steps = RunStore.open(folder).steps()
    assert len({step.key for step in steps}) == len(steps)
    assert [step.order for step in steps] == list(range(len(steps)))
    assert "not over" not in out
    for layout in LAYOUTS:
        numbers = [step.key.search_step for step in steps if step.key.layout == layout]
        # The pretended gateways are faster or slower by their ports, which a resumed run changes.
        assert numbers == [None, *range(1, len(numbers))]
        assert 2 < len(numbers) <= MOST_STEPS
