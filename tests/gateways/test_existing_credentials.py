"""Credentials and layouts of gateways that already run."""

import socket
from pathlib import Path

import pytest
from pydantic import ValidationError

from tls_proxy import authority
from weighbridge.common.document import DocumentError
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.settings import ExistingSettings
from weighbridge.topologies.loader import load_hardware, load_layout, shipped_hardware

KEYS = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "ST_USER": "u", "ST_KEY": "k"}
LAYOUT = "name: mine\nabout: x\ngateway: existing\nrelease: any\nplace: {}\nsettings:\n"


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
def test_a_key_file_that_others_may_read_is_refused_with_advice(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "its credentials"
    path.write_text("[default]\naws_access_key_id = DA\naws_secret_access_key = planted\n")
    path.chmod(mode)
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(path), "AWS_CONFIG_FILE": "/nowhere/d"}
    with pytest.raises(UsageError) as error:
        s3_of("aws", files)
    assert f"others may read it (mode {mode:04o}): run chmod 600 '{path}'" in error.value.message
    assert "planted" not in str(error.value)
    assert s3_of(
        "environment", {**files, "AWS_ACCESS_KEY_ID": "EA", "AWS_SECRET_ACCESS_KEY": "ES"}
    ) == ("EA", "ES", None)


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("environment", {}, "s3: not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY"),
        ("environment", {"AWS_ACCESS_KEY_ID": "EA"}, "AWS_SECRET_ACCESS_KEY"),
        ("profile lab", KEYS, "s3: no profile 'lab' with keys in /nowhere/c"),
        ("aws", {}, "$AWS_SECRET_ACCESS_KEY; and no profile 'default' with keys in /nowhere/c"),
    ],
)
def test_missing_keys_are_reported_without_asking_the_network(
    monkeypatch: pytest.MonkeyPatch, text: str, environment: dict[str, str], words: str
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", asked)
    files = {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere/c", "AWS_CONFIG_FILE": "/nowhere/d"}
    with pytest.raises(UsageError) as error:
        s3_of(text, {**files, **environment})
    assert words in error.value.message


def test_all_missing_credentials_are_reported_at_once() -> None:
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
    with pytest.raises(UsageError, match=r"swift: \$ST_AUTH: give a URL such as"):
        credentials.endpoints(
            ExistingSettings.model_validate({"swift": {}}),
            {"ST_AUTH": "store", "ST_USER": "u", "ST_KEY": "k"},
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{about: x}", "give an API"),
        ("{s3: {url: store.example}}", "a URL such as"),
        ("{s3: {url: 'http://store.example:port'}}", "a URL such as"),
        ("{s3: {url: 'http://user:secret@store.example'}}", "a user or key must not be in a URL"),
        ("{s3: {url: 'http://store.example/bucket'}}", "scheme, host and port only"),
        ("{s3: {url: 'http://store.example', secret_key: x}}", "unknown key 'secret_key'"),
        ("{s3: {url: 'http://10.1.2.3', addressing: virtual}}", "10.1.2.3 is an IP address"),
        ("{s3: {url: 'http://store.example', addressing: virtaul}}", "did you mean 'virtual'"),
        ("{s3: {url: 'http://store.example', credentials: mine}}", "s3.credentials"),
        ("{s3: {url: 'https://a.example', ca_file: /nowhere.pem}}", "/nowhere.pem: No such file"),
        ("{s3: {url: 'https://a.example', ca_file: /etc/hostname}}", "contains no certificate"),
        ("{s3: {url: 'http://store.example', ca_file: CA}}", "ca_file is for https"),
        ("{swift: {auth_url: 'http://store.example/auth/v1.0', token_env: T}}", "either a token"),
        ("{swift: {auth_url: 'http://store.example/auth/v1.0?x=1'}}", "without ? and #"),
    ],
)
def test_an_invalid_layout_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    if "CA" in text:
        text = text.replace("CA", str(authority(tmp_path, ["store.example"])[0]))
    (tmp_path / "mine.yaml").write_text(f"{LAYOUT}  {text}\n")
    with pytest.raises(DocumentError) as error:
        load_layout(tmp_path / "mine.yaml", load_hardware(shipped_hardware()["this-machine"]))
    assert words in str(error.value)
    assert "mine.yaml:7:" in str(error.value)


def several(**parts: object) -> tuple[Endpoint, ...]:
    given = ExistingSettings.model_validate(parts)
    assert given.spreads
    return credentials.endpoints(given, {**KEYS, "OS_AUTH_TOKEN": "t"})


def test_several_endpoints_have_the_same_keys() -> None:
    swift, s3 = several(
        s3={"url": ["http://a:8000", "http://b:8000/"], "credentials": "environment"},
        swift={"auth_url": ["http://a:8080/auth/v1.0", "http://b:8081/auth/v1.0"]},
        endpoints={"spread": "round-robin", "drop_dead": True},
    )
    assert [one.url for one in s3.each()] == ["http://a:8000", "http://b:8000"]
    assert [one.url for one in swift.each()] == [
        "http://a:8080/auth/v1.0",
        "http://b:8081/auth/v1.0",
    ]
    for one in (swift, s3):
        assert (one.spreading.spread, one.spreading.drop_dead) == ("round-robin", True)
        assert len({each.key.get_secret_value() for each in one.each()}) == 1


def test_storage_urls_of_several_endpoints_are_used_with_one_auth_or_a_token() -> None:
    storage = ["http://a:8080/v1/AUTH_x", "http://b:8080/v1/AUTH_x"]
    (swift,) = several(swift={"auth_url": "http://auth/auth/v1.0", "storage_url": storage})
    assert [one.storage_url for one in swift.each()] == storage
    assert {one.url for one in swift.each()} == {"http://auth/auth/v1.0"}
    (swift,) = several(swift={"token_env": "OS_AUTH_TOKEN", "storage_url": storage})
    assert [(one.url, one.storage_url) for one in swift.each()] == [(url, None) for url in storage]
    (s3,) = several(s3={"url": "http://a:8000", "addresses": "all", "credentials": "environment"})
    assert (s3.url, s3.addresses, s3.others) == ("http://a:8000", "all", ())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"s3": {"url": []}}, "give 1 to 64 URLs"),
        ({"s3": {"url": [f"http://a{n}" for n in range(65)]}}, "give 1 to 64 URLs"),
        ({"s3": {"url": ["http://a", "http://a/"]}}, "listed twice"),
        ({"s3": {"url": ["http://a", "https://b"]}}, "use TLS and others do not"),
        ({"s3": {"url": ["http://a", "b"]}}, "give a URL such as"),
        ({"s3": {"url": ["http://a", "http://u:planted@b"]}}, "must not be in a URL"),
        ({"s3": {"url": ["http://a", "http://b/x"]}}, "scheme, host and port only"),
        ({"s3": {"url": ["http://a", "http://b"], "addresses": "all"}}, "not both"),
        ({"s3": {"url": "http://a", "addressing": "virtual", "addresses": "all"}}, "needs `addre"),
        ({"s3": {"url": ["http://a", "http://10.0.0.1"], "addressing": "virtual"}}, "IP address"),
        ({"s3": {"url": "http://a"}, "endpoints": {}}, "there is only one"),
        ({"swift": {"auth_url": ["http://a/auth", "http://b/v1"]}}, "must have the same path"),
        (
            {"swift": {"auth_url": ["http://a/x", "http://b/x"], "storage_url": "http://a/v1/A"}},
            "list the storage URLs instead",
        ),
    ],
)
def test_several_endpoints_that_cannot_be_are_refused(
    parts: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as error:
        ExistingSettings.model_validate(parts)
    assert "planted" not in str(error.value.errors(include_input=False))
