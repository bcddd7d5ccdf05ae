"""A Swift behind Keystone: what a layout says of it, and what OpenStack's variables say."""

import pytest
from pydantic import ValidationError

from weighbridge.common.credential import Keystone
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.credentials import settings_of
from weighbridge.gateways.existing.settings import ExistingSettings

RC = {
    "OS_AUTH_URL": "http://keystone.example:5000",
    "OS_USERNAME": "demo",
    "OS_USER_DOMAIN_NAME": "Users",
    "OS_PROJECT_ID": "p1",
    "OS_PROJECT_NAME": "lab",
    "OS_PROJECT_DOMAIN_ID": "default",
    "OS_REGION_NAME": "one",
    "OS_INTERFACE": "internalURL",
    "OS_PASSWORD": "planted\n",
}
"""As an openrc file sets them."""


def swift(environment: dict[str, str], keystone: object = None, **more: object) -> Endpoint:
    given = ExistingSettings.model_validate({"swift": {"keystone": keystone or {}, **more}})
    (endpoint,) = credentials.endpoints(given, environment)
    return endpoint


def test_an_openrc_file_is_all_that_is_needed() -> None:
    endpoint = swift(RC)
    assert (endpoint.url, endpoint.key.get_secret_value()) == (
        "http://keystone.example:5000/v3",
        "planted",
    )
    assert endpoint.keystone == Keystone(
        username="demo",
        user_domain_name="Users",
        project_id="p1",
        project_name="lab",
        project_domain_id="default",
        region_name="one",
        interface="internal",
    )
    assert endpoint.storage_url is None
    assert "planted" in endpoint.secrets
    assert "planted" not in repr(endpoint)


def test_a_layout_goes_before_the_environment_also_a_name_before_an_id() -> None:
    given = {"auth_url": "https://other.example/identity/v3", "project_name": "mine"}
    endpoint = swift(RC, given)
    assert endpoint.url == "https://other.example/identity/v3"
    assert endpoint.keystone is not None
    assert (endpoint.keystone.project_name, endpoint.keystone.project_id) == ("mine", "")
    assert endpoint.keystone.username == "demo"


def test_every_key_of_keystone_may_come_from_the_environment() -> None:
    assert sorted(name for names in credentials._ALIKE for name in names) == sorted(
        Keystone.model_fields
    )


def test_an_application_credential_needs_no_user_and_no_project() -> None:
    only = {
        "OS_AUTH_URL": "http://keystone.example/v3",
        "OS_APPLICATION_CREDENTIAL_ID": "a1",
        "OS_APPLICATION_CREDENTIAL_SECRET": "s",
    }
    endpoint = swift(only)
    assert endpoint.keystone == Keystone(application_credential_id="a1")
    assert endpoint.key.get_secret_value() == "s"


@pytest.mark.parametrize(
    ("environment", "suffix", "words"),
    [
        (
            {},
            "",
            (
                "swift: not set: $OS_AUTH_URL, $OS_USERNAME or $OS_USER_ID, $OS_PROJECT_NAME or "
                "$OS_PROJECT_ID, $OS_PASSWORD"
            ),
        ),
        (RC, "_B", "$OS_AUTH_URL_B, $OS_USERNAME_B or $OS_USER_ID_B"),
        (
            {"OS_APPLICATION_CREDENTIAL_NAME": "weigh", "OS_AUTH_URL": "http://k"},
            "",
            "not set: $OS_USERNAME or $OS_USER_ID, $OS_APPLICATION_CREDENTIAL_SECRET",
        ),
        ({**RC, "OS_INTERFACE": "outer"}, "", "$OS_INTERFACE: set it to public, internal or admin"),
        ({**RC, "OS_AUTH_URL": "keystone"}, "", "$OS_AUTH_URL: give a URL such as"),
        ({**RC, "OS_AUTH_URL": "http://demo:s@keystone"}, "", "must not be in a URL"),
    ],
)
def test_what_is_missing_is_named_with_its_variables(
    environment: dict[str, str], suffix: str, words: str
) -> None:
    with pytest.raises(UsageError) as error:
        swift(environment, {"suffix": suffix})
    assert words in error.value.message


def test_keystone_stands_alone_and_several_endpoints_need_their_storage_urls() -> None:
    for other in ({"auth_url": "http://a/auth/v1.0"}, {"user": "a:b"}, {"token_env": "T"}):
        with pytest.raises(ValidationError, match="give either `keystone`, or auth v1"):
            swift(RC, **other)
    urls = ["http://a/v1/AUTH_p1", "http://b/v1/AUTH_p1"]
    endpoint = swift(RC, storage_url=urls)
    assert endpoint.bases == ("http://a", "http://b")
    assert [one.storage_url for one in endpoint.each()] == urls
    assert {one.url for one in endpoint.each()} == {endpoint.url}


def test_a_url_of_version_3_on_the_command_line_is_keystones() -> None:
    url = "https://keystone.example:5000/v3"
    given = {"keystone": {"auth_url": url, "suffix": ""}}
    assert settings_of("swift", "old-store", url, RC).given == given
    own = {**RC, "OS_PASSWORD_OLD_STORE": "other"}
    given = {"keystone": {"auth_url": url, "suffix": "_OLD_STORE"}}
    assert settings_of("swift", "old-store", url, own).given == given
