"""What power cuts show of a layout: the judgement, the claim about cuts, the words."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from compared_rows import row
from fake_run import short_run
from made_cuts import dead_cut, kept_cuts, made_cut
from made_rows import altered, present
from weighbridge.common.errors import UsageError
from weighbridge.common.structure import Answers
from weighbridge.results.features.compare_runs import RUNS, across_runs, match
from weighbridge.results.features.durability import (
    LISTINGS,
    LOSSES,
    LayoutDurability,
    durability_of,
    share_that_loses,
    with_power_marks,
)
from weighbridge.results.features.find import Found, FoundKind, FoundRate
from weighbridge.results.features.overload import GoodputCurve, OfferedPoint
from weighbridge.results.features.run_guard import (
    GUARD_FACTS,
    ComparedRun,
    differences_csv,
    guard,
    planned_differences,
    read_compared_run,
)
from weighbridge.results.figures.doubt import power_brief, power_words, with_losses
from weighbridge.results.figures.statistics import TTest, welch
from weighbridge.results.run import LatencyBound
from weighbridge.results.run.durability import CutDisk, Finding, PowerCut
from weighbridge.results.run.resolved import Sheet
from weighbridge.suites import OPERATIONS, TRAITS


def judged(*cuts: PowerCut) -> LayoutDurability:
    (found,) = durability_of(cuts)
    return found


CONTROL = made_cut(control=True, lost=60)


def test_a_layout_keeps_if_nothing_was_lost_and_its_control_lost_something() -> None:
    found = judged(*kept_cuts(cuts=20, acknowledged=2060))
    assert found.judgement == "kept"
    assert found.mark.words == "20 cuts: 0 of 41,200 acknowledged lost"
    assert found.mark.brief == "0 of 20"
    assert not found.mark.loss
    assert "At most 14 % of such cuts lose anything (95 %)." in found.sentence
    assert (
        "0 of 41,200 acknowledged objects in 20 power cuts under load, and 0 of 200 del"
        in found.sentence
    )
    assert found.control.among(found.control.seen_to_lose) == "2 of 2 cuts"


@pytest.mark.parametrize("finding", LOSSES)
def test_any_loss_is_a_loss_whatever_the_control_did(finding: Finding) -> None:
    losing = made_cut(number=2, **{finding: 1})
    for control in ((), (CONTROL,), (made_cut(control=True),)):
        found = judged(made_cut(number=1), losing, *control)
        assert found.judgement == "lost"
        assert found.store.losing == 1
        assert found.mark.lost
        assert "in 1 of 2 power cuts" in found.mark.loss


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lost": 3, "undead": 1}, "lost acknowledged writes in 1 of 1 power cut"),
        ({"stale": 1}, "lost acknowledged writes in 1 of 1 power cut"),
        ({"undead": 2, "unreadable": 1}, "brought deleted objects back in 1 of 1 power cut"),
        ({"unreadable": 1}, "left acknowledged objects unreadable in 1 of 1 power cut"),
    ],
)
def test_the_mark_of_a_loss_says_what_kind_it_was(given: dict[str, int], words: str) -> None:
    assert judged(made_cut(**given)).mark.words == words


def test_a_store_that_does_not_serve_after_a_cut_has_lost_and_that_is_said() -> None:
    found = judged(made_cut(number=1), dead_cut(number=2), CONTROL)
    assert found.judgement == "lost"
    assert found.mark.words == "did not serve after 1 of 2 power cuts"
    unread = dead_cut(number=2, objects=())
    assert judged(made_cut(number=1), unread, CONTROL).judgement == "lost"


@pytest.mark.parametrize(
    ("cuts", "why"),
    [
        ((CONTROL,), "no cut was made"),
        ((dead_cut(number=1), dead_cut(number=2), CONTROL), "it served after none of 2 cuts"),
        ((made_cut(acknowledged=0, deleted=0, in_flight=0), CONTROL), "nothing had been"),
        ((made_cut(),), "there was no control"),
        ((made_cut(), made_cut(control=True)), "the control lost nothing"),
    ],
)
def test_what_cannot_be_told_is_said_with_its_reason(cuts: tuple[PowerCut, ...], why: str) -> None:
    found = judged(*cuts)
    assert found.judgement == "cannot-tell"
    assert found.mark.words.startswith(f"cannot tell: {why}")
    assert found.mark.brief == "cannot tell"
    assert not found.mark.lost
    assert not found.share_words
    assert "cannot tell what a power cut destroys" in found.sentence
    assert "At most" not in found.sentence


def test_listings_are_always_said_and_never_a_loss() -> None:
    cuts = kept_cuts(cuts=3, not_listed=31, listed_deleted=1)
    found = judged(*cuts)
    assert found.judgement == "kept"
    assert found.mark.words == (
        "3 cuts: 0 of 300 acknowledged lost; 93 not listed, 3 listed but deleted"
    )
    assert found.mark.brief == "0 of 3 (93 not listed, 3 listed but deleted)"
    assert [found.store.cuts_with(each) for each in LISTINGS] == [3, 0, 3]
    without = judged(made_cut(not_listed=5))
    assert without.mark.words == "cannot tell: there was no control; 5 not listed"
    losing = judged(made_cut(not_listed=5, lost=1))
    assert losing.mark.words == "lost acknowledged writes in 1 of 1 power cut; 5 not listed"
    assert losing.mark.loss == "lost acknowledged writes in 1 of 1 power cut"


def test_without_a_loss_at_most_three_in_k_cuts_lose() -> None:
    assert share_that_loses(0, 1) == (0.0, pytest.approx(0.95))
    assert share_that_loses(0, 20)[1] == pytest.approx(0.1391, abs=1e-4)
    assert share_that_loses(0, 300)[1] == pytest.approx(3 / 300, rel=0.01)
    assert share_that_loses(0, 0) == (0.0, 1.0)
    # Cuts before anything was acknowledged prove nothing.
    nothing = {"acknowledged": 0, "deleted": 0, "in_flight": 0}
    early = [made_cut(number=number, **nothing) for number in range(1, 20)]
    found = judged(*early, made_cut(number=20), CONTROL)
    assert found.store.made == 20
    assert found.share_words == "95 %"  # of one telling cut


@pytest.mark.parametrize(
    ("losing", "cuts", "low", "high"),
    [
        (1, 1, 0.025, 1.0),
        (1, 20, 0.00126508949796, 0.248732762772),
        (3, 20, 0.0320709371855, 0.378926826545),
        (20, 20, 0.831566529017, 1.0),
        (499, 1000, 0.467552186254, 0.530453716662),
    ],
)
def test_losses_have_an_interval_of_clopper_and_pearson(
    losing: int, cuts: int, low: float, high: float
) -> None:
    # The ends are those of scipy.stats.binomtest(losing, cuts).proportion_ci(method="exact").
    assert share_that_loses(losing, cuts) == pytest.approx((low, high))


def test_counts_are_sums_over_cuts_the_most_of_one_and_the_cuts_that_have_any() -> None:
    two = made_cut(number=2, acknowledged=300, lost=4, torn=1, serves_s=40.0)
    found = judged(two, made_cut(number=1, serves_s=10.0), made_cut(number=3, lost=2, serves_s=11))
    store = found.store
    assert [cut.number for cut in store.cuts] == [1, 2, 3]
    assert (store.acknowledged, store.most_acknowledged, store.deleted) == (500, 300, 30)
    assert (store.count("lost"), store.cuts_with("lost")) == (6, 2)
    assert (store.count("torn"), store.cuts_with("torn")) == (1, 1)
    assert store.serves_s == (11.0, 40.0)
    assert "6 lost and 1 torn, of 500 acknowledged objects" in found.sentence


def test_kinds_are_apart_by_api_size_and_way_and_count_all_their_cuts() -> None:
    small = {"api": "s3", "size_bytes": 4096, "acknowledged": 9, "deleted": 1, "in_flight": 0}
    parts = {**small, "size_bytes": 2**23, "way": "multipart", "lost": 2}
    kinds = judged(
        made_cut(number=1, objects=(small, parts)),
        made_cut(number=2, objects=(small, {**small, "api": "swift", "not_listed": 3})),
    ).store.kinds
    assert list(kinds) == [
        ("s3", 4096, "plain"),
        ("s3", 2**23, "multipart"),
        ("swift", 4096, "plain"),
    ]
    plain, parted, over_swift = kinds.values()
    assert (plain.acknowledged, plain.most_acknowledged) == (18, 9)
    assert (parted.count("lost"), parted.cuts_with("lost")) == (2, 1)
    assert over_swift.count("not-listed") == 3


def test_layouts_are_in_the_order_of_the_run_and_the_control_never_counts_as_the_layout() -> None:
    swift = made_cut("swift", 1, lost=1)
    found = durability_of([swift, *kept_cuts()], ["rgw-beast", "other", "swift"])
    assert [(one.layout, one.judgement) for one in found] == [
        ("rgw-beast", "kept"),
        ("swift", "lost"),
    ]
    assert found[0].store.made == 20
    assert found[0].control.count("lost") == 200


def test_marks_are_on_all_that_writes_and_on_nothing_that_reads() -> None:
    found = durability_of([*kept_cuts()])
    for operation in OPERATIONS:
        (marked,) = with_power_marks([row("rgw-beast", operation=operation)], found, {}, {})
        assert (marked.power is not None) == TRAITS[operation].writes
    writing = {one for one in OPERATIONS if TRAITS[one].writes}
    assert writing == {
        *("write", "delete", "copy", "delete-many", "write-multipart", "write-if-none-match"),
        *("update-metadata", "tag", "overwrite"),
    }
    assert TRAITS["write-part"].writes


def test_a_layout_that_was_not_tried_is_marked_beside_one_that_was_and_controls_as_theirs() -> None:
    rows = [row(name, operation="write") for name in ("rgw-beast", "again", "swift")]
    assert [one.power for one in with_power_marks(rows, (), {}, {"rgw-beast": "disk"})] == [
        None
    ] * 3
    marked = with_power_marks(rows, durability_of(kept_cuts()), {"again": "rgw-beast"}, {})
    powers = [one.power for one in marked if one.power is not None]
    assert [(one.layout, one.judgement) for one in powers] == [
        ("rgw-beast", "kept"),
        ("again", "kept"),
        ("swift", None),
    ]
    assert powers[2].words == "not tried"


def test_a_store_that_acknowledges_from_the_page_cache_is_marked_wherever_it_writes() -> None:
    rows = [row(name, operation="write") for name in ("rgw-beast", "weed", "again", "other")]
    answers: dict[str, Answers] = {"rgw-beast": "disk", "weed": "page cache"}
    marked = with_power_marks(rows, (), {"again": "weed"}, answers)
    marks = [one.power for one in marked if one.power is not None]
    assert [(one.words, one.endangered) for one in marks] == [
        ("acknowledges when on disk", False),
        ("acknowledges from the page cache", True),
        ("acknowledges from the page cache", True),
        ("", False),
    ]
    assert power_words(marks[:2]) == (
        "durability: rgw-beast acknowledges when on disk, weed acknowledges from the page cache"
    )
    assert power_brief(marks[:2]) == "weed acknowledges from the page cache"
    title = with_losses("weed leads", marks[:2])
    assert title == "weed leads; weed acknowledges from the page cache"
    assert power_words(marks[3:]) == power_brief(marks[3:]) == ""
    (read,) = with_power_marks([row("weed", operation="read")], (), {}, answers)
    assert read.power is None


def test_what_cuts_showed_stands_beside_what_a_store_says_of_itself() -> None:
    answers: dict[str, Answers] = {"rgw-beast": "data on disk"}
    rows = [row("rgw-beast", operation="write")]
    (marked,) = with_power_marks(rows, durability_of(kept_cuts()), {}, answers)
    power = present(marked.power)
    assert power.words.endswith("acknowledged lost; acknowledges before the name is on disk")
    assert power_words([power]).startswith("power cuts: rgw-beast (20 cuts")


def test_rates_within_a_bound_and_beyond_capacity_have_the_marks_of_what_they_write() -> None:
    mark = judged(made_cut(lost=1)).mark
    told = "rgw-beast (lost acknowledged writes in 1 of 1 power cut)"
    rate = FoundRate("rgw-beast", "s3", "locust", "w", 4, 5, 9, rate_per_s=392.0, power=mark)
    kind = FoundKind(about="64 kB writes", connections=4, rates=(rate,))
    found = Found(bound=LatencyBound(metric="p90", most_ms=50), kinds=(kind,))
    assert found.sentences[0].endswith(f". Power cuts: {told}.")
    point = OfferedPoint(offered_per_s=100.0, row=row("rgw-beast", operation="write", power=mark))
    curve = GoodputCurve(layout="rgw-beast", points=(point,))
    assert curve.sentence.endswith(f"; power cuts: {told}")


@pytest.mark.parametrize(
    "counts",
    [
        {"unreadable": 111},
        {"in_flight": 111},
        {"lost": 60, "torn": 41},
        {"lost": 101, "unacknowledged": 5},
        {"undead": 11},
        {"listed_lost": 1},
        {"listed_deleted": 11},
        {"lost": 60, "not_listed": 41},
    ],
    ids=str,
)
def test_counts_that_do_not_add_up_are_no_record(counts: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        made_cut(**counts)


def test_a_disk_cannot_have_kept_more_than_it_had_not_flushed() -> None:
    with pytest.raises(ValidationError, match="more blocks were kept"):
        CutDisk(name="store-1/", writes=1, flushes=0, unflushed_blocks=2, kept_blocks=3)


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
    store = short_run(tmp_path_factory.mktemp("runs"), repeats=1, telemetry=False)
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


def test_runs_with_different_or_unknown_quota_periods_or_cpus_are_refused(run: ComparedRun) -> None:
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
def test_a_differing_guard_fact_is_refused_by_name_or_allowed(fact: str, run: ComparedRun) -> None:
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


def test_differences_that_are_the_point_are_listed_and_not_refused(run: ComparedRun) -> None:
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
    assert lines == ["guard,fact,of,a,b", "true,seed,,2014,7", "false,weighbridge,,0.1.0,not known"]


def test_unknown_facts_and_folders_of_no_run_are_refused(run: ComparedRun, tmp_path: Path) -> None:
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
    """B vs A, and means of A and `count` - 1 earlier runs: five repeats with 5 % scatter each."""
    made = []
    for number in range(count + 1):
        level = draw.gauss(0, between) + (apart if number == count else 0.0)
        made.append([math.exp(level + draw.gauss(0, 0.05)) for _ in range(5)])
    return welch(made[-1], made[0]), [sum(map(math.log, one)) / 5 for one in made[:-1]]


@pytest.mark.parametrize("count", [3, pytest.param(4, marks=pytest.mark.test_all), 8])
@pytest.mark.parametrize("between", [0.0, pytest.param(0.03, marks=pytest.mark.test_all), 0.1])
def test_runs_alike_are_called_different_at_most_5_in_100(count: int, between: float) -> None:
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
