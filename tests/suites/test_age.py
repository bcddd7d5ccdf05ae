from typing import Any

import pytest
from pydantic import ValidationError

from made_rows import made_workload, plan_of
from weighbridge.suites import Age, Suite


def age(**keys: Any) -> Age:
    return Age.model_validate({"fill": "5%", **keys})


def test_fill_is_a_share_of_the_disks_or_bytes_of_objects() -> None:
    assert age(fill="5%").fill == pytest.approx(0.05)
    assert age(fill="2GB").fill == 2 * 10**9
    assert age(size=1000).count(2e6) == 100
    assert age(fill="1MB", size=1000).count(None) == 1000
    with pytest.raises(ValueError, match="unknown size"):
        age().count(None)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"fill": "90%"}, "144%"),
        ({"fill": "60%", "churn": 3, "share": "20%"}, "at most 85%"),
        ({"fill": "0%"}, "above 0"),
        ({"fill": 0}, "above 0"),
        ({"fill": 10**400}, "at most 1024 TiB of objects are written"),
        ({"fill": "5 %%"}, "not a share"),
        ({"fill": "much"}, "not a quantity"),
        ({"share": "100%"}, "less than 1"),
        ({"share": 0}, "greater than 0"),
        ({"size": 0}, "fill nothing"),
        ({"round": 3}, "round"),
    ],
)
def test_an_impossible_fill_or_churn_is_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        age(**keys)


def test_every_object_ever_written_has_its_own_number() -> None:
    one = age(churn=3, share="20%", containers=4, size={"uniform": [4096, 8192]})
    assert one.turnover(101) == 20
    assert one.workload(101).objects.count >= 101 + 3 * 20
    assert one.workload(101).objects.containers == 4


def test_a_suite_keeps_its_age_through_json_and_command_line_changes() -> None:
    plain = plan_of(made_workload(1)).suite.model_dump()
    for fill in ("5%", "2GB"):
        suite = Suite.model_validate({**plain, "age": {"fill": fill}})
        assert Suite.model_validate_json(suite.model_dump_json()) == suite
        assert suite.changed(repeats=2).age == suite.age == age(fill=fill)
