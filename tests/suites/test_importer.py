import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.suites.conftest import INIT, MIX, PREPARE, READ, STORAGE, Importer, messages, workstage
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import (
    SizeBar,
    SizeHistogram,
    Suite,
    Uniform,
    cosbench_xml,
    importer,
    importer_shapes,
)
from weighbridge.suites.importer import Import
from weighbridge.suites.workload import VERIFIED_SHARE

BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE workload [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<workload name="&b;"/>
"""


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


@pytest.mark.parametrize("utf", ["utf-8", "utf-16", "iso-8859-1", "GB2312", "gbk", "Shift_JIS"])
def test_a_file_may_be_in_any_usual_encoding(utf: str) -> None:
    name = "größer" if "8" in utf or "16" in utf else "大小"
    text = f'<?xml version="1.0" encoding="{utf}"?>\n<workload name="{name}"/>'
    root = cosbench_xml.parse("w.xml", text.encode(utf))
    assert (root.get("name"), root.place.line) == (name, 2)


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
        (b'<?xml version="1.0" encoding="utf-7"?><workload/>', "save it as UTF-8"),
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
        for place in (one.place, *one.places.values())
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


def test_cosbenchs_sample_keeps_all_its_figures(imported: Importer) -> None:
    suite = imported(
        INIT, PREPARE, workstage(MIX, attributes='workers="8" rampup="30" runtime="300"')
    ).suite
    assert (suite.name, suite.about) == ("demo", "A trial")
    assert (suite.api, suite.layouts) == (("swift",), ("rgw-beast", "swift"))
    assert (suite.repeats, suite.cache) == (1, "none")
    (one,) = suite.workloads
    assert (one.name, one.workers, one.runtime, one.warmup) == ("main", (8,), 300, 30)
    assert (one.objects.size, one.objects.containers, one.objects.per_container) == (64000, 32, 50)
    assert one.operations == {"read": 80, "write": 20}
    assert (one.pick, one.verify) == ("uniform", VERIFIED_SHARE)


def test_stages_of_the_same_shape_become_one_workload_with_several_worker_counts(
    imported: Importer,
) -> None:
    stages = [
        workstage(stage=f"main_w{count}", attributes=f'workers="{count}" runtime="60"')
        for count in (1, 8, 64)
    ]
    assert imported.workload(PREPARE, *stages).workers == (1, 8, 64)


def test_stages_of_different_shapes_become_workloads_with_unique_names(imported: Importer) -> None:
    suite = imported(
        PREPARE,
        workstage(name="read", attributes='workers="1" runtime="60"'),
        workstage(MIX, name="mix", attributes='workers="1" runtime="60"'),
        workstage(name="read", attributes='workers="2" runtime="60"'),
        workstage(name="read", attributes='workers="2" runtime="61"'),
    ).suite
    found = {one.name: one.workers for one in suite.workloads}
    assert found == {"read": (1, 2), "mix": (1,), "read-2": (2,)}


def test_steps_that_are_all_repeated_equally_become_repeats(imported: Importer) -> None:
    stages = [workstage(attributes=f'workers="{count}" runtime="60"') for count in (1, 8)]
    assert imported(PREPARE, *stages, *stages, *stages).suite.repeats == 3
    with pytest.raises(DocumentError, match="the same step again"):
        imported(PREPARE, *stages, stages[0])


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ("c(64)KB", 64_000),
        ("c(65536,9)B", 65_536),  # COSBench reads no further
        ("c(3)MB", 3 * 10**6),
        ("c(1)GB", 10**9),
        ("u(1,100)KB", Uniform(uniform=(1000, 100_000))),
        ("r(1,10)MB", Uniform(uniform=(10**6, 10**7))),
        ("s(4,4)KB", 4000),
        (
            "h(1|64|10,64|512|20,512|512|70)KB",
            SizeHistogram(
                histogram=(
                    SizeBar(size=(1000, 64_000), weight=10),
                    SizeBar(size=(64_000, 512_000), weight=20),
                    SizeBar(size=512_000, weight=70),
                )
            ),
        ),
    ],
)
def test_sizes_keep_their_distribution_in_decimal_units(
    imported: Importer, sizes: str, wanted: object
) -> None:
    assert imported.workload(PREPARE.replace("c(64)KB", sizes), workstage()).objects.size == wanted


@given(st.integers(1, 10**6), st.sampled_from(["B", "KB", "MB"]))
def test_no_size_is_rounded(number: int, unit: str) -> None:
    size, _ = importer_shapes.selector_sizes(f"c({number}){unit}")
    assert size == number * {"B": 1, "KB": 1000, "MB": 10**6}[unit]


def test_the_innermost_storage_applies_and_s3_is_that_of_swift_too(imported: Importer) -> None:
    stage = workstage(READ).replace("\n<operation", '\n<storage type="s3"/><operation', 1)
    suite = imported(PREPARE, stage, storage='<storage type="mock"/>').suite
    assert (suite.api, suite.layouts) == (("s3",), ("rgw-beast", "swift-s3api"))


def test_config_is_inherited_and_the_last_value_wins(imported: Importer) -> None:
    stage = workstage(
        '<operation type="read" config="objects=u(1,9)"/>',
        attributes='workers="8" runtime="300" config="objects=u(1,5)"',
    )
    one = imported.workload(
        PREPARE, stage, head='name="demo" config="containers=u(1,3);objects=u(1,2)"'
    )
    assert (one.objects.containers, one.objects.per_container) == (3, 9)


def test_sequential_picks_by_all_workers_stay_sequential(imported: Importer) -> None:
    assert (
        imported.workload(
            PREPARE, workstage(READ.replace("u(1,50)", "s(1,49)").replace("u(", "s("))
        ).pick
        == "sequential"
    )


@pytest.mark.parametrize("word", ["true", "Yes", "ON", "false", "No", "off"])
def test_booleans_are_those_that_cosbench_reads(imported: Importer, word: str) -> None:
    on = word in {"true", "Yes", "ON"}
    read = workstage(READ.replace('config="', f'config="hashCheck={word};'))
    found = imported(PREPARE, read, storage=RANGED.replace("true", word))
    (one,) = found.suite.workloads
    assert (one.verify == 1, "read-range" in one.operations) == (on, on)
    assert ("hashCheck becomes verify" in messages(found)) == on
    write = workstage(MIX.replace("sizes=", f"chunked={word};sizes="))
    written = imported(PREPARE, write, storage=s3(f"is_prefetch={word}"), partial=True)
    changed = [one.message[:7] for one in written.remarks if one.severity == "change"]
    assert changed == (["storage", "chunked"] if on else [])


def test_afr_becomes_the_error_bound_if_all_works_have_the_same(imported: Importer) -> None:
    stages = [workstage(attributes=f'workers="{count}" runtime="60" afr="500"') for count in (1, 8)]
    assert imported(PREPARE, *stages).suite.bounds.error_share == 0.0005
    found = imported(PREPARE, stages[0], workstage(attributes='workers="8" runtime="60"'))
    assert found.suite.bounds.error_share == 0.001
    assert "afr 500 (failures per million) is left out" in messages(found)


def test_deletes_of_written_objects_need_no_prepared_objects(imported: Importer) -> None:
    config = "containers=u(1,2);objects=u(1,100)"
    write = f'<operation type="write" ratio="50" config="{config};sizes=c(1)MB"/>'
    operations = write + f'<operation type="delete" ratio="50" config="{config}"/>'
    one = imported.workload(workstage(operations))
    assert (one.operations, one.objects.size) == ({"write": 50, "delete": 50}, 10**6)


def test_the_size_of_read_objects_is_that_of_earlier_writes(imported: Importer) -> None:
    write = workstage(
        '<operation type="write" config="containers=s(1,4);objects=s(1,100);sizes=c(9)KB"/>',
        name="fill",
    )
    read = workstage(
        '<operation type="read" config="containers=u(1,4);objects=u(1,100)"/>', name="read"
    )
    suite = imported(write, read).suite
    assert {one.name: one.objects.size for one in suite.workloads} == {"fill": 9000, "read": 9000}
    with pytest.raises(DocumentError, match="have several sizes"):  # a write may leave some
        imported(PREPARE, write, read)


@pytest.mark.parametrize(
    ("works", "found"),
    [
        ("r(1,32) r(1,25) 64, r(1,32) r(26,50) 64", 64_000),
        ("r(1,20) r(1,30) 64, r(7,32) r(1,30) 64, r(1,32) r(20,90) 64", 64_000),
        ("r(1,32) r(1,25) 1000, r(1,32) r(1,50) 64", 64_000),
        ("r(1,32) r(1,25) 64, r(1,32) r(26,50) 1000", "have several sizes"),
        ("r(1,32) r(1,50) 64, r(4,4) r(7,7) 1000", "have several sizes"),
        ("r(1,32) r(1,25) 1000", "have several sizes"),
        ("r(1,32) r(1,24) 64, r(1,32) r(26,50) 64", "has the given size"),
        ("r(1,31) r(1,50) 64, r(32,32) r(2,50) 64", "has the given size"),
        ("r(1,32);cprefix=other r(1,50) 64", "has the given size"),
        (", ".join(f"r({one},{one}) r({one},50) 64" for one in range(1, 33)), "has the given size"),
    ],
)
def test_objects_have_the_size_in_which_all_works_before_wrote_them(
    imported: Importer, works: str, found: object
) -> None:
    work = '<work type="prepare" workers="1" config="containers={};objects={};sizes=c({})KB"/>'
    stage = "".join(work.format(*one.split()) for one in works.split(", "))
    stages = (f'<workstage name="prepare">{stage}</workstage>', workstage())
    if found == "have several sizes":
        with pytest.raises(DocumentError, match=found):
            imported(*stages, size=64_000)
    elif found == "has the given size":
        assert found in messages(imported(*stages, size=64_000))
        with pytest.raises(DocumentError, match="no earlier stage writes all objects of read"):
            imported(*stages)
    else:
        assert imported.workload(*stages).objects.size == found


OBJECTS, RUNTIME, STAGE = "objects=u(1,50)", 'runtime="300"', '<workstage name="main"'


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("80", "70"), 5, "the ratios of work 'main' add up to 90: COSBench requires 100"),
        (('type="read"', 'type="raed"'), 6, "COSBench has no operation 'raed'"),
        (('workers="8"', ""), 5, "must have `workers` above 0"),
        (('workers="8"', 'workers="two"'), 5, "must be a whole number, 0 or more, not 'two'"),
        (('runtime="300"', ""), 5, "has no limit: no runtime, totalOps or totalBytes"),
        ((f"containers=u(1,32);{OBJECTS}", OBJECTS), 6, "config must say which containers"),
        (("u(1,50)", "x(1,50)"), 6, "objects: 'x(1,50)' is not a selector"),
        (("u(1,50)", "u(0,50)"), 6, "COSBench counts from 1"),
        (("u(1,50)", "u(50,1)"), 6, "begins after its end"),
        (("u(1,50)", "u(1,9999999999)"), 6, "beyond 2147483647"),
        (("sizes=c(64)KB", "sizes=c(64)kb"), 7, "'kb' is not a unit of COSBench (known: GB, "),
        (("sizes=c(64)KB", "sizes=h(1|64)KB"), 7, "is not a bar such as 1|64|10"),
        ((";sizes=c(64)KB", ""), 7, "config must say the sizes"),
        *(
            ((";sizes=", f";{key}={word};sizes="), 7, f"{key} must be true, yes, on, false, no or")
            for key, word in (("hashCheck", "t"), ("chunked", "1"), ("is_prefetch", ""))
        ),
        (('name="main" workers', "workers"), 5, "a work has no name"),
    ],
)
def test_a_file_that_cosbench_would_refuse_is_refused_with_its_line(
    imported: Importer, change: tuple[str, str], line: int, words: str
) -> None:
    stage = workstage(MIX).replace(*change)
    for partial in (False, True):
        with pytest.raises(DocumentError) as error:
            imported(PREPARE, stage, partial=partial)
        assert any(words in fault.message and fault.line == line for fault in error.value.faults), (
            str(error.value)
        )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('type="write"', 'type="filewrite"'), "filewrite writes files"),
        ((RUNTIME, f'{RUNTIME} totalOps="1000"'), "totalOps may end the work before its runtime"),
        ((RUNTIME, f'{RUNTIME} division="object"'), "gives each worker its own part of the"),
        (("u(1,50)", "h(1|10|90,11|50|10)"), "picks by a weighted histogram"),
        (("u(1,32);objects=u(51", "u(33,64);objects=u(51"), "write uses other containers than"),
        (("sizes=c(64)KB", "sizes=c(1)MB"), "writes objects of another size than the others"),
        (("sizes=c(64)KB", "sizes=c(64)KB;content=zero"), "here it is random"),
        (("sizes=c(64)KB", "sizes=c(64)KB;chunked=true"), "uploads do not declare their length"),
        ((STAGE, f'{STAGE} trigger="drop.sh"'), "runs a script, whose effect is not known"),
        ((f"u(1,32);{OBJECTS}", "r(1,32);objects=r(1,50)"), "goes through the same range"),
        ((f"u(1,32);{OBJECTS}", f"s(1,32);{OBJECTS}"), "in different ways"),
        ((f"u(1,32);{OBJECTS}", "s(1,32);objects=s(1,50)"), "reaches 800 of 1600 objects"),
        ((f"u(1,32);{OBJECTS}", f"u(1,32);shards=3;{OBJECTS}"), "config has no key 'shards': COS"),
        (("sizes=c(64)KB", "sizes=c(64)KiB"), "0.4.2 takes it for bytes"),
        (("sizes=c(64)KB", "sizes=c(64)kB"), "COSBench takes 'kB' for B"),
        (("u(51,100)", "u(51)"), "u(51) has no end"),
    ],
)
def test_a_change_of_what_is_measured_is_refused_unless_partial(
    imported: Importer, change: tuple[str, str], words: str
) -> None:
    stage = workstage(MIX).replace(*change)
    with pytest.raises(DocumentError, match="--partial") as error:
        imported(PREPARE, stage)
    assert words in str(error.value)
    if "h(" not in change[1] and "u(51)" not in change[1]:  # nothing is known about the objects
        found = imported(PREPARE, stage, partial=True)
        assert words in messages(found)
        assert words in " ".join(
            line.removeprefix("#").strip()
            for line in found.text.splitlines()
            if line.startswith("#")
        )


def test_a_runtime_missing_in_the_file_must_be_given(imported: Importer) -> None:
    stage = workstage(attributes='workers="4" totalOps="1000"')
    with pytest.raises(DocumentError, match="give one by --runtime"):
        imported(PREPARE, stage)
    assert imported.workload(PREPARE, stage, runtime_s=45).runtime == 45


def test_works_at_once_are_refused_but_those_that_request_the_same_are_one(
    imported: Importer,
) -> None:
    between = '</workstage>\n<workstage name="main">'
    with pytest.raises(DocumentError, match="stage 'main' runs 2 works at once"):
        imported(PREPARE, (workstage() + workstage(MIX)).replace(between, ""))
    same = workstage(attributes='workers="4" runtime="300" driver="b"', name="other")
    suite = imported(PREPARE, (workstage() + same).replace(between, "")).suite
    assert (suite.repeats, suite.workloads[0].workers) == (1, (12,))


def s3(config: str = "", kind: str = "s3") -> str:
    return f'<storage type="{kind}" config="accesskey=K;secretkey=S;{config}"/>'


def measured(found: Import) -> dict[str, object]:
    """Operations, objects and parts of a single workload."""
    (workload,) = found.suite.workloads
    count = workload.objects.containers * workload.objects.per_container
    part = workload.multipart.part if workload.multipart else None
    if workload.range:
        part = workload.range.bytes
    return {"operations": workload.operations, "objects": count, "part": part}


ARCHIVED = (
    '<workstage name="i"><work type="{0}" workers="1" division="container" config="{1}">'
    '<operation type="{0}" ratio="100" division="container" config="{1}" id="none"/>'
    "</work></workstage>"
)
RANGED = s3("is_range_request=true;file_length=64000;chunk_length=8192")
HEAD = workstage(READ.replace('"read"', '"head"'))
MWRITE = READ.replace('"read"', '"mwrite"').replace("u(1,50)", "u(1,50);sizes=c(16)MB")


@pytest.mark.parametrize(
    ("stages", "storage", "wanted", "words"),
    [
        # What COSBench's pull request 423 and cosbench-sineio add to it.
        ([PREPARE, workstage()], RANGED, ({"read-range": 100}, 1600, 8192), "at any byte"),
        ([PREPARE, HEAD], s3(), ({"head": 100}, 1600, None), ""),
        ([PREPARE, HEAD], s3("no_verify_ssl=true", "gdas"), ({"head": 100}, 1600, None), "always"),
        (
            [workstage(MWRITE)],
            s3("part_size=8388608;storage_class=STANDARD;is_prefetch=false"),
            ({"write-multipart": 100}, 1600, 8 * 2**20),
            "storage_class is left out",
        ),
        ([workstage(MWRITE)], s3(), ({"write-multipart": 100}, 1600, 5 * 2**20), ""),
        # Work.validate: all but five types are normal works, and those five get their operation.
        (
            [PREPARE, workstage(attributes='type="read" workers="8" runtime="9"')],
            STORAGE,
            ({"read": 100}, 1600, None),
            "'read' is a normal work",
        ),
        *(
            (
                [ARCHIVED.format(kind, "containers=r(1,32);objects=r(0,0)"), PREPARE, workstage()],
                STORAGE,
                ({"read": 100}, 1600, None),
                f"{kind} (workers 1) is left out",
            )
            for kind in ("init", "cleanup", "dispose")
        ),
        (
            [PREPARE.replace("r(1,50)", "1-50"), workstage()],
            STORAGE,
            ({"read": 100}, 1600, None),
            "",
        ),
    ],
)
def test_a_file_measures_what_the_cosbench_does_that_it_was_written_for(
    imported: Importer,
    stages: list[str],
    storage: str,
    wanted: tuple[dict[str, float], int, int | None],
    words: str,
) -> None:
    found = imported(*stages, storage=storage)
    assert tuple(measured(found).values()) == wanted
    assert words in messages(found)


HOT = READ.replace('"100"', '"80"').replace("u(1,50)", "u(1,5)")
COLD = READ.replace('"100"', '"20"').replace("u(1,50)", "u(6,50)")
NOT_THERE = workstage(READ.replace('"100"', '"40"').replace('"read"', '"restore"') + "{}").format(
    READ.replace('"100"', '"60"')
)


@pytest.mark.parametrize(
    ("stages", "storage", "wanted", "words"),
    [
        (
            [PREPARE, workstage(HOT + COLD)],
            STORAGE,
            ({"read": 100}, 1600, None),
            "80 of 100 reads pick among 160 of 1600 objects",
        ),
        (
            [PREPARE, workstage()],
            RANGED.replace("64000", "9000"),
            ({"read-range": 100}, 1600, 8192),
            "file_length 9000",
        ),
        ([PREPARE, workstage()], s3("is_prefetch=true"), ({"read": 100}, 1600, None), "`prefetch`"),
        ([PREPARE, workstage()], s3("storage_class=IA"), ({"read": 100}, 1600, None), "'IA' choo"),
        ([PREPARE, workstage()], s3("stripes=4"), ({"read": 100}, 1600, None), "no key 'stripes'"),
        ([PREPARE, workstage()], s3("policy=au"), ({"read": 100}, 1600, None), "'au' chooses wh"),
        ([PREPARE, workstage()], s3("", "rados"), ({"read": 100}, 1600, None), "for storage 'rad"),
        (
            [workstage(MWRITE)],
            s3("part_size=1000"),
            ({"write-multipart": 100}, 1600, 5 * 2**20),
            "no parts below 5242880 bytes",
        ),
        (
            [PREPARE.replace('"prepare" w', '"mprepare" w'), workstage()],
            s3(),
            ({"read": 100}, 1600, None),
            "mprepare uploads objects in parts",
        ),
        ([PREPARE, NOT_THERE], s3(), ({"read": 60}, 1600, None), "restore asks a store"),
        (
            [workstage(MWRITE.replace('"100"', '"50"') + MIX.splitlines()[1].replace("20", "50"))],
            s3(),
            ({"write": 50}, 1600, None),
            "mwrite beside write",
        ),
    ],
)
def test_what_another_cosbench_does_and_a_suite_does_not_is_dropped_with_partial_alone(
    imported: Importer,
    stages: list[str],
    storage: str,
    wanted: tuple[dict[str, float], int, int | None],
    words: str,
) -> None:
    with pytest.raises(DocumentError, match="--partial") as refused:
        imported(*stages, storage=storage)
    assert words in str(refused.value)
    found = imported(*stages, storage=storage, partial=True)
    assert tuple(measured(found).values()) == wanted
    assert words in messages(found)


def test_a_misspelt_type_of_a_work_names_the_one_that_is_meant(imported: Importer) -> None:
    with pytest.raises(DocumentError, match=r"needs an operation \(did you mean 'prepare'\?\)"):
        imported(PREPARE.replace('"prepare" w', '"prepaer" w'), workstage(), partial=True)


def with_attribute(text: str) -> str:
    return workstage(attributes=f'workers="9" runtime="300" {text}')


def with_key(text: str) -> str:
    return workstage(READ.replace('config="', f'config="{text};'))


DELAY = '<work type="delay" name="delay" workers="1"/>'
CLEANUP = '<work type="cleanup" workers="1" config="containers=r(1,2)"/>'
IDLE = workstage(READ + MIX.splitlines()[1].replace('"20"', '"0"'))
LEFT_OUT: Mapping[str, tuple[str, str]] = {
    "auth": (
        '<auth type="swauth" config="username=u;password=geheim;auth_url=http://h"/>',
        "auth 'swauth' is left out",
    ),
    "delay": (f'<workstage name="delay" closuredelay="60">{DELAY}</workstage>', "pause of 60 s"),
    "cleanup": (f'<workstage name="c">{CLEANUP}</workstage>', "cleanup"),
    "attribute": (with_attribute('rampUp="9"'), "no attribute 'rampUp' (did you mean 'rampup'?)"),
    "key": (with_key("hashcheck=true"), "no key 'hashcheck' (did you mean 'hashCheck'?)"),
    "element": ("<workstag/>", "<'workstag'> in <workflow> is left out (did you mean 'workstage'"),
    "prefix": (PREPARE.replace('config="', 'config="oprefix=o;'), "oprefix is left out"),
    "interval": (with_attribute('interval="1"'), "interval '1' is left out"),
    "driver": (with_attribute('driver="driver2"'), "driver 'driver2' is left out"),
    "rampdown": (with_attribute('rampdown="5"'), "rampdown '5' is left out"),
    "idle operation": (IDLE, "write has a ratio of 0"),
    "words": ("unheard", "text within <workflow> is left out"),
    "no pair": (with_key("abc"), "a part of config that is not key=value"),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_everything_left_out_is_reported_and_noted_in_the_yaml(
    imported: Importer, what: str
) -> None:
    more, words = LEFT_OUT[what]
    storage = more + STORAGE if what == "auth" else STORAGE
    found = imported(PREPARE, workstage(), *([] if what == "auth" else [more]), storage=storage)
    assert words in messages(found)
    assert words in found.text
    assert "geheim" not in messages(found) + found.text
    assert "AUTH_tk1" not in messages(found) + found.text


def test_every_attribute_left_out_has_its_line(imported: Importer) -> None:
    found = imported(
        PREPARE,
        workstage(attributes='workers="8" runtime="300" interval="1"\n driver="d" bogus="1"'),
    )
    lines = {remark.message.split()[0]: remark.place.line for remark in found.remarks}
    assert (lines["interval"], lines["driver"], lines["<work>"]) == (5, 6, 6)


def test_text_of_the_file_cannot_break_out_of_a_comment(imported: Importer) -> None:
    hostile = with_key("x&#10;name: evil&#10;=1")
    found = imported(
        PREPARE, hostile, partial=True, head='name="demo" description="a: [b&#10;seed: 1"'
    )
    assert found.suite.name == "demo"
    assert (found.suite.seed, found.suite.about) == (2014, "a: [b seed: 1")


def test_a_name_is_converted_to_a_valid_one(imported: Importer) -> None:
    suite = imported(PREPARE, workstage(name="64 KB_Read"), head='name="Ärger &amp; Co_1.0"').suite
    assert (suite.name, suite.workloads[0].name) == ("rger-co-1-0", "64-kb-read")
    assert suite.about == "Imported from COSBench's w.xml"


def test_a_file_that_measures_nothing_or_makes_no_valid_suite_is_refused(
    imported: Importer, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"w\.xml: the suite made from it is not valid:\n"):
        imported(PREPARE, workstage(attributes='workers="70000" runtime="60"'))
    with pytest.raises(UsageError, match="nothing in it can be expressed in a suite"):
        imported(workstage(), partial=True)
    with pytest.raises(DocumentError, match="nothing is measured"):
        imported(INIT, PREPARE)
    with pytest.raises(DocumentError, match="the workflow has no <workstage>"):
        imported()
    path = tmp_path / "server.xml"
    path.write_text("<Server/>")
    with pytest.raises(DocumentError, match=r"begins with <workload>, not <Server>"):
        importer.from_cosbench(path)


def test_the_yaml_contains_no_defaults(imported: Importer) -> None:
    found = imported(PREPARE, workstage())
    assert Suite.model_validate(yaml.safe_load(found.text)) == found.suite
    assert "seed" not in found.text
    assert "verify" not in found.text
