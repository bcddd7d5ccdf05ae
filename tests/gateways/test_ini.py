import pytest

from weighbridge.gateways import config_text


def test_sections_and_options_keep_their_order() -> None:
    text = config_text.ini_text({"b": {"z": 1, "a": "two"}, "a": {}}, head={"uid": "swift"})
    assert text == "uid = swift\n\n[b]\nz = 1\na = two\n\n[a]\n"


def test_booleans_are_words_that_ceph_and_swift_understand() -> None:
    assert (
        config_text.ini_text({"s": {"on": True, "off": False}}) == "[s]\non = true\noff = false\n"
    )


def test_a_line_break_cannot_smuggle_in_another_option() -> None:
    with pytest.raises(ValueError, match="line break"):
        config_text.ini_text({"s": {"name": "x\nadmin = yes"}})


def test_a_later_layer_wins_and_the_rest_stays() -> None:
    merged = config_text.merged_sections({"s": {"a": 1, "b": 2}}, {"s": {"b": 3}, "t": {"c": 4}})
    assert merged == {"s": {"a": 1, "b": 3}, "t": {"c": 4}}


def test_every_occurrence_of_every_secret_is_masked() -> None:
    assert (
        config_text.masked("key = a+b, again a+b; other = c", ["a+b", "c"])
        == "key = ***, again ***; other = ***"
    )
    assert config_text.masked("nothing", []) == "nothing"
