"""A layout's text stays in its place: no value, name or section adds lines to a file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from weighbridge.gateways import config_text
from weighbridge.gateways.apache.settings import ApacheSettings
from weighbridge.gateways.haproxy.front import HaproxySettings
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.topologies.hardware import Hardware

BREAKS = (
    "a\nb = c",
    "a\rb = c",
    "a\r\nb = c",
    "a\n",
    "a\r",
    "\na",
    "a\x0bb",
    "a\x0cb",
    "a\x1eb",
    "a\x85b",
    "a\u2028b",
    "a\0",
    "a\x1b[2J",
)
JOINED = "a \\"
SECTIONS = (
    "app:proxy-server]\n[filter:evil",
    "a]",
    "[a",
    "a b",
    "a\rb",
    "",
    "a#b",
    "a;b",
    "a=b",
    "a\\",
)


def ceph(value: str) -> None:
    RgwSettings.model_validate({"options": {"client": {"rgw_x": value}}})


def swift(value: str) -> None:
    SwiftSettings.model_validate({"options": {"proxy": {"app:proxy-server": {"x": value}}}})


def apache(value: str) -> None:
    ApacheSettings.model_validate({"options": {"host": {"SetEnv": value}}})


def haproxy(value: str) -> None:
    HaproxySettings.model_validate({"options": {"backend": [value]}})


def haproxy_alone(value: str) -> None:
    HaproxySettings.model_validate({"options": {"backend": value}})


def balance(value: str) -> None:
    HaproxySettings.model_validate({"balance": value})


def health(value: str) -> None:
    HaproxySettings.model_validate({"health_path": f"/{value}"})


def sysctl(value: str) -> None:
    Hardware.model_validate(
        {
            "name": "h",
            "kind": "ssh",
            "hosts": {"client-1": {"address": "10.0.0.1"}},
            "sysctl": {"vm.swappiness": value},
        }
    )


@pytest.mark.parametrize(
    "setting", [ceph, swift, apache, haproxy, haproxy_alone, balance, health, sysctl]
)
@pytest.mark.parametrize("value", [*BREAKS, JOINED])
def test_a_value_that_any_program_may_read_as_several_lines_is_refused(
    setting: Any, value: str
) -> None:
    with pytest.raises(ValidationError, match=r"is not one line|String should match pattern"):
        setting(value)


@pytest.mark.parametrize("setting", [ceph, swift, apache, haproxy, haproxy_alone, balance, sysctl])
@pytest.mark.parametrize("value", ["a b", "a\tb", "%(x)s", "ä", "a = b", "C:\\x", "a # b"])
def test_any_value_of_one_line_is_accepted(setting: Any, value: str) -> None:
    setting(value)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_of_swift_must_be_a_plain_name(section: str) -> None:
    with pytest.raises(ValidationError, match="is not a valid section name"):
        SwiftSettings.model_validate({"options": {"proxy": {section: {"a": 1}}}})


@pytest.mark.parametrize(
    "key", ["a = 1\nb", "a=b", "a:b", "[a]", " a", "a ", "", "#a", ";a", "a\rb", "a\tb"]
)
def test_an_option_of_swift_must_be_a_plain_name(key: str) -> None:
    with pytest.raises(ValidationError, match="is not a valid option name"):
        SwiftSettings.model_validate({"options": {"proxy": {"DEFAULT": {key: 1}}}})


@pytest.mark.parametrize("key", ["user_weigh_er", "set log_level", "max connections", "a.b-c"])
def test_option_names_of_swift_and_its_programs_are_accepted(key: str) -> None:
    settings = SwiftSettings.model_validate(
        {"options": {"proxy": {"filter:tempauth": {key: True}}}}
    )
    assert settings.options["proxy"]["filter:tempauth"] == {key: True}


anything = st.text(max_size=12) | st.sampled_from([*BREAKS, JOINED, *SECTIONS])


@given(section=anything, key=anything, value=anything)
def test_an_ini_file_has_exactly_the_given_sections_and_options_or_is_refused(
    section: str, key: str, value: str
) -> None:
    try:
        text = config_text.ini_text({"first": {"a": 1}, section: {key: value}, "last": {"z": 1}})
    except ValueError:
        return
    assert len(text.splitlines()) == len(text.split("\n")) - 1 == 8
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        "[first]",
        f"[{section}]",
        "[last]",
    ]
    assert text.splitlines()[4] == f"{key} = {value}"
