"""Server URLs: any that may contain a secret is refused, and never repeated."""

from __future__ import annotations

import pytest

from weighbridge.common.credential import SshPlace, folder_or_ssh_place, ssh_place, without_query

SECRETIVE_URLS = (
    "http://user:planted@h/controller",
    "http://planted@h/controller",
    "http://:planted@h/controller",
    "http://h/controller?password=planted",
    "http://h/controller?planted",
    "http://h/controller#planted",
    "http://user:planted",
    "http://[planted/controller",
    "http://user\u2100planted@h/controller",
    "http://h/\tplanted",
    "http://h/\x7fplanted",
    "http://h/pl\u00e4nted",
    "ftp://h/planted",
    "planted",
)
SECRETIVE_PLACES = (
    "ssh://root:planted@h/archive",
    "ssh://root:planted@/archive",
    "ssh://root%3Aplanted@h/archive",
    "ssh://root;password=planted@h/archive",
    "ssh://h/archive?password=planted",
    "ssh://h:planted/archive",
    "ssh://root@h/arch\nplanted",
    "sftp://root@h/planted",
    "http://user:planted@h/archive",
)


@pytest.mark.parametrize("url", SECRETIVE_URLS)
def test_a_url_that_may_contain_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"not of the form|contains a user|has a query") as error:
        without_query(url)
    assert "planted" not in str(error.value)


@pytest.mark.parametrize("place", SECRETIVE_PLACES)
def test_an_ssh_url_that_may_contain_a_secret_is_refused_and_not_repeated(place: str) -> None:
    with pytest.raises(ValueError, match="not of the form ssh://") as error:
        folder_or_ssh_place(place)
    assert "planted" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "https://store.example:8443",
        "http://10.0.0.1:19088/controller",
        "http://[::1]:80/a",
    ],
)
def test_a_url_without_query_is_accepted_unchanged(url: str) -> None:
    assert without_query(url) == url


def test_an_ssh_url_is_parsed_with_and_without_user_and_port() -> None:
    assert ssh_place("ssh://root@h/opt/archive") == SshPlace("root", "h", 0, "/opt/archive")
    assert ssh_place("ssh://[::1]:2222/a b/") == SshPlace("", "::1", 2222, "/a b")
    assert folder_or_ssh_place("/opt/archive") == "/opt/archive"
