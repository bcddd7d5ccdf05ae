"""Deleting buckets of stores that do not do what they promise, without root."""

import re
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from lying_store import lying_store
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import BucketsLeft, CommandFailed
from weighbridge.common.exchange import WrongAnswer
from weighbridge.gateways.existing import clear, existing
from weighbridge.gateways.existing.existing import Existing
from weighbridge.gateways.existing.settings import ExistingPlacement, ExistingSettings
from weighbridge.topologies.this_machine import ThisHost


class Ended(BaseException):
    """What a signal raises."""


def endpoint(url: str) -> Endpoint:
    return Endpoint(api="s3", url=url, user="weigh:er", key=SecretStr("a-planted-secret"))


def test_a_bucket_that_lists_what_was_deleted_again_and_again_is_given_up() -> None:
    with lying_store() as url:
        started = time.monotonic()
        with pytest.raises(WrongAnswer, match="still not empty: 5 objects in its list"):
            clear.clear(endpoint(url).model_dump(mode="json"), "wb-1-small-0", 0.5)
        assert time.monotonic() - started < 20


def test_an_object_that_somebody_else_put_there_since_is_not_deleted() -> None:
    with lying_store() as url, pytest.raises(WrongAnswer, match="someone else's object"):
        clear.clear(
            endpoint(url).model_dump(mode="json"), "wb-1-small-0", 0.5, re.compile("another-name")
        )


def test_only_what_was_not_deleted_before_counts_as_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clear, "_REMEMBERED", 3)
    deleted = clear._Deleted()
    assert deleted.add(["b", "c"]) == 2
    assert deleted.add(["c", "a"]) == 1
    # From here on no more is remembered: names must ascend.
    assert deleted.add(["e", "f"]) == 2
    assert deleted.add(["e", "f", "a", "b"]) == 0
    assert deleted.count == 5


@pytest.mark.parametrize("count", [2, 100])
def test_buckets_are_named_if_the_program_that_deletes_them_is_ended(
    tmp_path: Path, count: int
) -> None:
    buckets = [f"wb-1-small-{number}" for number in range(count)]
    client = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    with lying_store() as url, pytest.raises(BucketsLeft) as error:
        existing.clear(client, [endpoint(url)], buckets, within_s=1)
    assert isinstance(error.value.__cause__, CommandFailed)
    assert error.value.buckets == tuple(buckets)
    named = "wb-1-small-0, wb-1-small-1" if count == 2 else "100 whose names begin with wb-1-small-"
    assert f"\n  {named}: client-1: " in error.value.message
    assert error.value.words == f"buckets that may be left: {named}"


def test_the_bucket_of_a_verification_that_a_signal_ends_is_noted_if_it_may_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object, **__: object) -> None:
        raise Ended

    monkeypatch.setattr(existing, "verify", ended)
    monkeypatch.setattr(existing, "_CLEARED_S", 1.0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "planted")
    client = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    said: list[str] = []
    with lying_store() as url:
        given = ExistingSettings.model_validate({"s3": {"url": url, "credentials": "environment"}})
        gateway = Existing("any", ExistingPlacement(), given)
        with pytest.raises(Ended) as error:
            gateway.bring_up({}, client, said.append)
    (note,) = error.value.__notes__
    assert note.startswith("buckets that may be left: wb-check-")
    assert note.rpartition(": ")[2] in said[-1]
