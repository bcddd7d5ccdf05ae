from __future__ import annotations

import pytest

from weighbridge.common.quantities import CpuList, cpu_numbers, show_cpus
from weighbridge.common.record import Record


class Host(Record):
    cpuset: CpuList | None = None


@pytest.mark.parametrize(
    ("text", "numbers"), [("0", (0,)), ("2-3,5", (2, 3, 5)), ("5, 2-3,3", (2, 3, 5)), ("7-7", (7,))]
)
def test_a_list_names_single_cpus_and_ranges(text: str, numbers: tuple[int, ...]) -> None:
    assert cpu_numbers(text) == numbers


@pytest.mark.parametrize("text", ["", ",", "1,", "3-2", "-1", "a", "1-", "0x1", "8192", "0-9999"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a (list|range) of CPUs"):
        cpu_numbers(text)


def test_a_list_is_shown_as_short_as_possible() -> None:
    assert show_cpus([5, 3, 2, 3]) == "2-3,5"
    assert show_cpus([]) == ""


def test_a_record_keeps_the_shortest_form_also_of_a_number() -> None:
    assert Host.model_validate({"cpuset": 0}).cpuset == "0"
    assert Host.model_validate({"cpuset": "3,2"}).cpuset == "2-3"
    assert Host().cpuset is None
