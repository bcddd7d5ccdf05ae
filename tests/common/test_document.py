import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from weighbridge.common.document import Document, DocumentError, Fault
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry


class Inner(Record):
    size: Bytes
    often: int = Field(default=1, ge=1)


class Outer(Record):
    name: str
    length: Seconds
    inner: tuple[Inner, ...] = ()


def faults_of(text: str) -> list[str]:
    with pytest.raises(DocumentError) as error:
        Document("f.yaml", text).into(Outer)
    return [str(fault) for fault in error.value.faults]


def test_all_faults_of_a_file_are_reported_at_once_in_file_order_with_line_and_caret() -> None:
    faults = faults_of(
        "name: x\nlength: 10\ninner:\n  - {size: 4 Kob, often: 0}\n  - {szie: 1MB}\n"
    )
    places = [fault.split(": ")[0].removeprefix("f.yaml:") for fault in faults]
    assert places == ["2:9", "4:12", "4:26", "5:5", "5:6"]
    assert faults[0].splitlines()[1:] == ["    length: 10", "            ^"]
    assert "write 10s, 10m or 10h" in faults[0]
    assert "'4 Kob' is not a quantity" in faults[1]
    assert "'size' is missing" in faults[3]


@pytest.mark.parametrize(
    ("length", "seconds"), [("9:23", 563), ("1:07:05", 4025), ("9m30s", 570), ("'0:30'", 30)]
)
def test_a_time_in_a_file_may_be_as_times_are_printed(length: str, seconds: float) -> None:
    assert Document("f.yaml", f"name: x\nlength: {length}\n").into(Outer).length == seconds


class Numbers(Record):
    count: int = 0
    counts: tuple[int, ...] = ()
    share: float = 0.0
    on: bool = False
    inner: Mapping[str, int] = {}
    free: Any = None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        *(("count: true", "1:8"), ("counts: [1, false]", "1:13"), ("count: no", "1:8")),
        *(("inner: {a: true}", "1:12"), ("count: on", "1:8"), ("counts: [yes]", "1:10")),
        *(("count: 0x10", "1:8"), ("count: 0b11", "1:8"), ("share: off", "1:8")),
    ],
)
def test_what_only_yaml_takes_for_a_number_is_a_fault(text: str, place: str) -> None:
    with pytest.raises(DocumentError) as error:
        Document("f.yaml", text).into(Numbers)
    assert error.value.message.startswith(f"f.yaml:{place}: ")


def test_what_people_write_is_read_as_it_looks() -> None:
    for text, record in (
        ("count: 010", Numbers(count=10)),
        ("on: yes", Numbers(on=True)),
        ("on: true", Numbers(on=True)),
    ):
        assert Document("f.yaml", text).into(Numbers) == record
    assert Document("f.yaml", "name: no\nlength: 1s\n").into(Outer).name == "no"


def test_a_change_may_give_a_list_that_holds_itself_where_anything_may_be() -> None:
    document, given = Document("f.yaml", "count: 1"), []
    given.append(given)
    document.change(("free",), given, Fault("--set", 1, 1, "", ""))
    assert document.into(Numbers).free is given


def test_a_duplicate_key_is_a_fault_that_names_the_first() -> None:
    assert faults_of("name: x\nlength: 1s\nname: y\n")[0].startswith(
        "f.yaml:3:1: duplicate key 'name' (first at line 1)"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: ceph/ceph#1, #23 and #4  # see\n", "f.yaml:1:20"),
        ("name: x\ninner: [{size: 1MB #2\n}]\n", "f.yaml:2:20"),
        ("name:  #7\n", "f.yaml:1:8"),
    ],
)
def test_a_reference_that_yaml_takes_for_a_comment_is_a_fault(text: str, place: str) -> None:
    fault, *_ = faults_of(text)
    assert fault.startswith(f"{place}: to YAML '#")
    assert "in quotes" in fault


def test_comments_and_references_in_quotes_are_read() -> None:
    text = "a: ceph/ceph#1  # see #2\nb: 'c, #3'  #4\n# - d: e #5\nf: |\n  g #6\n"
    assert Document("f.yaml", text).data == {"a": "ceph/ceph#1", "b": "c, #3", "f": "g #6\n"}


MALFORMED = (
    *("a: [1, 2", "\t- x", "a: !!python/object:os.system {}", "? [a, b]\n: c"),
    *("{a: &x [*x]}", "a: 2024-99-99", "[" * 100 + "]" * 100),
)


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_yaml_is_a_fault_with_a_position_and_never_a_traceback(text: str) -> None:
    with pytest.raises(DocumentError) as error:
        Document("f.yaml", text).into(Outer)
    assert error.value.faults[0].line >= 1


@pytest.mark.parametrize("text", ["", "just text", "- a\n- b\n"])
def test_a_file_without_keys_is_refused_in_plain_words(text: str) -> None:
    assert "expected a mapping of keys here" in faults_of(text)[0]


def test_a_file_that_cannot_be_read_says_which_and_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Document.read(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="directory"):
        Document.read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    with pytest.raises(UsageError, match="byte 9: not UTF-8"):
        Document.read(tmp_path / "latin.yaml")
    (tmp_path / "huge.yaml").write_bytes(b"#" * 1_000_001)
    # Devices have no size.
    for path in (tmp_path / "huge.yaml", Path("/dev/zero")):
        with pytest.raises(UsageError, match="larger than 1000000 bytes"):
            Document.read(path)


@pytest.mark.parametrize(
    ("first", "each"), [("[x, x, x, x, x, x, x, x, x, x]", "[{}]"), ("{x: 1}", "{{<<: [{}]}}")]
)
def test_a_small_file_of_aliases_or_merges_is_refused_before_it_unfolds(
    first: str, each: str
) -> None:
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} " + each.format(", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 12)]
    with pytest.raises(DocumentError, match=r"too many values|nested too deeply"):
        Document("bomb.yaml", "\n".join(lines))


@pytest.mark.parametrize(
    "text", ["[" * 900_000, "{a: " * 200_000, "- " * 400_000, "? " * 400_000, "a: &x [*x]"]
)
def test_a_deeply_nested_file_is_refused_and_does_not_crash_the_process(text: str) -> None:
    with pytest.raises(DocumentError, match="nested too deeply") as error:
        Document("deep.yaml", text)
    assert len(str(error.value)) < 2000, "the line is shown around the fault only"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("!!python/object/apply:os.system [id]", "could not determine a constructor"),
        ("!!python/name:os.system", "could not determine a constructor"),
        ("!!bool foo", "'foo' is not a value of YAML's type 'bool'"),
        ('!!int ""', "'' is not a value of YAML's type 'int'"),
        ("!!timestamp foo", "'foo' is not a value of YAML's type 'timestamp'"),
        ("!!float x", "'x' is not a value of YAML's type 'float'"),
        ("2001-99-99", "'2001-99-99' is not a value of YAML's type 'timestamp'"),
        ("9" * 5000, "a number of more than 100 characters"),
        ("0x" + "f" * 50_000, "a number of more than 100 characters"),
        (":".join(["59"] * 9000), "a number of more than 100 characters"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_fault_at_its_position(value: str, why: str) -> None:
    (fault,) = faults_of(f"name: x\nlength: {value}")
    assert fault.startswith("f.yaml:2:9: ")
    assert why in fault


def test_a_fault_contains_no_terminal_control_characters() -> None:
    (fault,) = faults_of('name: x\nlength: "\\e[2J\\a1s\\u202e"\n')
    assert "2:9" in fault
    assert not {"\x1b", "\a", "\u202e"} & set(fault)
    assert "\x1b" not in faults_of("name: \x1b[2J\n")[0]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "url: http://user:planted@store.example/ # and https://pl@nted@other.example",
            "url: http://************@store.example/ # and https://*******@other.example",
        ),
        ("url: u:pla/nted@h", "url: **********@h"),
        (
            "url: [http://[::1]:80, http://h:80:planted]",
            "url: [http://[::1]:80, http://h:***********",
        ),
        ("url: 'http://h:planted/b'", "url: 'http://h:*******/b'"),
        ("s3: {url: a, secret_key: 'pl}an, ted'}", "s3: {url: a, secret_key: ******* *****"),
        ('keystone: {x: 1, "Password" : pl}', 'keystone: {x: 1, "Password" : ***'),
        ("rgw:s3.token=planted", "rgw:s3.token=*******"),
        ("a=u:planted==@h", "*************@h"),
        ("rgw-beast@18:radosgw.tls=true,b", "rgw-beast@18:radosgw.tls=true,b"),
    ],
)
def test_what_may_be_a_secret_is_not_shown_with_the_line_of_a_fault(line: str, shown: str) -> None:
    _, text, caret = str(Fault("mine.yaml", 1, 6, "wrong", line)).splitlines()
    assert (text, caret) == (f"    {shown}", "         ^")


GROUP = "weighbridge.shapes"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with entry points of GROUP, and a module of its name."""

    def installed(package: str, points: str, *, module: str = "") -> None:
        folder = tmp_path / package
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
        (folder / f"{package}_shapes.py").write_text(module)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, f"{package}_shapes", raising=False)

    return installed


def shapes(**own: str | float) -> Registry[float]:
    return Registry(GROUP, "shape", own=own, kind=float)


def test_own_objects_keep_their_order_and_others_follow_sorted_by_name(install: Install) -> None:
    """Entry points of this package come before those of others."""
    install("zeta", "cube = zeta_shapes:CUBE", module="CUBE = 3.0")
    install("acme", "disc = acme_shapes:DISC", module="DISC = 4.0")
    install("weighbridge", "wedge = weighbridge_shapes:WEDGE", module="WEDGE = 5.0")
    there = shapes(square=2.0, circle=1.0)
    assert list(there.items()) == [
        *(("square", 2.0), ("circle", 1.0), ("wedge", 5.0), ("cube", 3.0), ("disc", 4.0))
    ]
    assert len(there) == 5


def test_names_are_known_without_imports(install: Install) -> None:
    install(
        "acme",
        "arc = acme_shapes:ARC\nbow = acme_shapes:BOW",
        module="raise RuntimeError('imported')",
    )
    there = shapes(square="no_such_module:SQUARE", circle=1.0)
    assert list(there) == ["square", "circle", "arc", "bow"]
    assert "arc" in there
    assert there.known("bow") == "bow"
    assert there.get_or_refuse("circle") == 1.0


def test_an_unknown_name_is_refused_with_the_closest_one_and_the_list() -> None:
    there = shapes(square=2.0, circle=1.0)
    why = r"^no shape 'squar' \(did you mean 'square'\?\)\nChoose one of square, circle\.$"
    with pytest.raises(UsageError, match=why):
        there.get_or_refuse("squar")
    with pytest.raises(ValueError, match=r"^no shape 'x' \(known: square, circle\)$"):
        there.known("x")
    with pytest.raises(KeyError):
        there["squar"]
    assert there.get("squar") is None


@pytest.mark.parametrize(
    ("own", "both"), [({}, "acme and zeta"), ({"arc": 2.0}, "weighbridge and acme")]
)
def test_two_packages_with_one_name_are_refused_with_the_names_of_both(
    install: Install, own: dict[str, float], both: str
) -> None:
    install("acme", "arc = acme_shapes:ARC", module="ARC = 4.0")
    install("zeta", "arc = zeta_shapes:ARC", module="ARC = 5.0")
    why = f"two packages have a shape 'arc': {both}\nRename one of them"
    with pytest.raises(UsageError, match=why):
        list(shapes(**own))
    with pytest.raises(UsageError, match=why):
        shapes(**own)["arc"]


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("", "AttributeError: module 'acme_shapes' has no attribute 'ARC'"),
        ("ARC = 'round'", "it is a str, not a float"),
    ],
)
def test_a_broken_plug_in_is_named_with_its_package_and_what_to_do(
    install: Install, module: str, why: str
) -> None:
    install("acme", "arc = acme_shapes:ARC", module=module)
    with pytest.raises(UsageError) as refused:
        shapes()["arc"]
    assert str(refused.value) == (
        f"shape 'arc' of the package acme cannot be used: acme_shapes:ARC: {why}\n"
        f"Repair, upgrade or uninstall acme: its entry point group is {GROUP}."
    )
