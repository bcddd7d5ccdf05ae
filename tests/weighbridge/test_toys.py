"""Stores, fronts, hosts and drivers of other packages: the suite does not know their names."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.weighbridge import command_line
from tests.weighbridge.command_line import existing, null_target, s3_at
from weighbridge.results.figures.use import daemon_words, step_use
from weighbridge.results.run.store import RunStore

pytestmark = pytest.mark.long  # runs complete comparisons as programs

SUPPORT = Path(__file__).parents[1] / "support"
BARE = (
    "name: bare\nabout: The toy by itself\ngateway: toy\nrelease: toy-1\nplace: {server: "
    "gateway-1}\n"
)
FRONTED = BARE.replace("bare", "fronted").replace(
    "place: {server: gateway-1}", "place: {server: gateway-1, toyfront: gateway-1}"
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    places = [
        SUPPORT / "toy_store",
        SUPPORT / "toy_front",
        SUPPORT / "toy_hosts",
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    path = os.pathsep.join(map(str, places))
    # So long that a client's own time is little beside it, or a step is judged invalid.
    return command_line.environment(tmp_path, PYTHONPATH=path, TOY_DELAY_S="0.04")


def ran(environment: dict[str, str], *words: str | Path) -> subprocess.CompletedProcess[str]:
    argv = command_line.command(*words)
    return subprocess.run(
        argv, capture_output=True, text=True, env=environment, timeout=600, check=False
    )


def layouts(folder: Path, *texts: str) -> str:
    paths = [folder / f"layout-{number}.yaml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return ",".join(map(str, paths))


def test_a_store_and_a_front_of_other_packages_are_compared_reported_and_exported(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    suite = command_line.trial("swift", "{read: 50, write: 50}", runtime="5s")
    (tmp_path / "trial.yaml").write_text(suite)
    given = layouts(
        tmp_path, BARE, FRONTED + "settings: {toyfront: {port: 8081, about: as told}}\n"
    )
    done = ran(
        environment,
        *("compare", "--suite", tmp_path / "trial.yaml", "--layouts", given, "--repeats", "1"),
        *("--hardware", "loopback", "--no-charts", "--out", tmp_path / "runs"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    store = RunStore.open(run)
    assert {step.key.layout: step.measurement is not None for step in store.steps()} == {
        "bare": True,
        "fronted": True,
    }
    facts = {
        sheet.layout: sheet.facts
        for sheet in store.manifest.sheets
        if sheet.layout and "path" in sheet.facts
    }
    assert facts["fronted"]["path"] == "clients -> toy front on gateway-1, as told"
    (fronted,) = (step.key for step in store.steps() if step.key.layout == "fronted")
    telemetry = store.telemetry(fronted)
    assert telemetry is not None
    # It is read here, without the toys: how to show their counters is stored with the run.
    assert daemon_words([step_use(telemetry, 4.0)]) == "toyfront: 2.00 connections open"
    page = (run / "derived" / "report.html").read_text()
    assert "clients -&gt; toy front on gateway-1, as told" in page
    exported = ran(environment, "export", run, "--to", "json", "--out", tmp_path / "exported.json")
    assert exported.returncode == 0, exported.stderr
    tables = json.loads((tmp_path / "exported.json").read_text())["tables"]
    assert {row["layout"] for row in tables["summary"]} == {"bare", "fronted"}
    writes = [row for row in tables["summary"] if row["operation"] == "write"]
    assert {row["power_cuts"] for row in writes} == {"acknowledges from memory"}
    # Reading the run does not need what made it.
    (run / "derived" / "report.html").unlink()
    without = {**environment, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    again = command_line.run("report", "--no-charts", run, env=without)
    assert again.returncode == 0, again.stderr
    assert "toy front on gateway-1" in (run / "derived" / "report.html").read_text()


HARDWARE = "name: toys\nkind: toys\nhosts: {client-1: {}, gateway-1: {}}\n"


def test_hosts_of_another_package_run_a_store_and_are_reported_and_exported_without_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "toys.yaml").write_text(HARDWARE)
    (tmp_path / "trial.yaml").write_text(command_line.trial("swift", "{read: 1}", runtime="3s"))
    done = ran(
        environment,
        *("compare", "--suite", tmp_path / "trial.yaml", "--layouts", layouts(tmp_path, BARE)),
        *("--hardware", tmp_path / "toys.yaml", "--no-charts", "--out", tmp_path / "runs"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    (run / "derived" / "report.html").unlink()
    without = {**environment, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for words in (
        ("report", "--no-charts"),
        ("export", "--to", "json", "--table", "hosts", "--out", tmp_path / "all.json"),
    ):
        again = command_line.run(*words, run, env=without)
        assert again.returncode == 0, again.stderr
    fact = "toy hosts with limits of cpu, disk, nic"
    assert fact in (run / "derived" / "report.html").read_text()
    tables = json.loads((tmp_path / "all.json").read_text())["tables"]
    rows = [row for row in tables["hosts"] if row["host"] == "gateway-1"]
    used = {round(row["cpu_s"] / row["span_s"], 1) for row in rows if row["phase"] == "measure"}
    assert used == {0.2}
    (tmp_path / "toys.yaml").write_text(HARDWARE.replace("kind: toys", "kind: toy"))
    refused = ran(environment, "doctor", "--hardware", tmp_path / "toys.yaml")
    assert "toys.yaml:2:7: kind: no kind of host 'toy' (did you mean 'toys'?)" in refused.stderr


def test_faults_of_a_front_of_another_package_are_reported_at_their_place_with_a_suggestion(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    rgw = (
        "name: r\nabout: r\ngateway: rgw\nrelease: ceph-16\nplace: {mon: a, osd: [a], radosgw: "
        "[b], toyfront: [1]}\n"
    )
    wrong = {
        FRONTED + "settings: {toyfront: {prot: 1}}\n": (
            "layout-0.yaml:6:23: unknown key 'prot' (did you mean 'port'?)"
        ),
        FRONTED.replace("toyfront:", "toyfrnt:"): (
            "layout-1.yaml:5:28: unknown key 'toyfrnt' (did you mean 'toyfront'?)"
        ),
        FRONTED + "settings: {toyfront: {port: 8080}}\n": (
            "port 8080 of toyfront is taken by the toy server"
        ),
        FRONTED.replace("toyfront:", "haproxy: gateway-1, toyfront:"): (
            "haproxy and toyfront are both placed"
        ),
        rgw: "toyfront: Input should be a valid string",
    }
    given = layouts(tmp_path, *wrong)
    done = ran(environment, "compare", "--dry-run", "--layouts", given, "--hardware", "loopback")
    assert done.returncode == 2, done.stdout + done.stderr
    assert [words for words in wrong.values() if words not in done.stderr] == [], done.stderr


def test_settings_of_a_front_are_listed_with_each_store_that_it_fits(
    environment: dict[str, str],
) -> None:
    listed = ran(environment, "topologies", "rgw")
    assert listed.returncode == 0, listed.stderr
    assert "toyfront.port" in listed.stdout
    assert "haproxy.balance" in listed.stdout


ROOT = Path(__file__).parents[2]
TOY = SUPPORT / "toy_driver"
SUITE = command_line.trial("s3", "{head: 1}", name="heads", workers="[1]", runtime="2s")

Command = Callable[..., subprocess.CompletedProcess[str]]


def weighbridge(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "200", **environment}
    if "PYTHONPATH" not in environment:
        return command_line.run(*arguments, env=env, cwd=ROOT)
    return ran(env, *arguments)


@pytest.fixture(scope="module")
def with_toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command with the toy driver installed, a suite, and a layout with a running target."""
    folder = tmp_path_factory.mktemp("toy")
    places = {
        "WEIGHBRIDGE_HOME": str(folder / "home"),
        "WEIGHBRIDGE_STATE": str(folder / "state"),
        "PYTHONPATH": str(TOY),
    }
    keys = command_line.keys()
    with null_target("--delay-ms", "60") as url:
        (folder / "trial.yaml").write_text(SUITE)
        (folder / "plain.yaml").write_text(existing("plain", s3=s3_at(url)))

        def run(verb: str, *more: str | Path) -> subprocess.CompletedProcess[str]:
            files = ["--suite", folder / "trial.yaml", "--layouts", folder / "plain.yaml"]
            where = ["--hardware", "this-machine", "--no-charts", "--out", folder / "runs"]
            return weighbridge(
                verb, *([*files, *where] if verb == "compare" else []), *more, **places, **keys
            )

        yield run


@pytest.fixture(scope="module")
def compared(with_toy: Command, tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    out = tmp_path_factory.mktemp("runs")
    done = with_toy("compare", "--driver", "toy", "--toy-pause", "5", "--out", out)
    (run,) = out.iterdir()
    assert done.returncode == 0, done.stdout + done.stderr
    return RunStore.open(run)


def test_a_driver_of_another_package_measures_a_run_by_its_own_option(compared: RunStore) -> None:
    (step,) = compared.steps()
    assert (step.key.driver, step.key.workload) == ("toy", "heads")
    assert step.measurement is not None
    assert step.measurement.driver == "toy"
    assert step.measurement.tallies[0].count > 10
    assert step.measurement.notes == ("pauses of 5 ms",)
    facts = {name: text for sheet in compared.manifest.sheets for name, text in sheet.facts.items()}
    assert facts["package toy-driver"] == "1.0"
    assert facts["toy"] == "1.0"


@pytest.mark.test_all
def test_its_run_has_a_report_and_exports_even_if_it_is_not_installed(
    compared: RunStore, tmp_path: Path
) -> None:
    assert "heads" in (compared.derived / "report.html").read_text()
    for place in ({}, {"PYTHONPATH": str(TOY)}):
        assert weighbridge("report", compared.folder, **place).returncode == 0
        out = tmp_path / str(len(place))
        out.mkdir()
        for form in ("json", "csv"):
            done = weighbridge(
                "export", compared.folder, "--to", form, "--out", out / form, **place
            )
            assert done.returncode == 0, done.stderr
        rows = [
            row
            for path in map(Path, done.stdout.split())
            for row in csv.DictReader(path.read_text().splitlines())
        ]
        assert {row["driver"] for row in rows if "driver" in row} == {"toy"}


def test_its_option_and_its_name_are_in_the_help_of_every_verb_that_runs_something(
    with_toy: Command,
) -> None:
    for verb in ("compare", "resume", "study", "tune"):
        assert "--toy-pause MS" in with_toy(verb, "--help").stdout
    assert "locust, toy" in " ".join(with_toy("compare", "--help").stdout.split())
    assert "--toy-pause" not in weighbridge("compare", "--help").stdout


def test_what_it_cannot_do_is_refused_before_anything_starts(
    with_toy: Command, tmp_path: Path
) -> None:
    (tmp_path / "reads.yaml").write_text(SUITE.replace("head: 1", "read: 1"))
    done = with_toy("compare", "--driver", "toy", "--suite", tmp_path / "reads.yaml")
    assert done.returncode == 2
    assert "heads: the toy driver knows no operation but head" in done.stderr


def test_a_missing_driver_is_refused_at_its_place_in_the_suite(
    tmp_path: Path, with_toy: Command
) -> None:
    (tmp_path / "named.yaml").write_text(SUITE.replace("api: [s3]", "api: [s3]\ndriver: toi"))
    done = with_toy("compare", "--suite", tmp_path / "named.yaml")
    assert done.returncode == 2
    assert "named.yaml:4:9: driver: no driver 'toi' (did you mean 'toy'?)" in done.stderr
