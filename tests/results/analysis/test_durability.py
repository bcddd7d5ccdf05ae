"""What power cuts show of a layout: the judgement, the claim about cuts, the words."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from compared_rows import row
from made_cuts import dead_cut, kept_cuts, made_cut
from weighbridge.common.structure import Answers
from weighbridge.results.analysis.durability import (
    LOSSES,
    LayoutDurability,
    durability_of,
    share_that_loses,
    with_power_marks,
)
from weighbridge.results.analysis.find.answers import Found, FoundKind, FoundRate, rate_lines
from weighbridge.results.analysis.overload import GoodputCurve, OfferedPoint
from weighbridge.results.analysis.power_mark import power_brief, power_words, with_losses
from weighbridge.results.record import LatencyBound
from weighbridge.results.record.durability import FINDINGS, CutDisk, Finding, PowerCut
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
    assert "0 of 41,200 objects, and 0 of 200 deletions (at most 2,060 objects" in found.sentence
    assert "Its control, whose syncs keep nothing, lost writes in 2 of 2 cuts." in found.sentence


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
    assert "It did not serve after 1 of 2 cuts." in found.sentence
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
    assert "Listings: 93 not listed in 3 of 3 cuts and 3 listed but deleted" in found.sentence
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


@pytest.mark.parametrize(("losing", "cuts"), [(1, 1), (1, 20), (3, 20), (20, 20), (499, 1000)])
def test_with_losses_the_interval_is_that_of_clopper_and_pearson(
    stats: Any, losing: int, cuts: int
) -> None:
    expected = stats.binomtest(losing, cuts).proportion_ci(0.95, method="exact")
    assert share_that_loses(losing, cuts) == pytest.approx((expected.low, expected.high))


def test_counts_are_sums_over_cuts_the_most_of_one_and_the_cuts_that_have_any() -> None:
    two = made_cut(number=2, acknowledged=300, lost=4, torn=1, serves_s=40.0)
    found = judged(two, made_cut(number=1, serves_s=10.0), made_cut(number=3, lost=2, serves_s=11))
    store = found.store
    assert [cut.number for cut in store.cuts] == [1, 2, 3]
    assert (store.acknowledged, store.most_acknowledged, store.deleted) == (500, 300, 30)
    assert (store.found["lost"].objects, store.found["lost"].cuts) == (6, 2)
    assert (store.found["torn"].objects, store.found["torn"].cuts) == (1, 1)
    assert store.serves_s == (11.0, 40.0)
    assert "6 lost and 1 torn, of 500 acknowledged objects" in found.sentence


def test_kinds_are_apart_by_api_size_and_way_and_count_all_their_cuts() -> None:
    small = {"api": "s3", "size_bytes": 4096, "acknowledged": 9, "deleted": 1, "in_flight": 0}
    parts = {**small, "size_bytes": 2**23, "way": "multipart", "lost": 2}
    kinds = judged(
        made_cut(number=1, objects=(small, parts)),
        made_cut(number=2, objects=(small, {**small, "api": "swift", "not_listed": 3})),
    ).store.kinds
    assert [(one.api, one.size_bytes, one.way) for one in kinds] == [
        ("s3", 4096, "plain"),
        ("s3", 2**23, "multipart"),
        ("swift", 4096, "plain"),
    ]
    assert (kinds[0].acknowledged, kinds[0].most_acknowledged) == (18, 9)
    assert (kinds[1].found["lost"].objects, kinds[1].found["lost"].cuts) == (2, 1)
    assert kinds[2].found["not-listed"].objects == 3
    assert set(kinds[0].found) == set(FINDINGS)


def test_layouts_are_in_the_order_of_the_run_and_the_control_never_counts_as_the_layout() -> None:
    swift = made_cut("swift", 1, lost=1)
    found = durability_of([swift, *kept_cuts()], ["rgw-beast", "other", "swift"])
    assert [(one.layout, one.judgement) for one in found] == [
        ("rgw-beast", "kept"),
        ("swift", "lost"),
    ]
    assert found[0].store.made == 20
    assert found[0].control.found["lost"].objects == 200


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
    assert marked.power is not None
    assert marked.power.words.endswith("acknowledged lost; acknowledges before the name is on disk")
    assert power_words([marked.power]).startswith("power cuts: rgw-beast (20 cuts")


def test_rates_within_a_bound_and_beyond_capacity_have_the_marks_of_what_they_write() -> None:
    mark = judged(made_cut(lost=1)).mark
    told = "rgw-beast (lost acknowledged writes in 1 of 1 power cut)"
    about = {"layout": "rgw-beast", "api": "s3", "driver": "locust", "workload": "w"}
    figures = {"connections": 4, "repeats": 5, "steps": 9, "rate_per_s": 392.0}
    rate = FoundRate.model_validate({**about, **figures, "power": mark})
    kind = FoundKind(about="64 kB writes", connections=4, rates=(rate,))
    found = Found(bound=LatencyBound(metric="p90", most_ms=50), kinds=(kind,))
    assert found.sentences[0].endswith(f". Power cuts: {told}.")
    assert rate_lines(found)[0][-1] == mark.words
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
