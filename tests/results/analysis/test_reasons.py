from __future__ import annotations

from typing import Any

from made_rows import altered, changed, made_row
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.reasons import marks, reasons
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import Doubt
from weighbridge.results.figures import alike_as_one

NONE = Comparison(baseline="a", subjects=("b",), effects=(), tests=0)


def row(layout: str, workers: int, *doubts: Doubt, **more: Any) -> Row:
    known: dict[str, Any] = {"throughput_ops_s": 100.0, "valid": True, "steady": True, "repeats": 5}
    about = {"layout": layout, "workers": workers, "workload": "small"}
    return made_row(**{**about, **known, "doubts": doubts, **more})


def busy(share: int) -> Doubt:
    return Doubt(what="machine busy", grade="mild", words=f"other programs used {share} %")


def test_texts_that_differ_in_their_numbers_alone_are_one_reason_with_their_range() -> None:
    found = reasons(
        [row("a", 1, busy(18)), row("a", 4, busy(12)), row("b", 1, busy(15)), row("b", 4)], NONE
    )
    (one,) = found
    assert one.text.startswith("provisional: machine busy: other programs used 12 to 18 % (all of ")
    assert "(all of a; b: 1 MB reads at 1 worker)" in one.text


def test_digits_in_names_are_not_numbers() -> None:
    differ = [
        Doubt(what="incomplete", grade="mild", words=f"{host} was lost")
        for host in ("client-1", "client-2")
    ]
    assert len(reasons([row("a", 1, differ[0]), row("a", 4, differ[1])], NONE)) == 2


def test_reasons_have_letters_by_gravity_and_rows_have_theirs() -> None:
    grave = altered(busy(52), grade="grave")
    rows = [row("a", 1, busy(12)), row("b", 1, busy(12), grave), row("b", 4)]
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
    (found,) = reasons([row("a", 1, limited)], NONE)
    assert found.text.startswith("p90, max not comparable: set by the CPU limit: it ran out ")


def test_an_invalid_row_has_a_reason() -> None:
    (found,) = reasons(
        [row("a", 1, valid=False, notes=("not valid", "3 % failed")), row("b", 1)], NONE
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
    (one,) = reasons([changed(row("a", 1, notes=notes), steady=False)], NONE)
    assert one.words == "not steady: throughput rises; repeat 2: a stall of 1 s"
