"""A layout's text stays in its place: no value, name or section adds lines to a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

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


def ssh(value: str) -> dict[str, object]:
    hosts = {"client-1": {"address": "10.0.0.1"}}
    return {"name": "h", "kind": "ssh", "hosts": hosts, "sysctl": {"vm.swappiness": value}}


ANY_TEXT: list[tuple[type[BaseModel], Callable[[str], dict[str, object]]]] = [
    (RgwSettings, lambda value: {"options": {"client": {"rgw_x": value}}}),
    (SwiftSettings, lambda value: {"options": {"proxy": {"app:proxy-server": {"x": value}}}}),
    (ApacheSettings, lambda value: {"options": {"host": {"SetEnv": value}}}),
    (HaproxySettings, lambda value: {"options": {"backend": [value]}}),
    (HaproxySettings, lambda value: {"options": {"backend": value}}),
    (HaproxySettings, lambda value: {"balance": value}),
    (Hardware, ssh),
]
HEALTH = (HaproxySettings, lambda value: {"health_path": f"/{value}"})


@pytest.mark.parametrize(("record", "given"), [*ANY_TEXT, HEALTH])
@pytest.mark.parametrize("value", [*BREAKS, JOINED])
def test_a_value_that_any_program_may_read_as_several_lines_is_refused(
    record: Any, given: Any, value: str
) -> None:
    with pytest.raises(ValidationError, match=r"is not one line|String should match pattern"):
        record.model_validate(given(value))


@pytest.mark.parametrize(("record", "given"), ANY_TEXT)
@pytest.mark.parametrize("value", ["a b", "a\tb", "%(x)s", "ä", "a = b", "C:\\x", "a # b"])
def test_any_value_of_one_line_is_accepted(record: Any, given: Any, value: str) -> None:
    record.model_validate(given(value))


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


@hypothesis.given(section=anything, key=anything, value=anything)
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


def test_sections_and_options_keep_their_order_and_booleans_are_words() -> None:
    sections = {"b": {"z": 1, "a": "two", "on": True, "off": False}, "a": {}}
    text = config_text.ini_text(sections, head={"uid": "swift"})
    assert text == "uid = swift\n\n[b]\nz = 1\na = two\non = true\noff = false\n\n[a]\n"


def test_a_later_layer_wins_and_the_rest_stays() -> None:
    merged = config_text.merged_sections({"s": {"a": 1, "b": 2}}, {"s": {"b": 3}, "t": {"c": 4}})
    assert merged == {"s": {"a": 1, "b": 3}, "t": {"c": 4}}


def test_every_occurrence_of_every_secret_is_masked() -> None:
    text = "key = a+b, again a+b; other = c"
    assert config_text.masked(text, ["a+b", "c"]) == "key = ***, again ***; other = ***"
    assert config_text.masked("nothing", []) == "nothing"
