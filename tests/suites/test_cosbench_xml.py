import os
from pathlib import Path

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import cosbench_xml

BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE workload [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<workload name="&b;"/>
"""


def test_elements_come_with_their_attributes_and_children() -> None:
    root = cosbench_xml.parse(
        "w.xml", b'<workload name="w"><auth type="none"/><workflow config="a=1;b=2"/></workload>'
    )
    assert (root.tag, root.get("name"), root.get("nothing")) == ("workload", "w", None)
    assert [child.tag for child in root.children] == ["auth", "workflow"]
    assert next(root.all("workflow")).get("config") == "a=1;b=2"


def test_an_attribute_knows_its_line_and_column() -> None:
    root = cosbench_xml.parse(
        "w.xml",
        b'<workload>\n  <work name=\'config=1\'\n     workers="4"   runtime="9"/></workload>',
    )
    work = root.children[0]
    assert (work.place.line, work.place.column) == (2, 3)
    assert (work.at("name").line, work.at("name").column) == (2, 9)
    assert (work.at("runtime").line, work.at("runtime").column) == (3, 20)
    assert work.at("config") == work.place


@pytest.mark.parametrize("utf", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_file_may_be_in_any_usual_encoding(utf: str) -> None:
    text = f'<?xml version="1.0" encoding="{utf}"?><workload name="größer"/>'
    assert cosbench_xml.parse("w.xml", text.encode(utf)).get("name") == "größer"


@pytest.mark.parametrize(
    "hostile",
    [
        BOMB,
        b'<!DOCTYPE w SYSTEM "http://192.0.2.1/w.dtd"><workload/>',
        b'<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/hostname">]><w name="w">&x;</w>',
        b'<!DOCTYPE w [<!ENTITY % x SYSTEM "file:///etc/hostname">%x;]><workload/>',
    ],
)
def test_document_types_and_entities_are_refused_before_expansion(hostile: bytes) -> None:
    with pytest.raises(DocumentError, match="a document type or an entity"):
        cosbench_xml.parse("w.xml", hostile)


def test_a_huge_file_and_a_pipe_are_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "large.xml"
    with path.open("wb") as file:
        file.truncate(100 * 10**6)
    os.mkfifo(tmp_path / "pipe.xml")
    for name, why in (
        ("large", "larger than 1000000 bytes"),
        ("pipe", "not a file"),
        ("nothing", "no such file"),
    ):
        with pytest.raises(UsageError, match=why):
            cosbench_xml.read(tmp_path / f"{name}.xml")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no element found"),
        (b"not xml at all", "syntax error"),
        (b'<workload name="w">', "no element found"),
        (b"<workload></work>", "mismatched tag"),
        (b'<storage config="secretkey=<key>"/>', "not well-formed"),
        (b'<?xml version="1.0" encoding="klingon"?><workload/>', "unknown encoding"),
        (b"\xff\xfe\x00<", "not XML"),
        (b'<workload name="&x;"/>', "undefined entity"),
        (b"<work>" * 100_000, "nested deeper than 12"),
        (b"<w>" + b"<a/>" * 20_000 + b"</w>", "more than 20000 elements"),
    ],
    ids=lambda one: str(one[:30]),
)
def test_malformed_xml_is_reported_with_its_position(data: bytes, words: str) -> None:
    with pytest.raises(DocumentError, match=rf"w\.xml:\d+:\d+: not XML: .*{words}|{words}"):
        cosbench_xml.parse("w.xml", data)


def test_neither_a_secret_nor_a_control_character_is_shown_with_a_fault() -> None:
    line = (
        b'<auth config="username=me:you;password=very;secret&amp;key;auth_url=http://h"/>'
        b'<storage config="token=AUTH_tk12"/><'
    )
    with pytest.raises(DocumentError, match="auth_url=http://h") as error:
        cosbench_xml.parse("w.xml", line)
    for secret in ("me:you", "very", "AUTH_tk12"):
        assert secret not in str(error.value)
    with pytest.raises(DocumentError) as error:
        cosbench_xml.parse("w.xml", b"<workload name='\x1b[2J'")
    assert "\x1b" not in str(error.value)


SECRETIVE = (
    "username=planted-a;password=planted-b;auth_url=http://h",
    "auth_token=planted;token_id=planted",
    "pwd=planted;key=planted;passphrase=planted",
    "Password = planted ; SECRETKEY=planted",
    "password=very;planted&amp;rest;planted",
    "pass&#119;ord=planted;&#x70;wd=planted",
    "password=plant&#101;d",
    "auth_url=http://user:planted@h/auth;endpoint=http://h/?key=planted",
    "storage_url=planted",
    "=planted",
)


@pytest.mark.parametrize("utf", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1"])
@pytest.mark.parametrize("config", SECRETIVE)
def test_no_secret_is_shown_with_a_fault_whatever_its_key_or_encoding(
    config: str, utf: str
) -> None:
    named = "utf-16" if utf.startswith("utf-16") else utf
    text = (
        f'<?xml version="1.0" encoding="{named}"?><workload>\n<auth '
        f"config=\"{config}\"/><storage config='{config}'\n  "
    )
    complete = f'{text}password="planted" token="planted" type="swift"/></workload>'
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(utf, b"")
    root = cosbench_xml.parse("w.xml", mark + complete.encode(utf))
    shown = [
        str(place.fault("wrong"))
        for one in (root, *root.children)
        for place in (one.place, *one.places)
    ]
    with pytest.raises(DocumentError) as broken:
        cosbench_xml.parse("w.xml", mark + f"{complete}<".encode(utf))
    with pytest.raises(DocumentError) as cut:
        cosbench_xml.parse("w.xml", mark + f'{text}password="planted'.encode(utf))
    for one in (*shown, str(broken.value), str(cut.value)):
        assert "planted" not in one.replace("\0", "").replace(" ", "")
    assert any('type="swift"' in one for one in shown)


def test_a_fault_points_at_its_attribute_in_the_shown_tag() -> None:
    root = cosbench_xml.parse(
        "w.xml",
        b'<workload>\n  <work  config="pwd=a;containers=c(1)"\n  workers="&#49;x"/></workload>',
    )
    shown = str(root.children[0].at("workers").fault("wrong")).splitlines()
    assert shown[0] == "w.xml:3:3: wrong"
    assert shown[1] == '    <work config="pwd=***;containers=c(1)" workers="1x">'
    assert shown[2].index("^") == shown[1].index("workers")
