from typing import Any

import pytest

from compared_rows import row
from made_rows import altered, changed, made_row
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import Resource
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.comparison import Comparison, NoiseFloor
from weighbridge.results.judge.reasons import marks, reasons
from weighbridge.results.judge.trust import SignState, TrustSign, trust
from weighbridge.results.numbers import alike_as_one
from weighbridge.results.run.telemetry import Attested

LAYOUTS = ("rgw-beast", "swift")
CLIENT = Resource(what="CPU", host="client-1", tier="client", share=0.4, limit="0.5")


def attested(layout: str, value: float, promised: float | None = None) -> Attested:
    about = {"layout": layout, "repeat": 0, "host": "store-1", "kind": "disk", "unit": "B/s"}
    figure = {"what": "disk wb0 write", "value": value, "promised": promised}
    return Attested.model_validate({**about, **figure})


EQUAL = (attested("rgw-beast", 2e8, 2e8), attested("swift", 2e8, 2e8))
SLOW = (attested("rgw-beast", 1e8, 2e8), attested("swift", 1e8, 2e8))
ALONE = altered(attested("swift", 2e7), host="b1")


def good_row(layout: str = "swift", **given: object) -> Row:
    return changed(row(layout), steady=True, resources=(CLIENT,), **{"errors": 0, **given})


def sign(
    title: str, *rows: Row, kind: str = "lab", hosts: tuple[Attested, ...] = EQUAL
) -> TrustSign:
    found = trust(kind, LAYOUTS, rows, hosts, None)
    return next(one for one in found if one.title == title)


FLOOR = NoiseFloor(
    metric="throughput",
    layout="rgw-beast",
    control="rgw-beast-again",
    ratio=Ratio(value=1.02, low=0.98, high=1.06, repeats=5),
    cells=1,
    runs=4,
    floor=1.2,
)


def compared(*floors: NoiseFloor) -> Comparison:
    found = compare([row("rgw-beast"), row("swift")])
    return altered(found, noise=floors)


def test_a_run_with_nothing_against_it_has_only_good_signs() -> None:
    found = trust("lab", LAYOUTS, [good_row()], EQUAL, compared(FLOOR))
    assert {one.title: (one.state, one.words) for one in found} == {
        "Hosts": ("good", "equal"),
        "Machine": ("good", "quiet"),
        "Steady": ("good", "yes"),
        "Load generator": ("good", "had room"),
        "Repeats": ("good", "n = 5"),
        "A/A control": ("good", "no difference found"),
        "Errors": ("good", "none"),
    }


def test_an_a_a_control_is_good_only_if_it_was_measured_and_found_no_difference() -> None:
    def control(*floors: NoiseFloor, unused: tuple[str, ...] = ()) -> TrustSign:
        comparison = altered(compared(*floors), unused=unused)
        found = trust("lab", LAYOUTS, [good_row()], EQUAL, comparison)
        return next(one for one in found if one.title == "A/A control")

    good = control(FLOOR, altered(FLOOR, metric="p90"))
    assert good.detail == "in 2 figures; noise floor of throughput 1.2× over 4 runs"
    assert control(altered(FLOOR, floor=None)).detail.endswith("not known yet")
    beyond = Ratio(value=1.1, low=1.02, high=1.2, repeats=5)
    off = control(FLOOR, altered(FLOOR, metric="p90", ratio=beyond))
    assert (off.state, off.words) == ("doubt", "differs")
    assert off.detail.startswith("1 of 2 figures differ, though none should; ")
    assert (control().state, control().words) == ("unknown", "not measured")
    assert control(unused=("why",)).words == "not usable"
    few = control(altered(FLOOR, ratio=Ratio(value=1.02, repeats=2)))
    assert (few.state, few.words) == ("doubt", "no difference found")
    assert few.detail.endswith("n = 2, a claim needs 5")
    alone = trust("lab", LAYOUTS, [good_row()], EQUAL, None)
    assert "A/A control" not in [one.title for one in alone]


def test_hosts_of_which_layouts_do_not_use_as_many_are_no_good_sign() -> None:
    found = trust("lab", LAYOUTS, [good_row()], EQUAL, None, unequal=True)
    assert (found[0].state, found[0].words) == ("doubt", "equal, not used alike")


@pytest.mark.parametrize(
    ("hosts", "state", "words"),
    [
        ((), "unknown", "not attested"),
        (EQUAL[:1], "unknown", "not compared"),
        ((EQUAL[0], SLOW[1]), "bad", "differ"),
        (SLOW, "doubt", "equal except for some"),
        # Figures that were measured once say nothing of equal hosts.
        ((attested("rgw-beast", 2e8), ALONE), "unknown", "not compared"),
    ],
)
def test_hosts_are_equal_only_if_they_were_compared_and_kept_their_promises(
    hosts: tuple[Attested, ...], state: SignState, words: str
) -> None:
    found = sign("Hosts", good_row(), hosts=hosts)
    assert (found.state, found.words) == (state, words)


def test_a_machine_is_quiet_only_where_what_others_used_is_known() -> None:
    mild = Doubt(what="machine busy", grade="mild", words="others used 12 %")
    grave = altered(mild, grade="grave")
    blind = Doubt(what="machine not known", grade="mild", words="not recorded")
    assert sign("Machine", good_row(), kind="ssh").state == "unknown"
    assert sign("Machine", good_row(doubts=(blind,))).state == "unknown"
    assert sign("Machine", good_row(doubts=(mild,))).state == "doubt"
    found = sign("Machine", good_row(), good_row(doubts=(mild,)), good_row(doubts=(grave,)))
    assert (found.state, found.detail) == ("bad", "other programs took its CPUs in 2 of 3 results")


def test_the_load_generator_had_room_only_if_its_cpu_is_known_to_be_below_the_bound() -> None:
    full = altered(CLIENT, share=0.85)
    assert sign("Load generator", good_row(), changed(good_row(), resources=(full,))).state == "bad"
    blind = changed(good_row(), resources=())
    found = sign("Load generator", good_row(), blind)
    assert (found.state, found.words) == ("unknown", "not known in 1 of 2")


def test_the_load_generator_may_have_limited_what_was_left_out_for_it() -> None:
    nic = altered(CLIENT, what="network", share=0.78, limit="1 Gbit/s")
    roomy = changed(good_row(), resources=(CLIENT, nic))
    found = sign("Load generator", roomy)
    assert (found.state, found.words) == ("good", "had room")
    assert found.detail.startswith("at most 40 % of its CPU and 78 % of its network")
    first, *others = roomy.points
    held = changed(roomy, points=(changed(first, valid=False, driver_full=True), *others))
    some = sign("Load generator", roomy, held)
    assert (some.state, some.words) == ("doubt", "may have limited 1 of 2")
    assert sign("Errors", roomy, held).words == "none", "it is one doubt, not two"
    failed = changed(roomy, points=(changed(first, valid=False), *others))
    assert sign("Errors", roomy, held, failed).words == "repeats left out in 1 of 3"
    also = changed(first, valid=False, driver_full=True, errors=9)
    both = changed(roomy, points=(also, *others))
    assert sign("Errors", roomy, both).words == "repeats left out in 1 of 2"
    dead = changed(held, lost=1)
    assert sign("Errors", roomy, dead).words == "repeats left out in 1 of 2"
    full = changed(roomy, points=tuple(changed(one, driver_full=True) for one in roomy.points))
    assert sign("Load generator", roomy, full).state == "bad"


def test_what_was_not_steady_or_not_valid_is_counted() -> None:
    moving, open_one = good_row(), good_row()
    moving, open_one = changed(moving, steady=False), changed(open_one, steady=None)
    assert sign("Steady", good_row(), open_one).words == "not known in 1 of 2"
    assert sign("Steady", good_row(), open_one, moving).words == "not in 1 of 3"
    spoilt = changed(good_row(), valid=False)
    assert sign("Errors", good_row(), spoilt).words == "1 of 2 results not valid"
    failed = changed(good_row(), errors=3)
    assert (sign("Errors", failed).state, sign("Errors", failed).words) == ("doubt", "3")
    # A repeat that was left out is a doubt although the others failed nothing.
    points = good_row().points
    left_out = changed(good_row(), points=(*points[:-1], changed(points[-1], valid=False)))
    found = sign("Errors", good_row(), left_out)
    assert (found.state, found.words) == ("doubt", "repeats left out in 1 of 2")


def test_few_repeats_are_a_doubt_and_a_run_without_results_has_no_signs() -> None:
    found = sign("Repeats", changed(good_row(), repeats=4))
    assert (found.state, found.words, found.detail) == ("doubt", "n = 4", "a claim needs 5")
    some = sign("Repeats", changed(good_row(), repeats=1), good_row())
    words = ("n = 1 to 5", "a claim needs 5: fewer in 1 of 2 results")
    assert (some.state, some.words, some.detail) == ("doubt", *words)
    assert trust("lab", LAYOUTS, [], (), None) == ()


NONE = Comparison(baseline="a", subjects=("b",), effects=(), tests=0)


def row_of(layout: str, workers: int, *doubts: Doubt, **more: Any) -> Row:
    known: dict[str, Any] = {"throughput_ops_s": 100.0, "valid": True, "steady": True, "repeats": 5}
    about = {"layout": layout, "workers": workers, "workload": "small"}
    return made_row(**{**about, **known, "doubts": doubts, **more})


def busy(share: int) -> Doubt:
    return Doubt(what="machine busy", grade="mild", words=f"other programs used {share} %")


def test_texts_that_differ_in_their_numbers_alone_are_one_reason_with_their_range() -> None:
    found = reasons(
        [
            row_of("a", 1, busy(18)),
            row_of("a", 4, busy(12)),
            row_of("b", 1, busy(15)),
            row_of("b", 4),
        ],
        NONE,
    )
    (one,) = found
    assert one.text.startswith("provisional: machine busy: other programs used 12 to 18 % (all of ")
    assert "(all of a; b: 1 MB reads at 1 worker)" in one.text


def test_digits_in_names_are_not_numbers() -> None:
    differ = [
        Doubt(what="incomplete", grade="mild", words=f"{host} was lost")
        for host in ("client-1", "client-2")
    ]
    assert len(reasons([row_of("a", 1, differ[0]), row_of("a", 4, differ[1])], NONE)) == 2


def test_reasons_have_letters_by_gravity_and_rows_have_theirs() -> None:
    grave = altered(busy(52), grade="grave")
    rows = [row_of("a", 1, busy(12)), row_of("b", 1, busy(12), grave), row_of("b", 4)]
    found = reasons(rows, NONE)
    assert [(one.mark, one.status) for one in found] == [
        ("a", "not comparable"),
        ("b", "provisional"),
    ]
    assert [marks(one, found) for one in rows] == ["b", "a b", ""]


def test_a_doubt_about_one_metric_names_it() -> None:
    limited = Doubt(
        what="set by the CPU limit", grade="grave", words="it ran out", metrics=("p90", "max")
    )
    (found,) = reasons([row_of("a", 1, limited)], NONE)
    assert found.text.startswith("p90, max not comparable: set by the CPU limit: it ran out ")


def test_an_invalid_row_has_a_reason() -> None:
    (found,) = reasons(
        [row_of("a", 1, valid=False, notes=("not valid", "3 % failed")), row_of("b", 1)], NONE
    )
    assert (found.status, found.words, found.where) == ("not valid", "3 % failed", "all of a")


def test_texts_that_differ_in_their_numbers_alone_are_one_text_with_their_range() -> None:
    used = "machine busy: other programs used {} % of this machine’s CPUs"
    texts = [used.format(64), "hosts differ: CPU of store-1", used.format(9), used.format(64)]
    assert alike_as_one(texts) == (used.format("9 to 64"), "hosts differ: CPU of store-1")
    most = "other programs used up to {} % in {} of 5 repeats"
    assert alike_as_one([most.format(42, 1), most.format(9, 2)]) == (most.format(42, "1 to 2"),)


def test_the_name_of_a_fault_is_said_once_however_many_notes_begin_with_it() -> None:
    notes = ("not steady: throughput rises", "repeat 2: not steady: a stall of 1 s")
    (one,) = reasons([changed(row_of("a", 1, notes=notes), steady=False)], NONE)
    assert one.words == "not steady: throughput rises; repeat 2: a stall of 1 s"
