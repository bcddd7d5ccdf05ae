import json

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.results.export.query import QueryResult
from weighbridge.screen.answer import answer_csv, answer_json, answer_text

ANSWER = QueryResult(
    columns=("name", "share", "texts"),
    lines=(
        ("a\x1b[31m\nb", 1234.56789, ["x", None]),
        (None, float("inf"), []),
        ("世界", -0.5, None),
    ),
)


def test_a_text_answer_is_aligned_and_has_no_control_characters() -> None:
    head, rule, first, second, third, footer = answer_text(ANSWER).splitlines()
    assert head.split() == ["name", "share", "texts"]
    assert set(rule) == {"-", " "}
    assert first == r'a\x1b[31m\nb  1,234.57  ["x", null]'
    assert second.split() == ["–", "inf", "[]"]
    assert third.index("-0.5") + len("-0.5") + 2 == first.index("57") + len(
        "57"
    )  # two characters are two columns wide each
    assert footer == "(3 lines)"


def test_an_answer_for_programs_is_exact_with_null_for_missing_numbers() -> None:
    found = json.loads(answer_json(ANSWER))
    assert found[0] == {"name": "a\x1b[31m\nb", "share": 1234.56789, "texts": ["x", None]}
    assert found[1]["share"] is None
    assert (
        answer_csv(QueryResult(columns=("a", "b", "c"), lines=((0.1 + 0.2, None, True),)))
        == "a,b,c\n0.30000000000000004,,true\n"
    )


def test_json_with_two_columns_of_the_same_name_is_refused() -> None:
    with pytest.raises(UsageError, match="two columns are named a"):
        answer_json(QueryResult(columns=("a", "b", "a"), lines=((1, 2, 3),)))


def test_an_empty_answer_says_so() -> None:
    answer = QueryResult(columns=("layout",), lines=())
    assert answer_text(answer) == "layout\n------\n(0 lines)\n"
    assert answer_json(answer) == "[]\n"
