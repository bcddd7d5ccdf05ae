"""Credentials and layouts of gateways that already run."""

from __future__ import annotations

import os
import socket
import socketserver
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from aws_profiles import by_program, by_role, files, given
from http_stub import served
from tls_proxy import authority
from weighbridge.common import credential
from weighbridge.common.credential import Keys, Keystone, RenewedKeys
from weighbridge.common.document import DocumentError
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.credentials import settings_of
from weighbridge.gateways.existing.settings import ExistingSettings
from weighbridge.topologies.loader import load_hardware, load_layout, shipped_hardware

KEYS = {"AWS_ACCESS_KEY_ID": "EA", "AWS_SECRET_ACCESS_KEY": "ES", "ST_USER": "u", "ST_KEY": "k"}
NOWHERE = {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere/c", "AWS_CONFIG_FILE": "/nowhere/d"}
LAYOUT = "name: mine\nabout: x\ngateway: existing\nrelease: any\nplace: {}\nsettings:\n"
ROOT = "http://keystone.example:5000"
RC = {
    "OS_AUTH_URL": ROOT,
    "OS_USERNAME": "demo",
    "OS_USER_DOMAIN_NAME": "Users",
    "OS_PROJECT_ID": "p1",
    "OS_TENANT_ID": "old",
    "OS_TENANT_NAME": "lab",
    "OS_PROJECT_DOMAIN_ID": "default",
    "OS_REGION_NAME": "one",
    "OS_ENDPOINT_TYPE": "internalURL",
    "OS_AUTH_TYPE": "v3password",
    "OS_PASSWORD": "planted\n",
}
"""As openrc files set them, some by older names."""
APPLICATION = {
    "OS_AUTH_URL": "http://keystone.example/v3",
    "OS_APPLICATION_CREDENTIAL_ID": "a1",
    "OS_APPLICATION_CREDENTIAL_SECRET": "s",
}
KEYSTONE: dict[str, Any] = {"swift": {"keystone": {}}}


def endpoint_of(environment: Mapping[str, str], text: str = "profile lab") -> Endpoint:
    return made({"s3": {"url": "http://store.example", "credentials": text}}, environment)[0]


def made(parts: Mapping[str, object], environment: Mapping[str, str]) -> tuple[Endpoint, ...]:
    return credentials.endpoints(ExistingSettings.model_validate(parts), environment)


def keys_of(endpoint: Endpoint) -> tuple[str, str, str | None]:
    token = endpoint.token and endpoint.token.get_secret_value()
    return endpoint.user, endpoint.key.get_secret_value(), token


def profile_files(folder: Path, config: str) -> dict[str, str]:
    """The environment of a profile `lab` with keys and this configuration."""
    (folder / "credentials").write_text(
        "[lab]\naws_access_key_id = LA\naws_secret_access_key = LS\n"
    )
    (folder / "credentials").chmod(0o600)
    (folder / "config").write_text(config, encoding="utf-8")
    return files(folder)


def test_s3_keys_come_from_the_environment_or_the_aws_files_as_the_layout_says(
    tmp_path: Path,
) -> None:
    mine = "[profile 'my site']\naws_access_key_id = SA\naws_secret_access_key = SS\n"
    files = profile_files(tmp_path, mine)
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = DA\naws_secret_access_key = DS\n"
        "[lab]\naws_access_key_id = LA\naws_secret_access_key = LS\naws_session_token = LT\n"
    )
    (tmp_path / "config").chmod(0o400)
    keys = {**KEYS, "AWS_SESSION_TOKEN": "ET"}
    site = {"AWS_DEFAULT_PROFILE": "my site", "AWS_PROFILE": "lab"}
    for text, more, wanted in (
        ("environment", keys, ("EA", "ES", "ET")),
        ("aws", keys, ("EA", "ES", "ET")),
        ("aws", {}, ("DA", "DS", None)),
        ("aws", site, ("SA", "SS", None)),
        ("profile my site", site, ("SA", "SS", None)),
        ("profile lab", keys, ("LA", "LS", "LT")),
    ):
        assert keys_of(endpoint_of({**files, **more}, text)) == wanted


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_key_file_that_others_may_read_is_refused_with_advice(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "its credentials"
    path.write_text("[default]\naws_access_key_id = DA\naws_secret_access_key = planted\n")
    path.chmod(mode)
    files = {**NOWHERE, "AWS_SHARED_CREDENTIALS_FILE": str(path)}
    with pytest.raises(UsageError) as error:
        endpoint_of(files, "aws")
    assert f"others may read it (mode {mode:04o}): run chmod 600 '{path}'" in error.value.message
    assert "planted" not in str(error.value)
    assert keys_of(endpoint_of({**files, **KEYS}, "environment")) == ("EA", "ES", None)


@pytest.mark.parametrize("variable", NOWHERE)
def test_a_file_of_keys_that_is_a_pipe_is_refused_and_not_waited_for(
    tmp_path: Path, variable: str
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(UsageError, match=f"s3: {pipe}: is a pipe, not a regular file"):
        endpoint_of({**NOWHERE, variable: str(pipe)}, "aws")


BY_ENVIRONMENT = {"s3": {"url": "http://a.example", "credentials": "environment"}}
BY_USUAL = {"s3": {"url": "http://a.example"}}
NOT_SET = "s3: not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY"
NO_PROFILE = "no profile 'default' with keys in /nowhere/c"
NO_SWIFT = "swift: not set: $ST_AUTH, $ST_USER, $ST_KEY (of auth v1; Keystone's URL ends with /v3)"
NO_RC = "swift: not set: $OS_AUTH_URL, $OS_USERNAME or $OS_USER_ID, $OS_PROJECT_NAME or "
OF_B = {"swift": {"keystone": {"suffix": "_B"}}}


@pytest.mark.parametrize(
    ("parts", "environment", "words"),
    [
        (BY_ENVIRONMENT, {}, NOT_SET),
        (BY_ENVIRONMENT, {"AWS_ACCESS_KEY_ID": "EA"}, "AWS_SECRET_ACCESS_KEY"),
        (BY_USUAL, {"AWS_PROFILE": "lab"}, "no profile 'lab' with keys in /nowhere/c"),
        (BY_USUAL, {}, f"{NOT_SET}; and {NO_PROFILE}"),
        ({**BY_ENVIRONMENT, "swift": {}}, {}, f"{NO_SWIFT}\n{NOT_SET}"),
        ({"swift": {"token_env": "T"}}, {"T": "t"}, "swift: not set: $OS_STORAGE_URL"),
        ({"swift": {}}, {**KEYS, "ST_AUTH": "store"}, "swift: $ST_AUTH: give a URL such as"),
        (KEYSTONE, {}, f"{NO_RC}$OS_PROJECT_ID, $OS_PASSWORD"),
        (OF_B, RC, "$OS_AUTH_URL_B, $OS_USERNAME_B or $OS_USER_ID_B"),
        (
            KEYSTONE,
            {"OS_APPLICATION_CREDENTIAL_NAME": "weigh", "OS_AUTH_URL": "http://k"},
            "not set: $OS_USERNAME or $OS_USER_ID, $OS_APPLICATION_CREDENTIAL_SECRET",
        ),
        *(
            (KEYSTONE, {**RC, f"OS_{name}": value}, words)
            for name, value, words in (
                ("INTERFACE", "outer", "$OS_INTERFACE: set it to public, internal or admin"),
                ("AUTH_TYPE", "v3token", "$OS_AUTH_TYPE asks for what is not known here"),
                ("AUTH_TYPE", "v3applicationcredential", "$OS_APPLICATION_CREDENTIAL_ID"),
                ("CLOUD", "mine", "$OS_CLOUD asks for what is not known here: clouds.yaml is not"),
                ("AUTH_URL", "keystone", "$OS_AUTH_URL: give a URL such as"),
                ("AUTH_URL", "http://demo:planted@keystone", "must not be in a URL"),
            )
        ),
        *(
            (OF_B, {**RC, f"OS_{name}_B": "True"}, f"$OS_{name}_B asks for what is not known here")
            for name in (
                *("CLOUD", "TRUST_ID", "SYSTEM_SCOPE", "DOMAIN_ID", "DOMAIN_NAME", "INSECURE"),
                *("CERT", "STORAGE_URL", "OBJECT_STORE_ENDPOINT_OVERRIDE"),
            )
        ),
    ],
)
def test_what_is_missing_or_cannot_be_used_is_named_without_asking_the_network(
    monkeypatch: pytest.MonkeyPatch, parts: Any, environment: dict[str, str], words: str
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", asked)
    with pytest.raises(UsageError) as error:
        made(parts, {**NOWHERE, **environment})
    assert words in error.value.message
    assert "planted" not in str(error.value)
    assert ("not set" in words) <= ("aws configure export-credentials" in error.value.advice)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("\ufeff[default]\naws_access_key_id = k\n", r"config.* \(line 1: missing section header"),
        ("[default]\n[lab]\n[lab]\n", r"config.* \(line 3: duplicate section\)$"),
        ("aws_secret_access_key = planted\n", r"config.* \(line 1: missing section header\)$"),
        ("[profile lab]\nregion = a/b\n", "s3: profile 'lab': region: "),
        ("[profile lab]\nca_bundle = /none\n", "s3: profile 'lab': ca_file: /none: No"),
        ("[profile lab]\ns3 =\n  signature_version = s3\n", "asks for signature_version = s3, "),
    ],
)
def test_a_file_or_a_profile_that_cannot_be_used_is_named(
    tmp_path: Path, config: str, words: str
) -> None:
    environment = {**profile_files(tmp_path, config), "AWS_PROFILE": "lab"}
    with pytest.raises(UsageError, match=words) as error:
        made({"s3": {"url": "https://store.example"}}, environment)
    assert "planted" not in error.value.message


LISTED = str([f"http://a{number}" for number in range(65)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{about: x}", "give an API"),
        ("{s3: {url: store.example}}", "a URL such as"),
        ("{s3: {url: 'http://store.example:port'}}", "a URL such as"),
        ("{s3: {url: 'http://user:planted@store.example'}}", "a user or key must not be in a URL"),
        *(
            (f"{{s3: {{url: '{url}'}}}}", "give a URL such as")
            for url in ("http://store..example", f"https://{'s' * 70}.example", "http://.example")
        ),
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
        *(
            (f"{{swift: {{keystone: {{}}, {other}}}}}", "give either `keystone`, or auth v1")
            for other in ("auth_url: 'http://a/auth/v1.0'", "user: a:b", "token_env: T")
        ),
        # Several endpoints.
        ("{s3: {url: []}}", "give 1 to 64 URLs"),
        (f"{{s3: {{url: {LISTED}}}}}", "give 1 to 64 URLs"),
        ("{s3: {url: ['http://a', 'http://a/']}}", "listed twice"),
        ("{s3: {url: ['http://a', 'https://b']}}", "use TLS and others do not"),
        ("{s3: {url: ['http://a', 'b']}}", "give a URL such as"),
        ("{s3: {url: ['http://a', 'http://u:planted@b']}}", "must not be in a URL"),
        ("{s3: {url: ['http://a', 'http://b/x']}}", "scheme, host and port only"),
        ("{s3: {url: ['http://a', 'http://b'], addresses: all}}", "not both"),
        ("{s3: {url: 'http://a', addressing: virtual, addresses: all}}", "needs `addre"),
        ("{s3: {url: ['http://a', 'http://10.0.0.1'], addressing: virtual}}", "IP address"),
        ("{s3: {url: 'http://a'}, endpoints: {}}", "there is only one"),
        ("{swift: {auth_url: ['http://a/auth', 'http://b/v1']}}", "must have the same path"),
        (
            "{swift: {auth_url: ['http://a/x', 'http://b/x'], storage_url: 'http://a/v1/A'}}",
            "list the storage URLs instead",
        ),
    ],
)
def test_an_invalid_layout_is_refused_with_its_line(
    tmp_path: Path, ca: Path, text: str, words: str
) -> None:
    text = text.replace("CA", str(ca))
    (tmp_path / "mine.yaml").write_text(f"{LAYOUT}  {text}\n")
    with pytest.raises(DocumentError) as error:
        load_layout(tmp_path / "mine.yaml", load_hardware(shipped_hardware()["this-machine"]))
    assert words in str(error.value)
    assert "mine.yaml:7:" in str(error.value)
    assert "planted" not in str(error.value)


@pytest.mark.parametrize("begin", [b"\xef\xbb\xbf-----BEGIN CERT", b"-----BEGIN TRUSTED CERT"])
def test_a_ca_file_that_only_openssl_reads_is_refused(tmp_path: Path, begin: bytes) -> None:
    path, _ = authority(tmp_path, ["store.example"])
    end = b"END TRUSTED" if b"TRUSTED" in begin else b"END"
    path.write_bytes(path.read_bytes().replace(b"-----BEGIN CERT", begin).replace(b"END", end))
    given = {"s3": {"url": "https://a.example", "ca_file": str(path)}}
    with pytest.raises(ValidationError, match=f"{path}: no line of it is .*`openssl x509 -in "):
        ExistingSettings.model_validate(given)
    out = subprocess.run(("openssl", "x509", "-in", path), check=True, capture_output=True).stdout
    path.write_bytes(out)
    ExistingSettings.model_validate(given)


TWO = ["http://a:8080", "http://b:8081"]
NONE = [None, None]
AUTHS = [f"{url}/auth/v1.0" for url in TWO]
STORAGE = [f"{url}/v1/AUTH_x" for url in TWO]
ROUND = {"spread": "round-robin", "drop_dead": True}


@pytest.mark.parametrize(
    ("parts", "urls", "storage", "keys"),
    [
        ({"s3": {"url": [TWO[0], f"{TWO[1]}/"]}, "endpoints": ROUND}, TWO, NONE, "ES"),
        ({"swift": {"auth_url": AUTHS}, "endpoints": ROUND}, AUTHS, NONE, "k"),
        ({"swift": {"auth_url": AUTHS[0], "storage_url": STORAGE}}, AUTHS[:1] * 2, STORAGE, "k"),
        (
            {"swift": {"token_env": "OS_AUTH_TOKEN", "storage_url": STORAGE}},
            STORAGE,
            NONE,
            "",
        ),
        ({"s3": {"url": TWO[0], "addresses": "all"}}, TWO[:1], [None], "ES"),
        (
            {"swift": {"keystone": {}, "storage_url": STORAGE}},
            [f"{ROOT}/v3"] * 2,
            STORAGE,
            "planted",
        ),
    ],
)
def test_several_endpoints_have_the_same_keys_and_each_its_urls(
    parts: dict[str, Any], urls: list[str], storage: list[str | None], keys: str
) -> None:
    environment = {**NOWHERE, **KEYS, **RC, "OS_AUTH_TOKEN": "t", "OS_INSECURE": "0"}
    assert ExistingSettings.model_validate(parts).spreads
    (endpoint,) = made(parts, environment)
    each = endpoint.each()
    assert [one.url for one in each] == urls
    assert [one.storage_url for one in each] == storage
    assert {one.key.get_secret_value() for one in each} == {keys}
    spread = ("round-robin", True) if "endpoints" in parts else ("per-worker", False)
    assert (endpoint.spreading.spread, endpoint.spreading.drop_dead) == spread
    assert endpoint.addresses == parts.get("s3", {}).get("addresses", "first")


@pytest.mark.parametrize(
    ("given", "variable"),
    [
        ({"s3": {"url": "HTTP://a:1"}}, "AWS"),
        ({"swift": {}}, "ST_AUTH"),
        ({"swift": {"token_env": "ST_KEY"}}, "OS_STORAGE_URL"),
        (KEYSTONE, "OS_AUTH_URL"),
    ],
)
def test_a_scheme_in_capitals_is_accepted(given: dict[str, object], variable: str) -> None:
    (endpoint,) = made(given, {**NOWHERE, **RC, **KEYS, variable: "HTTP://a:1"})
    assert endpoint.bases == ("http://a:1",)


def asking(environment: dict[str, str], **given: str) -> Keystone:
    """Who asks Keystone for a token, of whom no secret is shown."""
    (endpoint,) = made({"swift": {"keystone": given}}, environment)
    assert endpoint.keystone is not None
    assert "planted" not in repr(endpoint)
    return endpoint.keystone


def test_an_openrc_file_is_all_that_is_needed_and_a_layout_goes_before_it() -> None:
    (endpoint,) = made(KEYSTONE, RC)
    assert endpoint.url == "http://keystone.example:5000/v3"
    assert endpoint.storage_url is None
    assert "planted" in endpoint.secrets
    whole = Keystone(
        username="demo",
        user_domain_name="Users",
        project_id="p1",
        project_name="lab",
        project_domain_id="default",
        region_name="one",
        interface="internal",
    )
    assert asking(RC) == whole
    # Also a name before an ID.
    mine = whole.model_copy(update={"project_name": "mine", "project_id": ""})
    assert asking(RC, project_name="mine") == mine
    url = "https://other.example/identity/v3"
    assert made({"swift": {"keystone": {"auth_url": url}}}, RC)[0].url == url


@pytest.mark.parametrize("name", Keystone.model_fields)
def test_every_key_of_keystone_may_come_from_the_environment(name: str) -> None:
    value = "admin" if name == "interface" else "given"
    kind = "v3applicationcredential" if name.startswith("application") else "v3password"
    more = {"OS_AUTH_TYPE": kind, "OS_APPLICATION_CREDENTIAL_SECRET": "s"}
    assert getattr(asking({**RC, **more, f"OS_{name.upper()}": value}), name) == value


def test_an_application_credential_needs_no_user_and_no_project() -> None:
    assert asking(APPLICATION) == Keystone(application_credential_id="a1")
    for environment, kind, key in (
        ({}, "", "s"),
        (RC, "", "planted"),
        (RC, "password", "planted"),
        (RC, "v3applicationcredential", "s"),
    ):
        (endpoint,) = made(KEYSTONE, {**environment, **APPLICATION, "OS_AUTH_TYPE": kind})
        assert endpoint.key.get_secret_value() == key
        assert endpoint.keystone is not None
        assert endpoint.keystone.by_application == (key == "s")


@pytest.mark.parametrize(
    ("environment", "domain"),
    [
        ({"OS_DEFAULT_DOMAIN": "d"}, ("", "d")),
        ({"OS_DEFAULT_DOMAIN_ID": "d", "OS_DEFAULT_DOMAIN": "e"}, ("", "d")),
        ({"OS_DEFAULT_DOMAIN_NAME": "D"}, ("D", "")),
        ({"OS_DEFAULT_DOMAIN_ID": "d", "OS_PROJECT_DOMAIN_NAME": "P"}, ("P", "")),
    ],
)
def test_a_default_domain_is_that_of_user_and_project(
    environment: dict[str, str], domain: tuple[str, str]
) -> None:
    asks = asking({**RC, "OS_PROJECT_DOMAIN_ID": "", **environment})
    assert asks.user_domain_name == "Users"
    assert (asks.project_domain_name, asks.project_domain_id) == domain


SECRET = {"OS_PASSWORD": "planted"}
V1 = "http://store.example/auth/v1.0"


@pytest.mark.parametrize(
    ("url", "environment", "wanted"),
    [
        (f"{ROOT}/v3/auth/tokens", {}, f"{ROOT}/v3"),
        (f"{ROOT}/v3", RC, f"{ROOT}/v3"),
        (f"{ROOT}/v3", {**RC, "OS_PASSWORD_OLD_STORE": "other"}, f"{ROOT}/v3"),
        (f"{ROOT}/v2.0", SECRET, f"{ROOT}/v3"),
        (f"{ROOT}/v2.0/tokens/", SECRET, f"{ROOT}/v3"),
        (ROOT, SECRET, f"{ROOT}/v3"),
        (f"{ROOT}/identity/", SECRET, f"{ROOT}/identity/v3"),
        (ROOT, {}, None),
        (ROOT, {**SECRET, "ST_KEY": "k"}, None),
        (V1, SECRET, None),
        (V1, {}, None),
    ],
)
def test_every_url_that_people_have_of_keystone_is_known(
    url: str, environment: dict[str, str], wanted: str | None
) -> None:
    given = settings_of("swift", "old-store", url, environment).given
    settings = ExistingSettings.model_validate({"swift": dict(given)}).swift
    assert settings is not None
    if wanted is None:
        assert settings.keystone is None
        assert settings.auth_urls == (url.rstrip("/"),)
    else:
        suffix = "_OLD_STORE" if "OS_PASSWORD_OLD_STORE" in environment else ""
        assert given == {"keystone": {"auth_url": url, "suffix": suffix}}
        assert settings.keystone is not None
        assert settings.keystone.auth_url == wanted
        assert made(KEYSTONE, {**RC, "OS_AUTH_URL": url})[0].url == wanted


VIRTUAL = "s3 =\n  addressing_style = virtual"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return authority(tmp_path_factory.mktemp("tls"), ["store.example"])[0]


@pytest.mark.parametrize(
    ("config", "given", "wanted"),
    [
        ("region = eu-lab-7", {}, ("eu-lab-7", "path")),
        ("region = eu-lab-7", {"region": "own"}, ("own", "path")),
        ("", {}, ("us-east-1", "path")),
        (VIRTUAL, {}, ("us-east-1", "virtual")),
        (f"{VIRTUAL}\n  signature_version = s3v4", {}, ("us-east-1", "virtual")),
        ("s3 =\n  addressing_style = auto", {}, ("us-east-1", "path")),
        (VIRTUAL, {"addressing": "path"}, ("us-east-1", "path")),
        (VIRTUAL, {"url": "https://192.0.2.1"}, ("us-east-1", "path")),
        ("s3 = nonsense", {}, ("us-east-1", "path")),
    ],
)
@pytest.mark.parametrize("by_variable", [False, True])
def test_a_profile_is_read_as_the_aws_tools_read_it(
    tmp_path: Path,
    ca: Path,
    config: str,
    given: dict[str, str],
    wanted: tuple[str, str],
    by_variable: bool,
) -> None:
    environment = profile_files(tmp_path, f"[profile lab]\n{config}\n\nca_bundle = {ca}\n")
    s3 = {"url": "https://store.example", "credentials": "profile lab", **given}
    if by_variable:
        environment["AWS_PROFILE"] = "lab"
        del s3["credentials"]
    (endpoint,) = made({"s3": s3}, environment)
    assert (endpoint.region, endpoint.addressing, endpoint.ca_file) == (*wanted, str(ca))


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


def test_keys_of_a_program_that_never_end_are_read_once_and_not_if_a_file_has_some(
    tmp_path: Path,
) -> None:
    environment = by_program(tmp_path, 0)
    endpoint = endpoint_of(environment)
    assert (endpoint.keys_end_at, endpoint.key_source) == (None, None)
    assert credentials.with_new_keys(endpoint) is endpoint
    assert given(tmp_path) == 1
    path = tmp_path / "credentials"
    path.write_text("[lab]\naws_access_key_id = FA\naws_secret_access_key = FS\n")
    path.chmod(0o600)
    assert keys_of(endpoint_of(environment)) == ("FA", "FS", None)
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


def test_a_program_that_fails_is_an_error_that_says_so(tmp_path: Path) -> None:
    endpoint = endpoint_of(by_program(tmp_path, 3600))
    (tmp_path / "keys.py").write_text("raise SystemExit('log in first')")
    assert credentials.with_new_keys(endpoint) is endpoint  # its keys are still good
    endpoint = endpoint.model_copy(update={"keys_end_at": datetime.now(UTC)})
    with pytest.raises(TargetError, match="log in first"):
        credentials.with_new_keys(endpoint)
    secret = endpoint.key.get_secret_value()
    (tmp_path / "keys.py").write_text(f"raise SystemExit('cannot renew {secret}')")
    with pytest.raises(TargetError, match=r"cannot renew \*\*\*"):
        credentials.with_new_keys(endpoint)


GIVES = '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "planted"'
ROLE = "role_arn = arn:aws:iam:::role/weigh\nsource_profile = lasting\n"
PROGRAM = "credential_process = printf %s "


@pytest.mark.parametrize(
    ("profile", "answer", "words"),
    [
        (f"{PROGRAM}planted", b"", "its credential_process gave what cannot be read as keys"),
        (f"{PROGRAM}[1]", b"", "its credential_process gave what cannot be read as keys"),
        (f'{PROGRAM}\'{GIVES}, "Expiration": "soon"}}\'', b"", "cannot be read as keys"),
        (f"{PROGRAM}'{GIVES}, \"SecretAccessKey\": null}}'", b"", "gave no AccessKeyId, or no Sec"),
        ("credential_process = head -c 600M /dev/zero", b"", "gave an answer without an end"),
        (
            "credential_process = python3 -c \"print('[' * 100000)\"",
            b"",
            "its credential_process gave what cannot be read as keys",
        ),
        ("credential_process = /none --x", b"", "/none: No such file or directory$"),
        ("role_arn = r\nweb_identity_token_file = /dev/null", b"", "/dev/null: is a device, not a"),
        (f"{ROLE}mfa_serial = m", b"", "it has mfa_serial.*export-credentials --format env"),
        ("sso_session = mine", b"", "but a login .sso_session.: export its keys, `aws conf"),
        ("credential_process = sleep 100", b"", "its credential_process gave no complete answer"),
        (ROLE, b"", r"(127\.0\.0\.1:\d+/|its role_arn) gave no complete answer within 3 s"),
        (ROLE, b"<html/>", r"127\.0\.0\.1:\d+/ gave what cannot be read as keys"),
        (ROLE, bytes(2**20), r"127\.0\.0\.1:\d+/ gave an answer without an end"),
    ],
)
@pytest.mark.long
def test_a_profile_that_gives_no_keys_says_why_whatever_it_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, answer: bytes, words: str
) -> None:
    monkeypatch.setattr(credential, "GIVEN_WITHIN_S", 3 if "complete" in words else 30)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nConnection: close\r\n\r\n"

    class Service(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with suppress(OSError):
                self.request.sendall(head)
                for _ in range(1 if len(answer) < 2**20 else 600):
                    self.request.sendall(answer)
                while not answer and self.request.recv(65536):
                    pass  # nothing more until it is given up

    with served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Service)) as service:
        environment = sts_files(tmp_path, profile, service.server_address[1])
        with pytest.raises(UsageError, match=rf"profile 'lab' gives no keys.*{words}") as error:
            endpoint_of(environment)
    assert "planted" not in error.value.message
    assert not error.value.advice


def sts_files(folder: Path, profile: str, port: object) -> dict[str, str]:
    """The variables of AWS files with a profile `lab`, and a token service on a port here."""
    environment = profile_files(
        folder,
        f"[profile lab]\n{profile}\nregion = us-east-1\nservices = here\n"
        f"[services here]\nsts =\n  endpoint_url = http://127.0.0.1:{port}\n",
    )
    path = folder / "credentials"
    path.write_text(path.read_text().replace("[lab]", "[lasting]"))
    return environment


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

    monkeypatch.setattr(credential, "load", fails)
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
