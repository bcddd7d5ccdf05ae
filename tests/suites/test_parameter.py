import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from weighbridge.suites.tuning import Level, Parameter, Range, show_setting


def test_integers_too_large_for_floats_are_distinguished() -> None:
    values = [10**400, 10**400 + 1]
    assert len(Parameter.model_validate({"key": "radosgw.threads", "values": values}).levels) == 2
    with pytest.raises(ValueError, match="the same value twice"):
        Parameter.model_validate({"key": "radosgw.threads", "values": [10**400, 10**400]})


def test_a_value_keeps_what_must_be_set_with_it() -> None:
    one = Parameter(
        key="apache.mpm.threads_per_child",
        values=(25, Level(value=64, also={"apache.mpm.server_limit": 64})),
    )
    assert one.levels == (Level(value=25), Level(value=64, also={"apache.mpm.server_limit": 64}))


def test_a_default_may_differ_by_release() -> None:
    one = Parameter(
        key="options.client.rgw_bucket_index_max_aio",
        values=(64,),
        default={"ceph-14": 8, "ceph-16": 128},
    )
    known = {"ceph-14": 8, "ceph-16": 128, "ceph-18": None}
    assert {release: one.default_at(release) for release in known} == known
    assert Parameter(key="radosgw.threads", values=(64,), default=512).default_at("ceph-18") == 512


NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12), st.floats(-1e9, 1e9, allow_nan=False, allow_infinity=False)
)


@given(
    ends=st.tuples(NUMBERS, NUMBERS),
    steps=st.integers(2, 100),
    scale=st.sampled_from(["linear", "log"]),
)
@example(ends=(5e-324, 1.0), steps=3, scale="log")
def test_values_of_a_range_rise_from_end_to_end(
    ends: tuple[float, float], steps: int, scale: str
) -> None:
    low, high = ends
    if low >= high or (scale == "log" and low <= 0):
        with pytest.raises(ValidationError):
            Range.model_validate({"low": low, "high": high, "steps": steps, "scale": scale})
        return
    one = Range.model_validate({"low": low, "high": high, "steps": steps, "scale": scale})
    values = one.values
    assert (values[0], values[-1]) == (low, high)
    assert 2 <= len(values) <= steps
    assert all(low <= value <= high for value in values)
    assert list(values) == sorted(set(values))
    assert not one.is_integral or all(isinstance(value, int) for value in values)


def test_sizes_of_a_log_range_are_whole_bytes_at_equal_factors() -> None:
    one = Range(low="64KiB", high="16MiB", steps=5, scale="log")
    assert one.values == (2**16, 2**18, 2**20, 2**22, 2**24)
    assert Range(low=1, high=3, steps=100).values == (1, 2, 3)
    assert all(
        map(math.isclose, Range(low=0.5, high=8.0, steps=5, scale="log").values, (0.5, 1, 2, 4, 8))
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        *((True, "on"), (False, "off"), (None, "unset"), (0.5, "0.5"), (1800.0, "1800")),
        *((512, "512"), (4096, "4096"), (65000, "65000")),
        *((65536, "64 KiB"), (4194304, "4 MiB"), ("64MiB", "64MiB")),
    ],
)
def test_values_are_shown_as_people_write_them(
    value: str | float | bool | None, words: str
) -> None:
    assert show_setting(value) == words
