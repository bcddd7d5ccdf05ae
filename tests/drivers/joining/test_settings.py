from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.drivers.joining.messages import own_name
from weighbridge.drivers.joining.settings import join_settings, parse_place


def test_without_an_address_clients_join_on_loopback(tmp_path: Path) -> None:
    found = join_settings({"clients_join": "2", "token_file": str(tmp_path / "token")})
    assert found is not None
    assert (found.clients, found.place, found.locusts_port) == (2, "127.0.0.1:7420", 7421)
    assert found.wait_s == 600.0
    assert found.line == "weighbridge join 127.0.0.1:7420 --token-file token"
    assert not (tmp_path / "token").exists()


@pytest.mark.parametrize(
    ("text", "place", "clients"),
    [
        ("10.0.0.5=3", "10.0.0.5:7420", 3),
        ("10.0.0.5:80=1", "10.0.0.5:80", 1),
        ("[::1]:9000=2", "[::1]:9000", 2),
    ],
)
def test_an_address_and_a_port_may_be_given(text: str, place: str, clients: int) -> None:
    found = join_settings({"clients_join": text, "token_file": "t", "join_wait": "5s"})
    assert found is not None
    assert (found.place, found.clients, found.wait_s) == (place, clients, 5.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0", "0 clients; 1 to 1000 can join"),
        ("two", "'two' is not"),
        ("gateway=2", "is not"),
        ("0.0.0.0=2", "all addresses of this machine are too many"),
        ("[::]=2", "all addresses of this machine are too many"),
        ("10.0.0.999=2", "is not an address"),
        ("10.0.0.5:65535=2", "the next one is Locust's"),
        ("10.0.0.5:0=2", "port 0"),
    ],
)
def test_what_cannot_be_listened_at_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why.replace("[", r"\[")):
        join_settings({"clients_join": text, "token_file": "t"})


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        join_settings({"clients_join": "none", "join_wait": "soon"})
    words = ("--clients-join: 'none'", "--join-wait: 'soon'", "needs --token-file FILE")
    assert [word in str(refused.value) for word in words] == [True] * 3


def test_options_of_joining_mean_nothing_without_a_number_of_clients() -> None:
    assert join_settings({}) is None
    for given in ({"token_file": "t"}, {"join_wait": "5s"}):
        with pytest.raises(UsageError, match="is for clients that join"):
            join_settings(given)


def test_a_place_to_join_has_the_usual_port_unless_told_otherwise() -> None:
    assert parse_place("bench-1.example") == ("bench-1.example", 7420)
    assert parse_place("[::1]:80") == ("::1", 80)
    for text in ("", "a b", "host:0", "host:99999", "tcp://host:1"):
        with pytest.raises(UsageError, match="is not HOST"):
            parse_place(text)


def test_a_clients_name_is_one_that_hosts_may_have() -> None:
    assert own_name("guest-2") == "guest-2"
    assert own_name(None)
    with pytest.raises(UsageError, match="not a valid name of a client"):
        own_name("Guest_2")
