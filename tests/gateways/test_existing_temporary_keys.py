"""Keys of S3 that end: where they come from, and that new ones are got in time."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from aws_profiles import by_program, by_role, files, given
from dripping import dripping
from tcp_relay import relayed
from weighbridge.common import credential
from weighbridge.common.credential import Keys, RenewedKeys
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.settings import ExistingSettings


def endpoint_of(environment: dict[str, str], text: str = "profile lab") -> Endpoint:
    settings = ExistingSettings.model_validate(
        {"s3": {"url": "http://store.example", "credentials": text}}
    )
    (endpoint,) = credentials.endpoints(settings, environment)
    return endpoint


def keys_of(endpoint: Endpoint) -> tuple[str, str, str]:
    token = "" if endpoint.token is None else endpoint.token.get_secret_value()
    return endpoint.user, endpoint.key.get_secret_value(), token


def left_s(endpoint: Endpoint) -> float:
    assert endpoint.keys_end_at is not None
    return (endpoint.keys_end_at - datetime.now(UTC)).total_seconds()


def test_a_profiles_program_gives_keys_and_gives_them_again(tmp_path: Path) -> None:
    endpoint = endpoint_of(by_program(tmp_path, 3600))
    assert keys_of(endpoint) == ("A1", "planted1", "token1")
    assert 3590 < left_s(endpoint) < 3600
    again = credentials.with_new_keys(endpoint)
    assert keys_of(again) == ("A2", "planted2", "token2")
    assert again.key_source == endpoint.key_source
    assert "planted" not in repr((endpoint, again))


def test_keys_of_a_program_that_never_end_are_read_once(tmp_path: Path) -> None:
    endpoint = endpoint_of(by_program(tmp_path, 0))
    assert (endpoint.keys_end_at, endpoint.key_source) == (None, None)
    assert credentials.with_new_keys(endpoint) is endpoint
    assert given(tmp_path) == 1


def test_a_profiles_role_is_assumed_with_the_keys_of_its_source(tmp_path: Path) -> None:
    with by_role(tmp_path) as (environment, asked):
        endpoint = endpoint_of(environment)
        assert keys_of(endpoint) == ("R1", "planted", "role1")
        assert keys_of(credentials.with_new_keys(endpoint)) == ("R2", "planted", "role2")
        assert [one["RoleArn"] for one in asked] == [["arn:aws:iam:::role/weigh"]] * 2
        (tmp_path / "credentials").chmod(0o644)
        with pytest.raises(UsageError, match=r"others may read it \(mode 0644\)"):
            endpoint_of(environment)


def test_keys_in_the_credentials_file_go_before_a_program_as_with_the_aws_tools(
    tmp_path: Path,
) -> None:
    environment = by_program(tmp_path, 3600)
    path = tmp_path / "credentials"
    path.write_text("[lab]\naws_access_key_id = FA\naws_secret_access_key = FS\n")
    path.chmod(0o600)
    assert keys_of(endpoint_of(environment)) == ("FA", "FS", "")
    assert given(tmp_path) == 0


def test_a_program_that_fails_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[profile lab]\ncredential_process = false\n")
    with pytest.raises(UsageError, match=r"profile 'lab' gives no keys \(custom-process\)"):
        endpoint_of(files(tmp_path))
    (tmp_path / "config").write_text("[profile lab]\ncredential_process = echo planted\n")
    with pytest.raises(UsageError) as error:
        endpoint_of(files(tmp_path))
    assert "planted" not in error.value.message
    endpoint = endpoint_of(by_program(tmp_path, 3600))
    endpoint = endpoint.model_copy(update={"keys_end_at": datetime.now(UTC)})
    (tmp_path / "keys.py").write_text("raise SystemExit('log in first')")
    with pytest.raises(TargetError, match="log in first"):
        credentials.with_new_keys(endpoint)
    secret = endpoint.key.get_secret_value()
    (tmp_path / "keys.py").write_text(f"raise SystemExit('cannot renew {secret}')")
    with pytest.raises(TargetError, match=r"cannot renew \*\*\*"):
        credentials.with_new_keys(endpoint)


def test_keys_that_are_still_good_are_kept_where_there_are_no_new_ones(tmp_path: Path) -> None:
    endpoint = endpoint_of(by_program(tmp_path, 3600))
    (tmp_path / "keys.py").write_text("raise SystemExit('log in first')")
    assert credentials.with_new_keys(endpoint) is endpoint


def test_a_token_service_that_drips_is_given_up_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = threading.Event()

    class Asking(threading.Thread):
        """Is waited for until it has asked, however late that is, and then hardly longer."""

        def join(self, timeout: float | None = None) -> None:
            assert sent.wait(60)
            super().join(0.1)

    monkeypatch.setattr(credential, "threading", SimpleNamespace(Thread=Asking))
    with (
        dripping() as silent,
        relayed(silent, lambda _: sent.set()) as port,
        by_role(tmp_path) as (environment, asked),
    ):
        config = tmp_path / "config"
        url = f"http://127.0.0.1:{port}"
        config.write_text(re.sub(r"http://127\.0\.0\.1:\d+", url, config.read_text()))
        with pytest.raises(
            UsageError,
            match=rf"{url}/ was asked for keys: no complete answer within 30 s",
        ):
            endpoint_of(environment)
    assert not asked


def test_a_program_that_hangs_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential, "GIVEN_WITHIN_S", 0.2)
    (tmp_path / "config").write_text("[profile lab]\ncredential_process = sleep 100\n")
    with pytest.raises(UsageError, match=r"took longer than 0\.2 s"):
        endpoint_of(files(tmp_path))


def test_the_environment_may_say_when_its_keys_end(tmp_path: Path) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "EA", "AWS_SECRET_ACCESS_KEY": "ES", "AWS_SESSION_TOKEN": "ET"}
    end = datetime.now(UTC) + timedelta(seconds=100)
    ending = {**files(tmp_path), **keys, "AWS_CREDENTIAL_EXPIRATION": end.isoformat()}
    endpoint = endpoint_of(ending, "environment")
    assert keys_of(endpoint) == ("EA", "ES", "ET")
    assert endpoint.keys_end_at == end
    assert endpoint.key_source is None
    ended = {**ending, "AWS_CREDENTIAL_EXPIRATION": "2026-01-02T03:04:05+00:00"}
    with pytest.raises(UsageError, match="the keys in the environment have expired"):
        endpoint_of(ended, "environment")


def test_keys_are_got_again_when_most_of_their_life_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = endpoint_of(by_program(tmp_path, 3600)).key_source
    assert source is not None
    now_s = 1000.0
    monkeypatch.setattr(credential.time, "monotonic", lambda: now_s)
    end = datetime.now(UTC) + timedelta(seconds=100)
    renewed = RenewedKeys(source, Keys("A", "S", "T", end))
    now_s += 70
    assert renewed.now().access == "A"
    now_s += 12
    assert renewed.now().access == "A2"
    now_s += 2800
    assert renewed.now().access == "A2"
    now_s += 100
    assert renewed.now().access == "A3"


def test_keys_of_a_source_that_fails_are_used_until_their_end_and_asked_for_not_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = endpoint_of(by_program(tmp_path, 3600)).key_source
    assert source is not None
    now_s, asked = 1000.0, 0

    def fails(*_: object) -> Keys:
        nonlocal asked
        asked += 1
        raise credential.KeysUnavailable("log in first")

    monkeypatch.setattr(credential, "load_again", fails)
    monkeypatch.setattr(credential.time, "monotonic", lambda: now_s)
    end = datetime.now(UTC) + timedelta(seconds=100)
    renewed = RenewedKeys(source, Keys("A", "S", "T", end))
    for passed_s in (81, 1, 28, 2):
        now_s += passed_s
        assert renewed.now().access == "A"
    assert asked == 2
    # Less than the 30 s that it waits otherwise is left: it asks again when half of that is over.
    soon = RenewedKeys(source, Keys("A", "S", "T", datetime.now(UTC) + timedelta(seconds=20)))
    for passed_s in (17, 5, 6):
        now_s += passed_s
        assert soon.now().access == "A"
    assert asked == 4
    ended = RenewedKeys(source, Keys("A", "S", "T", datetime.now(UTC) - timedelta(seconds=1)))
    with pytest.raises(credential.KeysUnavailable, match="log in first"):
        ended.now()
