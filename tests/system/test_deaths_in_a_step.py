"""Daemons of real gateways, and a whole host, killed while a step is in its window: what the run
says of it, and what it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from deaths import Ended, compare, failures, failures_of, kill, soon_nothing_left, take_host
from suite_command import measured, trial, valid_steps, weighbridge
from weighbridge.environment import place
from weighbridge.results.run.durability import Outage, read_outages
from weighbridge.results.run.step import StepResult
from weighbridge.topologies.lab import ending

pytestmark = [pytest.mark.system, pytest.mark.long]


@dataclass(frozen=True)
class Death:
    """`said` is what the step's first note says; `seen` classes of failures that clients then saw,
    none where they see none.
    """

    happens: Callable[[], None]
    said: str
    seen: frozenset[str] = frozenset()


DEATHS: Mapping[str, Mapping[str, Death]] = {
    "swift": {
        # tempauth keeps its tokens there and nowhere else: none of them is good any more, and no
        # new one either
        "memcached": Death(
            kill("gateway-1", "^memcached "), "memcached on gateway-1 died", frozenset({"http-401"})
        ),
        # the two others are asked for what it had
        "object": Death(kill("store-1", "swift-object-server"), "object-server on store-1 died"),
        # two of three replicas are left, and clients see no failure at all: nothing but the look
        # behind the step tells
        "host": Death(
            take_host("store-2"), "on store-2 died with its host, where nothing is running"
        ),
    },
    "rgw-haproxy": {
        "osd": Death(kill("store-2", "^ceph-osd "), "osd.1 on store-2 died"),
        "radosgw": Death(
            kill("gateway-1", r"^radosgw .*gateway-1\.1\b"), "radosgw.1 on gateway-1 died"
        ),
        "haproxy": Death(
            kill("gateway-1", "^haproxy "),
            "haproxy on gateway-1 died",
            frozenset({"connect", "reset"}),
        ),
    },
    "rgw-apache-fastcgi": {
        "apache": Death(
            kill("gateway-1", "^[^ ]*apache2 "),
            "apache on gateway-1 died",
            frozenset({"connect", "reset"}),
        ),
        "responder": Death(
            kill("gateway-1", "fastcgi_responder"),
            "fastcgi-responder on gateway-1 died",
            frozenset({"http-503"}),
        ),
    },
}


def suite(names: list[str]) -> str:
    workloads = "".join(
        f"""
  - name: {name}
    objects: {{size: 64KiB, containers: 1, per_container: 20}}
    operations: {{read: 50, write: 50}}
    workers: {"[2, 3]" if name in ("memcached", "osd") else "[2]"}
    rate_per_s: 60  # a closed loop would take all of the machine
    runtime: 6s
    warmup: 0s
"""
        for name in names
    )
    return (
        "name: deaths\nabout: Short steps in which something dies\napi: "
        f"[swift]\nworkloads:{workloads}"
    )


@pytest.fixture(
    scope="module",
    params=[
        "swift",
        *(pytest.param(one, marks=pytest.mark.test_all) for one in DEATHS if one != "swift"),
    ],
)
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Ended]:
    layout = request.param
    deaths = {name: death.happens for name, death in DEATHS[layout].items()}
    return layout, compare(
        tmp_path_factory.mktemp("deaths"), suite(list(deaths)), layout, deaths, "--no-charts"
    )


def test_a_step_in_which_a_daemon_died_is_not_valid_and_names_the_daemon_its_host_and_its_log(
    run: tuple[str, Ended],
) -> None:
    layout, ended = run
    first: dict[str, StepResult] = {}
    for step in ended.store.steps():
        first.setdefault(step.key.workload, step)
    for name, death in DEATHS[layout].items():
        step = first[name]
        assert not step.valid
        assert death.said in step.notes[0], step.notes
        assert step.notes[0].startswith("in this step ")
        log = step.notes[0].rpartition("(its log: ")[2].partition(")")[0]
        assert (ended.store.folder / log).exists(), log
        assert step.measurement is not None, step.notes
        assert death.said in ended.printed.replace("\n", " ")


def test_what_the_hosts_that_are_left_used_is_recorded_and_a_host_that_is_gone_is_a_gap(
    run: tuple[str, Ended],
) -> None:
    layout, ended = run
    for name in DEATHS[layout]:
        step = next(step for step in ended.store.steps() if step.key.workload == name)
        telemetry = ended.store.telemetry(step.key)
        assert telemetry is not None
        assert telemetry.tail is not None
        gaps = [gap for gap in telemetry.tail.gaps if "its counters could not be read" in gap]
        assert gaps == (["store-2: its counters could not be read"] if name == "host" else [])
        assert {"gateway-1", "store-1"} <= {one.host for one in telemetry.hosts}


def test_failures_that_clients_saw_are_counted_by_class_and_never_as_successes(
    run: tuple[str, Ended],
) -> None:
    layout, ended = run
    for name, death in DEATHS[layout].items():
        seen = failures(ended.store, name)
        assert set(seen) <= {*death.seen, "reset", "short-body"}, (
            name,
            seen,
        )  # what was under way breaks off
        assert bool(death.seen) <= bool(seen), (name, seen)
    for step in ended.store.steps():
        if step.measurement is not None:
            for tally in step.measurement.tallies:
                counted = sum(
                    one.count
                    for one in step.measurement.seconds
                    if one.operation == tally.operation
                )
                assert counted == tally.count


def test_the_run_goes_on_with_the_next_workload_on_a_new_deployment_and_loses_no_other(
    run: tuple[str, Ended],
) -> None:
    layout, ended = run
    steps = ended.store.steps()
    workloads = list(dict.fromkeys(step.key.workload for step in steps))
    assert workloads == list(DEATHS[layout])
    assert ended.store.manifest.state == "done"
    events = [event.kind for event in ended.store.events() if event.kind in ("visit", "up", "down")]
    assert events == ["visit", "up", "down"] * len(workloads)
    lost = [step for step in steps if step.measurement is None]
    assert all(
        step.notes[0].startswith("not measured, since the gateway had failed: ") for step in lost
    )
    assert [step.key.workers for step in lost] == ([3] if layout != "rgw-apache-fastcgi" else [])
    assert ended.code == 3
    assert [step.key.workload for step in steps if step.spoilt] == list(DEATHS[layout])


def test_its_report_says_what_died(run: tuple[str, Ended]) -> None:
    layout, ended = run
    report = (ended.store.folder / "derived" / "report.html").read_text()
    assert all(death.said in report for death in DEATHS[layout].values())


def test_nothing_is_left_on_the_machine(run: tuple[str, Ended]) -> None:
    soon_nothing_left(run[1].store)


def test_a_run_in_which_something_died_can_be_reported_again_and_resumed(
    run: tuple[str, Ended],
) -> None:
    layout, ended = run
    if layout != "rgw-apache-fastcgi":
        return  # one is enough: it takes another deployment
    folder = ended.store.folder
    lines = (folder / "steps.jsonl").read_bytes()
    reported = weighbridge(f"report --no-charts {folder}")
    assert reported.returncode in (0, 4), reported.stdout + reported.stderr
    done = weighbridge(f"resume --no-charts {folder}")
    valid_steps(done.returncode, done.stdout + done.stderr, ended.store)
    assert (folder / "steps.jsonl").read_bytes().startswith(lines)
    steps = ended.store.steps()
    assert len(steps) == 2 * len(DEATHS[layout])
    for spoilt, again in zip(steps[: len(steps) // 2], steps[len(steps) // 2 :], strict=True):
        assert (spoilt.key, spoilt.spoilt, again.spoilt) == (again.key, True, False)
        assert again.measurement is not None
        assert not failures_of(again)
    soon_nothing_left(ended.store)


def outage(
    folder: Path, layout: str, fault: str, hardware: str = "lab-cpu", back_s: int = 8
) -> tuple[Outage, str]:
    """The outage of a run of one step with a fault, and the run's report. What was broken is back
    after `back_s` seconds of the window.
    """
    path = folder / "trial.yaml"
    path.write_text(
        trial(
            *("[swift]", "{read: 90, write: 10}", f"{back_s + 6}s"),
            size="4kB",
            per_container=20,
            workers=4,
            rate=30,  # a closed loop would take all of the machine
            warmup="1s",
            suite="cache: none",
            workload=f"fault: {{at: 5s, {fault}, back: {back_s}s}}",
        )
    )
    words = f"--layouts {layout} --hardware {hardware} --no-attest --no-charts --out {folder}/runs"
    store = measured(weighbridge(f"compare --suite {path} {words}"), folder / "runs")
    (found,) = read_outages(store.folder).values()
    step = store.latest()[found.key]
    assert step.measurement is not None, step
    assert 5 <= found.fault.begun_s < found.fault.done_s
    assert found.back is not None
    assert back_s <= found.back.begun_s < found.back.done_s
    page = (store.folder / "derived" / "report.html").read_text()
    assert "While something is broken" in page
    assert not ending.find_leftovers(state=place().state)
    return found, page


@pytest.mark.test_all
def test_one_radosgw_of_two_dies_behind_haproxy_which_notices_it_and_has_it_back(
    tmp_path: Path,
) -> None:
    one, page = outage(tmp_path, "rgw-haproxy", "kill: gateway-daemon", back_s=15)
    assert len(one.services) == 1
    assert "radosgw" in one.services[0]
    # By its checks, every 2 s, of which three must fail: long before it is back.
    assert "(HAProxy)" in page


@pytest.mark.test_all
def test_a_storage_host_of_swift_falls_silent_is_unplugged_and_is_killed_and_comes_back(
    tmp_path: Path,
) -> None:
    # A run for each: Swift's proxies avoid a host with some ten errors for a minute
    # (error_suppression_interval), and with two such hosts of three they refuse writes.
    ways = ("silence", "unplug", "kill")
    of_way, pages = {}, {}
    for way in ways:
        (tmp_path / way).mkdir()
        of_way[way], pages[way] = outage(tmp_path / way, "swift", f"{way}: storage-host")
    silent, unplugged, killed = of_way.values()
    assert (silent.way, unplugged.way, killed.way) == ways
    servers = {"account-server", "container-server", "object-server"}
    assert silent.host.startswith("store-")
    assert servers <= set(silent.services)
    assert unplugged.services == ()
    assert f"{unplugged.host} unplugged" in pages["unplug"]
    assert {"syslog", *servers} <= set(killed.services)


@pytest.mark.test_all
@pytest.mark.parametrize("layout", ["rgw-beast", "swift"])
def test_a_disk_of_a_store_fails_and_its_daemons_run_again_when_it_answers(
    tmp_path: Path, layout: str
) -> None:
    one, page = outage(tmp_path, layout, "fail: storage-disk", hardware="lab-disks")
    assert (one.way, one.disk, one.services) == ("fail", "wb0", ())
    assert f"disk wb0 of {one.host} failed" in page
