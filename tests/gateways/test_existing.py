"""Gateways that already run, without root: the null target, plain and behind TLS of an authority of
its own.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from swiftclient.client import Connection

from weighbridge.common.document import DocumentError
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import CommandFailed, TargetError, UsageError, VerificationFailed
from weighbridge.gateways.endpoint_program import run_with_endpoints
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.existing import Existing
from weighbridge.gateways.existing.settings import ExistingPlacement, ExistingSettings
from weighbridge.gateways.gateway import Standing
from weighbridge.gateways.verify import verify
from weighbridge.topologies.loader import load_hardware, load_layout, shipped_hardware
from weighbridge.topologies.this_machine import ThisHost

sys.path.insert(0, str(Path(__file__).parent))
from tls_proxy import authority, terminated

KEY = "a-planted-secret"
LAYOUT = "name: mine\nabout: x\ngateway: existing\nrelease: any\nplace: {}\nsettings:\n"


@contextmanager
def null_target(*options: str) -> Iterator[tuple[str, int]]:
    argv = [
        sys.executable,
        "-m",
        "weighbridge",
        "null-target",
        "--port",
        "0",
        "--user",
        "weigh:er",
        *options,
    ]
    env = {"WEIGHBRIDGE_NULL_KEY": KEY, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["listening"]
        try:
            yield "127.0.0.1", int(url.rsplit(":", 1)[1])
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def null() -> Iterator[tuple[str, int]]:
    with null_target() as place:
        yield place


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ThisHost]:
    host = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    yield host
    host.close()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Credentials of the null target in the environment, and no AWS files but those of the test."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "OS_STORAGE_URL", "OS_AUTH_TOKEN", "ST_AUTH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "weigh:er", "AWS_SECRET_ACCESS_KEY": KEY, "ST_USER": "weigh:er", "ST_KEY": KEY,
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"), "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return monkeypatch


def settings(place: tuple[str, int], scheme: str = "http", **parts: Any) -> ExistingSettings:
    base = f"{scheme}://{place[0]}:{place[1]}"
    both = {"s3": {"url": base}, "swift": {"auth_url": f"{base}/auth/v1.0"}}
    return ExistingSettings.model_validate(
        {
            api: {**part, **parts.get(api, {})}
            for api, part in both.items()
            if parts.get(api) is not False
        }
    )


def rise(client: ThisHost, given: ExistingSettings) -> Standing:
    return Existing("any", ExistingPlacement(), given).bring_up({}, client, print)


def containers(place: tuple[str, int]) -> list[str]:
    swift: Any = Connection(f"http://{place[0]}:{place[1]}/auth/v1.0", "weigh:er", KEY, retries=0)
    found = [one["name"] for one in swift.get_account()[1]]
    swift.close()
    return found


def fill(place: tuple[str, int], container: str, objects: int) -> None:
    swift: Any = Connection(f"http://{place[0]}:{place[1]}/auth/v1.0", "weigh:er", KEY, retries=0)
    swift.put_container(container)
    for number in range(objects):
        swift.put_object(container, f"an object/{number} of some", b"x")
    swift.close()


@pytest.mark.usefixtures("environment")
def test_what_already_runs_is_verified_over_both_apis_and_nothing_stays_in_it(
    null: tuple[str, int], client: ThisHost
) -> None:
    before = containers(null)
    standing = rise(client, settings(null))
    assert standing.facts["verified"] == "16 operations over swift and s3, reads byte for byte"
    assert standing.facts["s3: tls"] == "none: plain HTTP"
    assert standing.facts["caches"].startswith("not dropped")
    assert KEY not in json.dumps(dict(standing.facts))
    assert standing.drop_caches()[0].startswith("not dropped")
    standing.check()
    assert containers(null) == before


@pytest.mark.usefixtures("environment")
def test_clearing_deletes_the_buckets_that_are_named_however_full_and_no_other(
    null: tuple[str, int], client: ThisHost
) -> None:
    fill(null, "wb-1-small-0", 1100)
    fill(null, "wb-1-small-01", 1)
    standing = rise(client, settings(null))
    told = standing.clear(["wb-1-small-0", "wb-1-small-1"])
    assert told == ("deleted the bucket wb-1-small-0 and the 1100 objects left in it",)
    assert containers(null) == ["wb-1-small-01"]
    assert standing.clear(["wb-1-small-01"])
    assert standing.clear(["wb-1-small-01"]) == ()


@pytest.mark.usefixtures("environment")
def test_buckets_that_cannot_be_deleted_are_named(client: ThisHost) -> None:
    with null_target() as place:
        standing = rise(client, settings(place))
    with pytest.raises(TargetError) as error:
        standing.clear(["wb-1-small-0", "wb-1-small-1"])
    assert "  wb-1-small-0, wb-1-small-1: " in error.value.message
    assert "ConnectionRefusedError" in error.value.message
    with pytest.raises(
        TargetError, match=f"at http://127.0.0.1:{place[1]}.*ConnectionRefusedError"
    ):
        standing.check()


@pytest.mark.usefixtures("environment")
def test_a_verification_that_goes_wrong_leaves_no_bucket(client: ThisHost) -> None:
    with null_target("--fail-share", "1") as place:
        with pytest.raises(VerificationFailed, match=r"swift PUT at .* \(status 503\)"):
            rise(client, settings(place))
        assert containers(place) == []


def test_a_wrong_key_is_told_with_where_it_came_from(
    null: tuple[str, int], client: ThisHost, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("ST_KEY", "wrong")
    with pytest.raises(VerificationFailed, match=r"swift auth at .*status 401") as error:
        rise(client, settings(null))
    assert "$ST_KEY" in error.value.advice


@pytest.mark.usefixtures("environment")
def test_a_host_that_has_no_address_is_told_before_anything_else(client: ThisHost) -> None:
    with pytest.raises(TargetError, match=r"store\.invalid: no answer: its name has no address"):
        rise(client, settings(("store.invalid", 80), swift=False))


def test_a_token_that_was_given_opens_swift_without_auth(
    null: tuple[str, int], client: ThisHost, environment: pytest.MonkeyPatch
) -> None:
    swift: Any = Connection(f"http://{null[0]}:{null[1]}/auth/v1.0", "weigh:er", KEY, retries=0)
    url, token = swift.get_auth()
    environment.setenv("OS_AUTH_TOKEN", token)
    environment.setenv("OS_STORAGE_URL", url)
    environment.delenv("ST_KEY")
    given = ExistingSettings.model_validate({"swift": {"token_env": "OS_AUTH_TOKEN"}})
    assert rise(client, given).facts["swift: credentials"] == "of the token of $OS_AUTH_TOKEN"
    environment.setenv("OS_AUTH_TOKEN", "old")
    with pytest.raises(VerificationFailed, match="status 401"):
        rise(client, given)


@pytest.mark.usefixtures("environment")
def test_tls_is_checked_against_the_authority_that_is_given(
    null: tuple[str, int], client: ThisHost, tmp_path: Path
) -> None:
    ca, certificate = authority(tmp_path / "tls", ["127.0.0.1"])
    other, _ = authority(tmp_path / "tls", ["127.0.0.1"], name="other")
    with terminated(certificate, null) as port:
        base = f"https://127.0.0.1:{port}"
        storage = {"ca_file": str(ca), "storage_url": f"{base}/v1/AUTH_test"}
        standing = rise(
            client, settings(("127.0.0.1", port), "https", s3={"ca_file": str(ca)}, swift=storage)
        )
        assert "signed by Test authority" in standing.facts["s3: tls"]
        assert standing.facts["s3: tls"].startswith("TLSv1.")
        for trusted in ({}, {"ca_file": str(other)}):
            with pytest.raises(TargetError, match="its certificate is not accepted: ") as error:
                rise(client, settings(("127.0.0.1", port), "https", s3=trusted, swift=False))
            assert "ca_file" in error.value.advice or str(other) in error.value.advice
        with pytest.raises(
            VerificationFailed, match=r"storage URL is http://.* in the clear; set `storage_url`"
        ):
            rise(
                client, settings(("127.0.0.1", port), "https", s3=False, swift={"ca_file": str(ca)})
            )


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("name", "expired", "what"),
    [("store.example", False, "IP address mismatch"), ("127.0.0.1", True, "has expired")],
)
def test_a_certificate_for_another_name_or_time_is_not_accepted(
    null: tuple[str, int], client: ThisHost, tmp_path: Path, name: str, expired: bool, what: str
) -> None:
    ca, certificate = authority(tmp_path / "tls", [name], expired=expired)
    with (
        terminated(certificate, null) as port,
        pytest.raises(TargetError, match=f"its certificate is not accepted: .*{what}"),
    ):
        rise(client, settings(("127.0.0.1", port), "https", s3={"ca_file": str(ca)}, swift=False))


def s3_of(text: str, environment: dict[str, str]) -> tuple[str, str, str | None]:
    given = ExistingSettings.model_validate(
        {"s3": {"url": "http://store.example", "credentials": text}}
    )
    (endpoint,) = credentials.endpoints(given, environment)
    return (
        endpoint.user,
        endpoint.key.get_secret_value(),
        endpoint.token and endpoint.token.get_secret_value(),
    )


def test_s3_keys_come_from_the_environment_or_the_aws_files_as_the_layout_says(
    tmp_path: Path,
) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = DA\naws_secret_access_key = DS\n"
        "[lab]\naws_access_key_id = LA\naws_secret_access_key = LS\naws_session_token = LT\n"
    )
    (tmp_path / "config").write_text(
        "[profile site]\naws_access_key_id = SA\naws_secret_access_key = SS\n"
    )
    (tmp_path / "credentials").chmod(0o600)
    (tmp_path / "config").chmod(0o400)
    files = {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }
    keys = {"AWS_ACCESS_KEY_ID": "EA", "AWS_SECRET_ACCESS_KEY": "ES", "AWS_SESSION_TOKEN": "ET"}
    assert s3_of("environment", {**files, **keys}) == ("EA", "ES", "ET")
    assert s3_of("aws", {**files, **keys}) == ("EA", "ES", "ET")
    assert s3_of("aws", files) == ("DA", "DS", None)
    assert s3_of("aws", {**files, "AWS_PROFILE": "site"}) == ("SA", "SS", None)
    assert s3_of("profile lab", {**files, **keys}) == ("LA", "LS", "LT")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_of_keys_that_others_may_read_is_refused_with_what_to_do(
    tmp_path: Path, mode: int
) -> None:
    path = tmp_path / "its credentials"
    path.write_text("[default]\naws_access_key_id = DA\naws_secret_access_key = planted\n")
    path.chmod(mode)
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(path), "AWS_CONFIG_FILE": "/nowhere/d"}
    with pytest.raises(UsageError) as error:
        s3_of("aws", files)
    assert f"others may read it (mode {mode:04o}): chmod 600 '{path}'" in error.value.message
    assert "planted" not in str(error.value)
    assert s3_of(
        "environment", {**files, "AWS_ACCESS_KEY_ID": "EA", "AWS_SECRET_ACCESS_KEY": "ES"}
    ) == ("EA", "ES", None)


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("environment", {}, "s3: not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY"),
        ("environment", {"AWS_ACCESS_KEY_ID": "EA"}, "AWS_SECRET_ACCESS_KEY"),
        (
            "profile lab",
            {"AWS_ACCESS_KEY_ID": "EA", "AWS_SECRET_ACCESS_KEY": "ES"},
            "s3: no profile 'lab' with keys in /nowhere/c",
        ),
        (
            "aws",
            {},
            (
                "s3: not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY; and no profile 'default' "
                "with keys in /nowhere/c"
            ),
        ),
    ],
)
def test_missing_keys_are_told_with_what_to_set_and_the_network_is_not_asked_for_them(
    monkeypatch: pytest.MonkeyPatch, text: str, environment: dict[str, str], words: str
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("somebody was asked over the network")

    monkeypatch.setattr(socket.socket, "connect", asked)
    files = {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere/c", "AWS_CONFIG_FILE": "/nowhere/d"}
    with pytest.raises(UsageError) as error:
        s3_of(text, {**files, **environment})
    assert words in error.value.message


def test_everything_that_is_missing_is_told_at_once() -> None:
    given = ExistingSettings.model_validate(
        {"s3": {"url": "http://a.example", "credentials": "environment"}, "swift": {}}
    )
    with pytest.raises(UsageError) as error:
        credentials.endpoints(given, {})
    assert error.value.message.splitlines() == [
        "swift: not set: $ST_AUTH, $ST_USER, $ST_KEY",
        "s3: not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY",
    ]
    with pytest.raises(UsageError, match=r"swift: not set: \$OS_STORAGE_URL"):
        credentials.endpoints(
            ExistingSettings.model_validate({"swift": {"token_env": "T"}}), {"T": "t"}
        )
    with pytest.raises(UsageError, match=r"swift: \$ST_AUTH: a URL such as"):
        credentials.endpoints(
            ExistingSettings.model_validate({"swift": {}}),
            {"ST_AUTH": "store", "ST_USER": "u", "ST_KEY": "k"},
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{about: x}", "an API is wanted"),
        ("{s3: {url: store.example}}", "a URL such as"),
        ("{s3: {url: 'http://store.example:port'}}", "a URL such as"),
        ("{s3: {url: 'http://user:secret@store.example'}}", "no user or key belongs into a URL"),
        ("{s3: {url: 'http://store.example/bucket'}}", "scheme, host and port alone"),
        ("{s3: {url: 'http://store.example', secret_key: x}}", "unknown key 'secret_key'"),
        (
            "{s3: {url: 'http://10.1.2.3', addressing: virtual}}",
            "virtual hosts need a name, and 10.1.2.3 is an address",
        ),
        ("{s3: {url: 'http://store.example', addressing: virtaul}}", "did you mean 'virtual'"),
        ("{s3: {url: 'http://store.example', credentials: mine}}", "s3.credentials"),
        (
            "{s3: {url: 'https://store.example', ca_file: /nowhere.pem}}",
            "/nowhere.pem: No such file",
        ),
        (
            "{s3: {url: 'https://store.example', ca_file: /etc/hostname}}",
            "/etc/hostname: holds no certificate in PEM form",
        ),
        ("{s3: {url: 'http://store.example', ca_file: CA}}", "ca_file is for https"),
        ("{swift: {auth_url: 'http://store.example/auth/v1.0', token_env: T}}", "either a token"),
        ("{swift: {auth_url: 'http://store.example/auth/v1.0?x=1'}}", "without ? and #"),
    ],
)
def test_a_layout_that_cannot_be_meant_is_refused_at_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    if "CA" in text:
        text = text.replace("CA", str(authority(tmp_path, ["store.example"])[0]))
    (tmp_path / "mine.yaml").write_text(f"{LAYOUT}  {text}\n")
    with pytest.raises(DocumentError) as error:
        load_layout(tmp_path / "mine.yaml", load_hardware(shipped_hardware()["this-machine"]))
    assert words in str(error.value)
    assert "mine.yaml:7:" in str(error.value)


@pytest.mark.parametrize("variable", ["ST_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_key_with_the_end_of_a_line_is_used_without_it(
    variable: str,
    end: str,
    null: tuple[str, int],
    client: ThisHost,
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv(
        variable, ("planted-session" if variable == "AWS_SESSION_TOKEN" else KEY) + end
    )
    assert rise(client, settings(null)).facts["verified"].startswith("16 operations")


@pytest.mark.parametrize(
    "variable", ["ST_KEY", "ST_USER", "OS_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
)
def test_a_key_that_no_request_can_carry_is_refused_before_anything_is_asked_and_is_not_shown(
    variable: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(variable, "planted-one\nplanted-two")
    token = {"token_env": variable, "storage_url": "http://127.0.0.1:9"}
    swift = token if variable == "OS_AUTH_TOKEN" else {"auth_url": "http://127.0.0.1:9"}
    given = ExistingSettings.model_validate({"swift": swift, "s3": {"url": "http://127.0.0.1:9"}})
    with pytest.raises(UsageError, match=f"{variable}: holds|s3: the se.*holds") as error:
        credentials.endpoints(given, dict(os.environ))
    assert "planted" not in str(error.value)


def test_a_key_in_an_address_of_the_environment_is_refused_and_not_shown(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("ST_AUTH", "https://user:planted@store.example/auth/v1.0")
    with pytest.raises(UsageError, match=r"\$ST_AUTH: no user or key belongs into a URL") as error:
        credentials.endpoints(ExistingSettings.model_validate({"swift": {}}), dict(os.environ))
    assert "planted" not in str(error.value)


def test_no_words_of_a_library_show_a_key_that_it_cannot_send(
    null: tuple[str, int], client: ThisHost
) -> None:
    host, port = null
    auth = f"http://{host}:{port}/auth/v1.0"
    endpoint = Endpoint(
        api="swift", url=auth, user="weigh:er", key=SecretStr("planted-one\nplanted-two")
    )
    with pytest.raises(VerificationFailed, match=r"swift auth at .*: not asked: ") as error:
        verify(client, [endpoint])
    assert "planted" not in str(error.value)


def test_a_program_that_fails_with_a_key_in_its_last_words_is_told_without_it(
    client: ThisHost,
) -> None:
    endpoint = Endpoint(api="s3", url="http://127.0.0.1:9", user="u", key=SecretStr("planted-key"))
    with pytest.raises(CommandFailed) as error:
        run_with_endpoints(client, "tests.gateways.says_all", [endpoint], {}, timeout_s=20.0)
    assert "Invalid header value" in str(error.value)
    assert "planted" not in str(error.value)
