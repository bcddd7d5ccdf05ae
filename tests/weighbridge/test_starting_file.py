"""Files to edit say what the files say that they start from, and every key is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weighbridge.starting_file import starting_file
from weighbridge.suites import Suite, Workload
from weighbridge.suites import loader as suite_files
from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)

HARDWARE = {"existing": "this-machine", "null": "loopback"}


def uncommented(text: str) -> str:
    """The text with its defaults, except those of keys that must be given."""
    head, _, body = text.partition("null` means not set.\n")
    return head + "\n" + re.sub(r"(?m)^( *)# ([a-z_]+: )", r"\1\2", body)


@pytest.mark.parametrize("defaults", [False, True])
@pytest.mark.parametrize("name", list(suite_files.shipped()))
def test_a_suite_to_edit_is_the_one_that_it_starts_from(
    tmp_path: Path, name: str, defaults: bool
) -> None:
    text = starting_file("suite", name, tmp_path / "Mine too.yaml")
    suite = suite_files.parse("mine.yaml", uncommented(text) if defaults else text)
    assert suite.name == "mine-too"
    base = suite_files.load(suite_files.shipped()[name])
    assert suite.model_copy(update={"name": base.name}) == base


@pytest.mark.parametrize("name", list(shipped_hardware()))
def test_hardware_to_edit_is_that_which_it_starts_from(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(starting_file("hardware", name, path))
    base = load_hardware(shipped_hardware()[name])
    assert load_hardware(path).model_copy(update={"name": base.name}) == base


@pytest.mark.parametrize("name", list(shipped_layouts()))
def test_a_layout_to_edit_is_the_one_that_it_starts_from(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.yaml"
    hardware = load_hardware(shipped_hardware()[HARDWARE.get(name, "lab-cpu")])
    path.write_text(starting_file("layout", name, path))
    base = load_layout(shipped_layouts()[name], hardware).layout
    layout = load_layout(path, hardware).layout
    assert layout.model_copy(update={"name": base.name}) == base


def test_every_key_of_a_suite_and_of_hosts_is_there_with_what_it_is_for() -> None:
    suite, hardware = starting_file("suite"), starting_file("hardware")
    for text, model in ((suite, Suite), (suite, Workload), (hardware, HostSpec)):
        for key in model.model_fields:
            assert re.search(rf"(?m)^ *(?:- )?(?:# )?{key}:", text), key
    assert "# After how long a request is given up, in seconds; histograms resolve" in suite
    assert "# timeout: 60.0" in suite
    assert "For the lab: its own CPUs, such as `2-3,5`" in hardware
