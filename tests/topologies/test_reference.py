from pathlib import Path

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.topologies import loader
from weighbridge.topologies.loader import LONGEST_NAME, parse, split

LOOPBACK = loader.load_hardware(loader.shipped_hardware()["loopback"])


def load(text: str) -> loader.Planned:
    reference = parse(text)
    return loader.load_layout(
        loader.find(reference.name, loader.shipped_layouts(), "layout"), LOOPBACK, reference
    )


def test_a_bare_name_is_the_shipped_layout() -> None:
    assert load("null").layout.name == "null"
    assert parse("a/file.yaml").name == "a/file.yaml"


def test_a_release_and_settings_change_the_layout_and_its_name() -> None:
    planned = load("null@engine:delay_ms=5:threads=2")
    assert planned.layout.name == "null-engine-delay-ms-5-threads-2"
    assert planned.layout.settings["delay_ms"] == 5
    assert planned.layout.settings["threads"] == 2


def test_a_key_that_begins_with_place_belongs_to_the_placement() -> None:
    assert load("null:place.target=client-1").layout.place == {"target": "client-1"}


def test_a_long_name_is_shortened_and_unique() -> None:
    first, second = (
        load(f"null:delay_ms=1:threads=2:fail_status=503:seed={seed}").layout.name
        for seed in (1, 2)
    )
    assert first != second
    assert max(len(first), len(second)) <= LONGEST_NAME


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("null@", "layout:1:5: @ needs a release"),
        ("null:delay_ms", "layout:1:6: 'delay_ms' is not KEY=VALUE"),
        ("null:=3", "is not KEY=VALUE"),
        ("null:threads=1:delay=3", "layout:1:16: unknown key 'delay'"),
        ("null:delay_ms=soon", "layout:1:6: delay_ms: Input should be a valid number"),
        ("null@engin", "layout:1:6: no release 'engin' of null (did you mean 'engine'?)"),
        ("null:threads.more=3", "threads.more: there is nothing of that name to change"),
        ("null:delay_ms={", "brackets are not closed"),
        ("null:delay_ms=]", "brackets are not closed"),
        ('null:delay_ms="', "is not a value in YAML"),
    ],
)
def test_invalid_changes_are_reported_at_their_place_in_the_reference(
    text: str, message: str
) -> None:
    with pytest.raises(UsageError) as error:
        load(text)
    assert message in str(error.value)


def test_a_fault_of_the_file_is_reported_at_its_place_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        'name: own\nabout: x\ngateway: "null"\nrelease: engine\nplace: {target: '
        "gateway-1}\nsettings: {threads: 0}\n"
    )
    with pytest.raises(DocumentError) as error:
        loader.load_layout(path, LOOPBACK, parse("own:delay_ms=-1"))
    assert f"{path}:6:21: threads" in str(error.value)
    assert "layout:1:5: delay_ms" in str(error.value)


def test_commas_within_brackets_do_not_separate_references() -> None:
    assert split("a, b:place.x=[c,d] ,e") == ["a", "b:place.x=[c,d]", "e"]
    assert split("") == []
