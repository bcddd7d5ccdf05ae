import time
import xml.etree.ElementTree as ET

import pytest

from weighbridge.common import plain_xml
from weighbridge.common.plain_xml import NotPlain

LIST = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>true</IsTruncated>
<Contents><Key>a&amp;b&#233;</Key></Contents><Contents><Key>c</Key></Contents></ListBucketResult>"""
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
HOSTILE = {
    "a billion laughs": f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]><a>&l9;</a>'.encode(),
    "one very long entity many times": "<!DOCTYPE a [<!ENTITY e "
    f'"{"x" * 100_000}">]><a>{"&e;" * 10_000}</a>'.encode(),
    "a file of this machine": b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>',
    "a document type elsewhere": b'<!DOCTYPE a SYSTEM "http://192.0.2.1/a.dtd"><a/>',
    "a parameter entity": b'<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><a/>',
    "a document type with nothing in it": b"<!DOCTYPE a><a/>",
    "an entity that is not declared": b"<a>&e;</a>",
    "nested without end": b"<a>" * 200_000,
    "larger than any list": b"<a>" + b"x" * plain_xml.LARGEST_BYTES + b"</a>",
    "an encoding that is none": b'<?xml version="1.0" encoding="no-such"?><a/>',
    "an encoding of two bytes": b'<?xml version="1.0" encoding="utf-16"?><a/>',
    "an encoding of several bytes": b'<?xml version="1.0" encoding="gb2312"?><a/>',
    "a page of HTML": b"<html><br></html>",
    "nothing": b"",
    "bytes": bytes(range(256)),
}


def test_a_bucket_listing_is_parsed_like_the_standard_library_does() -> None:
    root = plain_xml.parse(LIST)
    assert ET.tostring(root) == ET.tostring(ET.fromstring(LIST))
    assert [key.text for key in root.iterfind(".//{*}Contents/{*}Key")] == ["a&bé", "c"]


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_or_malformed_xml_is_refused_at_once(what: str) -> None:
    began = time.process_time()
    with pytest.raises(NotPlain, match=r"XML|document type|nested"):
        plain_xml.parse(HOSTILE[what])
    assert time.process_time() - began < 5
