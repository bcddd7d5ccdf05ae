from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from drivers.order import EVENT, ORDER, Prepared, Progress, Quit, Setup, Step, Target
from suites import Objects, Workload

SETUP = Setup(
    target=Target(api="s3", url="http://10.0.0.2:7480", user="weigh", key=SecretStr("very-secret")), bucket_prefix="wb-1", seed=7
)
WORKLOAD = Workload(name="small-read", objects=Objects(size=4096), operations={"read": 1}, workers=(1, 4), runtime=1.0, warmup=0)


@pytest.mark.parametrize("order", [SETUP, Step(workload=WORKLOAD, workers=4, repeat=2), Quit()])
def test_an_order_comes_out_of_its_json_as_it_went_in(order: Setup | Step | Quit) -> None:
    assert ORDER.validate_json(order.model_dump_json()) == order


def test_the_key_travels_in_the_order_but_is_not_shown_in_its_repr() -> None:
    assert "very-secret" in SETUP.model_dump_json()
    assert "very-secret" not in repr(SETUP)
    back = ORDER.validate_json(SETUP.model_dump_json())
    assert isinstance(back, Setup)
    assert back.target.key.get_secret_value() == "very-secret"


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "explode"}',
        '{"kind": "quit", "when": "now"}',
        '{"workload": {}}',
        "not JSON",
        '{"kind": "setup", "bucket_prefix": "UPPER", "seed": 1, "target": {"api": "s3", "url": "http://h", "user": "", "key": ""}}',
        '{"kind": "setup", "bucket_prefix": "wb-1", "seed": 1, "target": {"api": "s3", "url": "ftp://h", "user": "", "key": ""}}',
    ],
)
def test_what_is_no_order_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        ORDER.validate_json(line)


def test_events_are_told_apart_by_their_kind() -> None:
    progress = Progress(phase="prepare", done=1, total=2)
    prepared = Prepared(objects=2, bytes=8192, seconds=0.1)
    assert EVENT.validate_json(progress.model_dump_json()) == progress
    assert EVENT.validate_json(prepared.model_dump_json()) == prepared
