from __future__ import annotations

import pytest

from compared_rows import row
from made_rows import changed
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.noise import NoiseFloor
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import Resource
from weighbridge.results.analysis.trust import SignState, TrustSign, trust
from weighbridge.results.doubt import Doubt
from weighbridge.results.record.attestation import Attested

LAYOUTS = ("rgw-beast", "swift")
CLIENT = Resource(what="CPU", host="client-1", tier="client", share=0.4, limit="0.5")


def attested(layout: str, value: float, promised: float | None = None) -> Attested:
    return Attested(
        layout=layout,
        repeat=0,
        host="store-1",
        kind="disk",
        what="disk wb0 write",
        value=value,
        unit="B/s",
        promised=promised,
    )


EQUAL = (attested("rgw-beast", 2e8, 2e8), attested("swift", 2e8, 2e8))


def good_row(layout: str = "swift", **given: object) -> Row:
    return changed(row(layout), steady=True, resources=(CLIENT,), **{"errors": 0, **given})


def sign(
    title: str, *rows: Row, kind: str = "lab", hosts: tuple[Attested, ...] = EQUAL
) -> TrustSign:
    found = trust(kind, LAYOUTS, rows, hosts, None)
    return next(one for one in found if one.title == title)


def test_a_run_with_nothing_against_it_has_only_good_signs() -> None:
    floor = NoiseFloor(
        metric="throughput",
        layout="rgw-beast",
        control="rgw-beast-again",
        ratio=1.2,
        low=1.1,
        high=1.4,
        pairs=5,
        cells=1,
        repeats=5,
    )
    comparison = Comparison(
        baseline="rgw-beast", subjects=("swift",), effects=(), noise=(floor,), tests=0
    )
    found = trust("lab", LAYOUTS, [good_row()], EQUAL, comparison)
    assert {one.title: (one.state, one.words) for one in found} == {
        "Hosts": ("good", "equal"),
        "Machine": ("good", "quiet"),
        "Steady": ("good", "yes"),
        "Load generator": ("good", "had room"),
        "Repeats": ("good", "n = 5"),
        "Errors": ("good", "none"),
    }
    assert next(one for one in found if one.title == "Repeats").detail.endswith("1.2×")


def test_hosts_of_which_layouts_do_not_use_as_many_are_no_good_sign() -> None:
    found = trust("lab", LAYOUTS, [good_row()], EQUAL, None, unequal=True)
    assert (found[0].state, found[0].words) == ("doubt", "equal, not used alike")


@pytest.mark.parametrize(
    ("hosts", "state", "words"),
    [
        ((), "unknown", "not attested"),
        (EQUAL[:1], "unknown", "not compared"),
        ((EQUAL[0], attested("swift", 1e8, 2e8)), "bad", "differ"),
        (
            (attested("rgw-beast", 1e8, 2e8), attested("swift", 1e8, 2e8)),
            "doubt",
            "equal except for some",
        ),
    ],
)
def test_hosts_are_equal_only_if_they_were_compared_and_kept_their_promises(
    hosts: tuple[Attested, ...], state: SignState, words: str
) -> None:
    found = sign("Hosts", good_row(), hosts=hosts)
    assert (found.state, found.words) == (state, words)


def test_a_machine_is_quiet_only_where_what_others_used_is_known() -> None:
    mild = Doubt(what="machine busy", grade="mild", words="others used 12 %")
    grave = mild.model_copy(update={"grade": "grave"})
    blind = Doubt(what="machine not known", grade="mild", words="not recorded")
    assert sign("Machine", good_row(), kind="ssh").state == "unknown"
    assert sign("Machine", good_row(doubts=(blind,))).state == "unknown"
    assert sign("Machine", good_row(doubts=(mild,))).state == "doubt"
    found = sign("Machine", good_row(), good_row(doubts=(mild,)), good_row(doubts=(grave,)))
    assert (found.state, found.detail) == ("bad", "other programs took its CPUs in 2 of 3 results")


def test_the_load_generator_had_room_only_if_its_cpu_is_known_to_be_below_the_bound() -> None:
    full = CLIENT.model_copy(update={"share": 0.85})
    assert sign("Load generator", good_row(), changed(good_row(), resources=(full,))).state == "bad"
    blind = changed(good_row(), resources=())
    found = sign("Load generator", good_row(), blind)
    assert (found.state, found.words) == ("unknown", "not known in 1 of 2")


def test_what_was_not_steady_or_not_valid_is_counted() -> None:
    moving, open_one = good_row(), good_row()
    moving, open_one = changed(moving, steady=False), changed(open_one, steady=None)
    assert sign("Steady", good_row(), open_one).words == "not known in 1 of 2"
    assert sign("Steady", good_row(), open_one, moving).words == "not in 1 of 3"
    spoilt = changed(good_row(), valid=False)
    assert sign("Errors", good_row(), spoilt).words == "1 of 2 results not valid"
    failed = changed(good_row(), errors=3)
    assert (sign("Errors", failed).state, sign("Errors", failed).words) == ("doubt", "3")


def test_a_repeat_that_was_left_out_is_a_doubt_although_the_others_failed_nothing() -> None:
    points = good_row().points
    left_out = changed(good_row(), points=(*points[:-1], changed(points[-1], valid=False)))
    found = sign("Errors", good_row(), left_out)
    assert (found.state, found.words) == ("doubt", "repeats left out in 1 of 2")


def test_figures_that_were_measured_once_say_nothing_of_equal_hosts() -> None:
    alone = (attested("rgw-beast", 2e8), attested("swift", 2e7).model_copy(update={"host": "b1"}))
    found = sign("Hosts", good_row(), hosts=alone)
    assert (found.state, found.words) == ("unknown", "not compared")


def test_few_repeats_are_a_doubt_and_a_run_without_results_has_no_signs() -> None:
    found = sign("Repeats", changed(good_row(), repeats=4))
    assert (found.state, found.words, found.detail) == ("doubt", "n = 4", "a claim needs 5")
    some = sign("Repeats", changed(good_row(), repeats=1), good_row())
    words = ("n = 1 to 5", "a claim needs 5: fewer in 1 of 2 results")
    assert (some.state, some.words, some.detail) == ("doubt", *words)
    assert trust("lab", LAYOUTS, [], (), None) == ()
