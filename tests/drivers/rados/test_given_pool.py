"""`rados bench` in a pool that exists, with programs that keep objects as files."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fake_ceph import STORE, FakeCeph, detail
from tests.drivers.rados.conftest import StubMachine
from tests.drivers.rados.given_pools import CODED, NAMESPACE, POOL, Seen, ours, untouched
from tests.drivers.rados.test_driver import workload
from weighbridge.common.errors import ObjectsLeft, TargetError, UsageError
from weighbridge.common.structure import Fragments, Redundancy
from weighbridge.drivers.protocol import Cleanup, DriverFailure, Prepare, Step
from weighbridge.drivers.rados import GivenPool, RadosBench, host_commands
from weighbridge.drivers.rados.given_pool import details, last_written
from weighbridge.drivers.rados.host_commands import CommandOutput, HostCommands, kept_of
from weighbridge.suites import RadosBenchOptions


def bench(given: GivenPool, tmp_path: Path, instances: int = 2) -> RadosBench:
    options = RadosBenchOptions(instances=instances)
    return RadosBench(given, prefix=NAMESPACE, log=tmp_path / "log", settings=options)


def test_all_is_written_in_a_namespace_of_the_run_and_nothing_is_left(
    ceph: FakeCeph, given: GivenPool, tmp_path: Path
) -> None:
    with bench(given, tmp_path) as driver:
        prepared = driver.prepare(Prepare(workload=workload()))
        assert prepared.objects == 7
        assert len(ours(ceph)) == 7 + 2
        made = driver.step(Step(workload=workload(), workers=4)).measurement
        driver.step(Step(workload=workload("write"), workers=4))
        assert len(ours(ceph)) == 7 + 2 + 2 * (4 + 1)
        driver.cleanup(Cleanup(workload=workload("write"), what="all"))
        assert ours(ceph) == []
        driver.quit()
    assert (made.api, made.tallies[0].count) == ("rados", 800)
    assert made.notes == ("2 rados bench in parallel, in the pool bench, which existed before",)
    assert untouched(ceph)
    asked = [one for one in ceph.calls if " bench 3 " in one]
    start = f"rados --name client.bench --namespace {NAMESPACE} --pool bench bench "
    assert asked
    assert all(one.startswith(start) for one in asked)
    assert not [one for one in ceph.calls if "pool create" in one or "pool rm" in one]


def test_what_a_failed_bench_left_is_swept_though_its_run_has_no_metadata(
    ceph: FakeCeph, given: GivenPool
) -> None:
    for name in ("benchmark_data_gateway-1_9_object0", "benchmark_data_other_3_object1"):
        ceph.put(NAMESPACE, name)
    ceph.put(NAMESPACE, "wb-0123abcd-some-1")
    assert given.sweep() == 3
    assert ours(ceph) == []
    assert untouched(ceph)
    assert given.sweep() == 0


def test_somebody_elses_object_in_the_namespace_is_left_and_named(
    ceph: FakeCeph, given: GivenPool
) -> None:
    ceph.put(NAMESPACE, "their own")
    ceph.put(NAMESPACE, "wb-0123abcd-some-1")
    with pytest.raises(ObjectsLeft, match="someone else's object, 'their own': nothing deleted"):
        given.sweep()
    assert len(ours(ceph)) == 2


def test_what_cannot_be_deleted_is_named_with_its_place_and_the_reason(
    ceph: FakeCeph, given: GivenPool
) -> None:
    ceph.put(NAMESPACE, "wb-0123abcd-some-1")
    ceph.say("denied", "error: (1) Operation not permitted")
    with pytest.raises(ObjectsLeft) as error:
        given.sweep()
    assert error.value.words == (
        "objects that may be left: pool bench, namespace wb-0123abcd, by gateway-1"
    )
    assert "rados ls: error: (1) Operation not permitted" in error.value.message


def test_groups_that_are_not_clean_are_a_remark_and_a_note_of_every_step(
    ceph: FakeCeph, seen: Seen, given: GivenPool, tmp_path: Path
) -> None:
    ceph.say("states", {"active+clean": 60, "active+undersized+degraded": 5})
    words = (
        "of 65 placement groups of the cluster not all are active and clean: 5 "
        "active+undersized+degraded"
    )
    assert seen().remark == words
    with bench(given, tmp_path, 1) as driver:
        driver.prepare(Prepare(workload=workload("write")))
        made = driver.step(Step(workload=workload("write"), workers=4)).measurement
    assert made.notes == (words,)


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        (
            [detail(flags_names="hashpspool,nearfull")],
            r"gateway-1: pool bench: it is full \(nearfull\): writes would wait for ever",
        ),
        ([detail(STORE)], "gateway-1: pool bench: the cluster has it no longer"),
    ],
)
def test_a_pool_that_fills_up_during_a_run_is_refused_for_the_next_workload(
    ceph: FakeCeph, given: GivenPool, tmp_path: Path, pools: list[object], words: str
) -> None:
    with bench(given, tmp_path) as driver:
        driver.prepare(Prepare(workload=workload()))
        there = ours(ceph)
        ceph.say("pools", pools)
        with pytest.raises(TargetError, match=words):
            driver.prepare(Prepare(workload=workload("write")))
        assert ours(ceph) == there
        ceph.say("pools", [detail()])
        ceph.say("no-caps", "Error EACCES: access denied")
        driver.prepare(Prepare(workload=workload("write")))


def test_without_the_program_ceph_steps_are_measured_and_say_what_is_not_known(
    ceph: FakeCeph, given: GivenPool, tmp_path: Path
) -> None:
    (ceph.bin / "ceph").unlink()
    with bench(given, tmp_path, 1) as driver:
        driver.prepare(Prepare(workload=workload("write")))
        made = driver.step(Step(workload=workload("write"), workers=4)).measurement
    (note,) = made.notes
    assert re.search(r"active and clean is not known: env: .*ceph.*No such file", note)


def test_of_objects_that_runs_left_those_count_that_were_written_last() -> None:
    one, other = (f"benchmark_data_gateway-1_{pid}_object" for pid in (7, 70))
    names = [f"{one}9", f"{one}10", f"{one}2", f"{other}0", "wb-1-get", "theirs", f"{one}x"]
    assert sorted(last_written(names)) == sorted((f"{one}10", f"{other}0", "wb-1-get", f"{one}x"))


def test_a_look_knows_replicas_groups_and_rule_and_leaves_nothing(
    ceph: FakeCeph, seen: Seen
) -> None:
    found = seen()
    assert found.words == "pool bench: 3 replicas, 32 placement groups, CRUSH rule 0"
    assert found.apart == ""
    assert found.stores == (STORE,)
    assert found.remark == ""
    assert untouched(ceph)
    assert not [one for one in ceph.objects if one.startswith("wb-")]
    assert [one for one in ceph.calls if " create probe" in one]


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        ([detail(size=1), detail(STORE)], f"has 1 replica, and {STORE}, .* 3 replicas"),
        ([detail(crush_rule=1), detail(STORE)], "has CRUSH rule 1, .* it may be on other devices"),
        ([detail()], "no pool in which a radosgw keeps objects"),
        ([detail(), detail(STORE, type=3, erasure_code_profile="p")], "erasure coding 2\\+1"),
        (
            [detail(**CODED), detail(STORE, **CODED, size=4)],
            f"has pieces of an object on 3 OSDs, and {STORE}, .* on 4",
        ),
        (
            [detail(), detail(STORE), detail("cold", size=2, application_metadata={"rgw": {}})],
            "has 3 replicas, and cold, in which gateways may keep objects, 2 replicas",
        ),
        (
            [detail(), detail(STORE, options={"compression_mode": "force"})],
            f"pool {STORE} compresses \\(compression_mode force\\)",
        ),
        ([detail(read_tier=7, write_tier=7), detail(STORE)], "pool bench has a cache tier"),
    ],
)
def test_a_pool_that_is_unlike_the_gateways_is_said_to_be_no_layer_below_them(
    ceph: FakeCeph, seen: Seen, pools: list[object], words: str
) -> None:
    ceph.say("pools", pools)
    assert re.search(words, seen().apart)


def test_pools_in_which_radosgw_keeps_no_objects_may_be_unlike(ceph: FakeCeph, seen: Seen) -> None:
    rgw = {"application_metadata": {"rgw": {}}, "size": 2, "crush_rule": 5}
    others = (".rgw.root", "default.rgw.log", "default.rgw.buckets.index", "old.rgw.buckets.non-ec")
    ceph.say("pools", [detail(), detail(STORE), *(detail(name, **rgw) for name in others)])
    assert (seen().apart, seen().stores) == ("", (STORE,))


@pytest.mark.parametrize(
    ("pools", "stores"),
    [
        ([detail(application_metadata={"rgw": {}})], ()),
        ([detail(), detail("cold", application_metadata={"rgw": {}})], ("cold",)),
    ],
)
def test_a_pool_of_gateways_by_its_application_alone_is_not_known_to_be_theirs(
    ceph: FakeCeph, seen: Seen, pools: list[object], stores: tuple[str, ...]
) -> None:
    ceph.say("pools", pools)
    found = seen()
    assert found.apart.startswith("the cluster has no pool in which a radosgw keeps objects")
    assert found.stores == stores


@pytest.mark.parametrize(
    ("what", "said", "remark"),
    [
        (
            "pools",
            [detail(), detail(STORE, pg_num=256)],
            f"it has 32 placement groups, and {STORE} 256: it may use fewer OSDs, and reach less",
        ),
        ("pools", [detail(application_metadata={"rbd": {}}), detail(STORE)], "it is in use by rbd"),
        (
            "states",
            {},
            "whether placement groups are active and clean is not known: ceph status has none",
        ),
    ],
)
def test_what_may_spoil_a_bench_of_a_pool_is_remarked(
    ceph: FakeCeph, seen: Seen, what: str, said: object, remark: str
) -> None:
    ceph.say(what, said)
    assert seen().remark == remark


def test_a_profile_that_would_be_an_option_of_a_program_is_refused(
    ceph: FakeCeph, seen: Seen
) -> None:
    coded = detail(STORE, type=3, erasure_code_profile="-o/etc/motd")
    ceph.say("pools", [detail(), coded])
    with pytest.raises(TargetError, match=r"gateway-1: ceph osd pool ls detail: 1\.erasure_code"):
        seen()
    assert not [one for one in ceph.calls if "motd" in one]


def test_a_pool_with_the_fragments_of_the_gateways_pool_is_alike(
    ceph: FakeCeph, seen: Seen
) -> None:
    coded = {**CODED, "crush_rule": 2}
    ceph.say("pools", [detail(**coded), detail(STORE, **coded)])
    found = seen()
    fragments = Fragments(data=2, parity=1)
    assert (found.kept, found.apart) == (Redundancy(replicas=1, fragments=fragments), "")


@pytest.mark.parametrize("profile", [{}, {"k": "2"}])
def test_a_pool_whose_fragments_are_not_known_can_be_benched_without_a_share(
    ceph: FakeCeph, seen: Seen, profile: dict[str, str]
) -> None:
    ceph.say("profiles", {"other": profile, **({"p": profile} if profile else {})})
    ceph.say("pools", [detail(), detail(STORE, **CODED)])
    found = seen()
    assert found.kept == Redundancy(replicas=3)
    why = "no k and m" if profile else "unknown erasure code profile 'p'"
    assert re.match(f"it is not known how pool {STORE} keeps objects: .*{why}", found.apart)
    ceph.say("pools", [detail(**CODED), detail(STORE)])
    found = seen()
    assert (found.kept, found.pg_num) == (None, 32)
    assert re.match(f"it is not known how pool bench keeps objects: .*{why}", found.apart)


def test_what_the_user_may_not_know_is_not_known_and_the_pool_can_be_benched(
    ceph: FakeCeph, seen: Seen
) -> None:
    ceph.say("no-caps", "Error EACCES: access denied")
    found = seen()
    assert (found.kept, found.pg_num, found.rule) == (None, None, None)
    assert found.apart == "nothing is known of it: client.bench: Error EACCES: access denied"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quota_max_bytes": 2**30}, ["it has a quota (1 GiB)"]),
        (
            {"quota_max_objects": 5, "flags_names": "hashpspool,full_quota"},
            ["it is full (full_quota)", "it has a quota (5 objects)"],
        ),
        ({"flags_names": "hashpspool,nearfull"}, ["it is full (nearfull)"]),
    ],
)
def test_a_pool_in_which_writes_may_wait_is_refused_with_all_that_is_wrong(
    ceph: FakeCeph, seen: Seen, changes: dict[str, object], words: list[str]
) -> None:
    ceph.say("pools", [detail(**changes), detail(STORE)])
    with pytest.raises(UsageError) as error:
        seen()
    assert [word for word in words if word not in error.value.message] == []
    assert error.value.message.count("gateway-1: pool bench: it ") == len(words)
    assert not [one for one in ceph.calls if "create" in one]


def test_a_pool_or_user_that_does_not_exist_is_refused(ceph: FakeCeph, seen: Seen) -> None:
    with pytest.raises(UsageError, match=r"the cluster has no such pool.*'bench'"):
        seen(POOL.model_copy(update={"pool": "benhc"}))
    with pytest.raises(UsageError, match="unable to find a keyring"):
        seen(POOL.model_copy(update={"user": "client.nobody"}))
    # No name of a pool moves the cursor.
    ceph.say("pools", [detail("\x1b[2Jvault")])
    with pytest.raises(UsageError, match=r"the cluster has no such pool.*vault") as error:
        seen()
    assert "\x1b" not in error.value.message


@pytest.mark.parametrize(("what", "command"), [("denied", "create"), ("no-list", "ls")])
def test_a_user_without_rights_is_refused_with_what_rados_says_and_the_rights_it_needs(
    ceph: FakeCeph, seen: Seen, what: str, command: str
) -> None:
    ceph.say(what, "error: (1) Operation not permitted")
    with pytest.raises(
        UsageError, match=rf"client.bench cannot use it: rados {command}: .*permitted"
    ) as error:
        seen()
    assert "osd 'allow rw pool=bench'" in str(error.value)
    # The object that was tried is gone.
    assert untouched(ceph)
    assert not [one for one in ceph.objects if one.startswith("wb-")]


def test_a_host_without_rados_is_refused_and_without_ceph_nothing_is_known(
    ceph: FakeCeph, seen: Seen
) -> None:
    (ceph.bin / "ceph").unlink()
    assert seen().apart == "nothing is known of it: gateway-1 has no program `ceph`"
    (ceph.bin / "rados").unlink()
    with pytest.raises(UsageError, match=r"gateway-1 has no program `rados`.*\n.*ceph-common"):
        seen()


@pytest.mark.parametrize(
    "printed", ["", "[]x", '[{"pool_name": "bench"}]', '{"a": 1}', "[" * 100_000]
)
def test_what_is_no_list_of_pools_is_an_error_that_names_host_and_command(printed: str) -> None:
    with pytest.raises(TargetError, match="gateway-1: ceph osd pool ls detail: "):
        details(printed, "gateway-1")


def never(seconds: float, ran: Sequence[CommandOutput]) -> bool:
    return False


@pytest.fixture
def commands(machine: StubMachine, tmp_path: Path) -> HostCommands:
    return HostCommands(machine, tmp_path / "log")


def gone(path: Path) -> bool:
    """Whether the process whose pid is in a file has ended, or did before it wrote that."""
    try:
        os.kill(int(path.read_text()), 0)
    except FileNotFoundError:
        return True
    except ProcessLookupError:
        return True
    return False


def test_commands_run_in_parallel_and_their_output_and_cpu_are_reported(
    commands: HostCommands, tmp_path: Path
) -> None:
    # Each waits for the other: one after the other they would never end.
    pair = [str(tmp_path / "a"), str(tmp_path / "b")]
    text = (
        'mkfifo "$1" 2>/dev/null; while ! [ -p "$2" ]; do sleep 0.01; done; echo one; echo '
        "two; echo aside >&2"
    )
    both = [["sh", "-c", text, "sh", *names] for names in (pair, pair[::-1])]
    ran = commands.run(both, never, within_s=30)
    assert [one.text for one in ran] == ["one\ntwo"] * 2
    assert [one.errors for one in ran] == ["aside\n"] * 2
    assert all(one.code == 0 and one.cpu_s > 0 and one.lines[-1][0] <= one.seconds for one in ran)
    assert [kept.name for kept in kept_of(ran)] == ["sh-0.txt", "sh-1.txt"]


def test_one_that_fails_ends_the_others_and_is_named_with_its_output(
    commands: HostCommands, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    long = ["sh", "-c", f"echo $$ >{pid}; exec sleep 600"]
    fails = [
        "sh",
        "-c",
        f"while ! [ -s {pid} ]; do sleep 0.01; done; echo so far; echo no space >&2; exit 5",
    ]
    with pytest.raises(DriverFailure, match=r"gateway-1: 2 of 2 sh ended with 5") as caught:
        commands.run([long, fails], never, within_s=60)
    assert "| no space" in caught.value.message
    assert "| so far" in caught.value.message
    assert [kept.name for kept in caught.value.kept] == ["sh-0.txt", "sh-1.txt"]
    assert gone(pid)


def test_one_that_is_killed_fails_with_its_signal(commands: HostCommands) -> None:
    with pytest.raises(DriverFailure, match="sh was ended by signal 9"):
        commands.run([["sh", "-c", "kill -KILL $$"]], never, within_s=60)


def test_commands_can_be_stopped_even_if_their_starter_ignores_sigint(
    commands: HostCommands,
) -> None:
    # As a shell does for programs that it starts with `&`.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        (ran,) = commands.run(
            [["sh", "-c", "echo 1; exec sleep 600"]],
            lambda seconds, ran: bool(ran[0].lines),
            within_s=60,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.code == -signal.SIGINT


@pytest.mark.parametrize("may_fail", [False, True])
def test_commands_that_do_not_end_in_time_are_given_up_and_ended(
    commands: HostCommands, tmp_path: Path, may_fail: bool
) -> None:
    pid = tmp_path / "pid"
    endless = ["sh", "-c", f"echo $$ >{pid}; exec sleep 600"]
    with pytest.raises(DriverFailure, match="had not ended after 1 s"):
        _ = (
            commands.ask(endless, within_s=1)
            if may_fail
            else commands.run([endless], never, within_s=1)
        )
    deadline = time.monotonic() + 30
    while not gone(pid):
        assert time.monotonic() < deadline


def test_a_missing_program_is_reported(commands: HostCommands, tmp_path: Path) -> None:
    with pytest.raises(DriverFailure, match="was ended with the program that started it"):
        commands.run([["no-such-program"]], never, within_s=60)
    assert "no-such-program" in (tmp_path / "log").read_text()


def test_a_command_that_is_asked_may_fail_and_its_status_and_output_are_known(
    commands: HostCommands,
) -> None:
    found = commands.ask(["sh", "-c", "echo so far; echo denied >&2; exit 5"], within_s=30)
    assert (found.code, found.text, found.errors) == (5, "so far", "denied\n")


def test_no_file_is_written_on_the_host(
    commands: HostCommands, machine: StubMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(*_: object, **__: object) -> None:
        raise AssertionError("a file was put there")

    monkeypatch.setattr(machine, "put", put)
    # Files that are open and deleted count too.
    script = "echo aside >&2; readlink /proc/$PPID/fd/*"
    found = commands.ask(["sh", "-c", script], within_s=30)
    files = [one for one in found.text.splitlines() if one.startswith("/")]
    assert found.errors == "aside\n"
    assert {*files} <= {str(tmp_path / "log"), "/dev/null"}


def test_of_long_errors_the_end_is_kept(commands: HostCommands) -> None:
    found = commands.ask(["sh", "-c", "yes | head -c 1000000 >&2; echo the end >&2"], within_s=30)
    assert len(found.errors) == 4000
    assert found.errors.endswith("y\nthe end\n")


def test_what_a_command_leaves_running_does_not_keep_its_end_back(commands: HostCommands) -> None:
    text = "echo aside >&2; sleep 30 >/dev/null & echo $!"
    found = commands.ask(["sh", "-c", text], within_s=20)
    os.kill(int(found.text), signal.SIGKILL)
    assert (found.code, found.errors) == (0, "aside\n")


def test_errors_that_come_soon_after_the_end_are_kept(commands: HostCommands) -> None:
    text = "(sleep 0.3; echo late >&2) >/dev/null & echo aside >&2"
    assert commands.ask(["sh", "-c", text], within_s=20).errors == "aside\nlate\n"


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [("MOST_BYTES", 2**20, "more than 1 MiB"), ("MOST_LINES", 1000, "more than 1,000 lines")],
)
def test_endless_output_is_an_error(
    commands: HostCommands, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, said: str
) -> None:
    monkeypatch.setattr(host_commands, limit, most)
    # Its program is stuck in what it prints, and is killed.
    monkeypatch.setattr(host_commands, "END_S", 0.2)
    with pytest.raises(DriverFailure, match=f"yes printed {said}"):
        commands.ask(["yes"], within_s=30)
