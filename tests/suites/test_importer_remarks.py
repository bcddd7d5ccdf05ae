from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.suites.conftest import INIT, MIX, PREPARE, READ, STORAGE, Importer, messages, workstage
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import Suite, importer

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
        (("sizes=c(64)KB", "sizes=c(64)KiB"), 7, "'KiB' is not a unit of COSBench (known: B, "),
        (("sizes=c(64)KB", "sizes=h(1|64)KB"), 7, "is not a bar such as 1|64|10"),
        ((";sizes=c(64)KB", ""), 7, "config must say the sizes"),
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
    ],
)
def test_a_change_of_what_is_measured_is_refused_unless_partial(
    imported: Importer, change: tuple[str, str], words: str
) -> None:
    stage = workstage(MIX).replace(*change)
    with pytest.raises(DocumentError, match="--partial") as error:
        imported(PREPARE, stage)
    assert words in str(error.value)
    if "h(" not in change[1]:  # else nothing is known about the objects
        found = imported(PREPARE, stage, partial=True)
        assert words in messages(found)
        assert words in " ".join(
            line.removeprefix("#").strip()
            for line in found.text.splitlines()
            if line.startswith("#")
        )


def test_a_size_missing_in_the_file_must_be_given(imported: Importer) -> None:
    with pytest.raises(DocumentError, match="their size is not known: give one by --size"):
        imported(workstage())
    with pytest.raises(UsageError, match="nothing in it can be expressed in a suite"):
        imported(workstage(), partial=True)
    assert imported.workload(workstage(), size=4096).objects.size == 4096


def test_objects_with_another_prefix_are_other_objects(imported: Importer) -> None:
    stage = workstage(READ.replace('config="', 'config="cprefix=other;'))
    with pytest.raises(DocumentError, match="their size is not known"):
        imported(PREPARE, stage)
    both = imported.workload(PREPARE.replace('config="', 'config="cprefix=other;'), stage)
    assert both.objects.size == 64_000


def test_a_runtime_missing_in_the_file_must_be_given(imported: Importer) -> None:
    stage = workstage(attributes='workers="4" totalOps="1000"')
    with pytest.raises(DocumentError, match="give one by --runtime"):
        imported(PREPARE, stage)
    assert imported.workload(PREPARE, stage, runtime_s=45).runtime == 45


def test_concurrent_works_are_refused(imported: Importer) -> None:
    stage = f'<workstage name="two">{workstage()}{workstage(MIX)}</workstage>'.replace(
        '<workstage name="main">', ""
    ).replace("</workstage>\n", "")
    with pytest.raises(DocumentError, match="stage 'two' runs 2 works at once"):
        imported(PREPARE, stage)


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ('<storage type="librados"/>', r"w\.xml:2:1: a suite has no API for storage 'librados'"),
        ('<storage type="swift" config="policy=gold"/>', "policy 'gold' chooses where objects"),
    ],
)
def test_a_storage_without_an_api_or_with_a_policy_is_refused(
    imported: Importer, storage: str, why: str
) -> None:
    with pytest.raises(DocumentError, match=why):
        imported(PREPARE, workstage(), storage=storage)


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
    "delay": (
        f'<workstage name="delay" closuredelay="60">{DELAY}</workstage>',
        "pause of 60 s",
    ),
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
    found = imported(PREPARE, hostile, head='name="demo" description="a: [b&#10;seed: 1"')
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
