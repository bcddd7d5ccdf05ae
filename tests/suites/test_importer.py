from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import (
    SizeBar,
    SizeHistogram,
    Suite,
    Uniform,
    Workload,
    importer,
    importer_selectors,
    loader,
)
from weighbridge.suites.importer import Import
from weighbridge.suites.workload import VERIFIED_SHARE

STORAGE = (
    '<storage type="swift" '
    'config="token=AUTH_tk1;storage_url=http://192.0.2.1:8080/v1/AUTH_test;logging=false"/>'
)
INIT = (
    '<workstage name="init"><work type="init" workers="2" config="containers=r(1,32)"/></workstage>'
)
PREPARE = (
    '<workstage name="prepare"><work type="prepare" workers="4" '
    'config="containers=r(1,32);objects=r(1,50);sizes=c(64)KB"/></workstage>'
)
READ = '<operation type="read" ratio="100" config="containers=u(1,32);objects=u(1,50)"/>'
MIX = (
    '<operation type="read" ratio="80" config="containers=u(1,32);objects=u(1,50)"/>\n'
    '<operation type="write" ratio="20" '
    'config="containers=u(1,32);objects=u(51,100);sizes=c(64)KB"/>'
)


def work(
    operations: str = READ,
    *,
    stage: str = "main",
    attributes: str = 'workers="8" runtime="300"',
    name: str = "main",
) -> str:
    return (
        f'<workstage name="{stage}"><work name="{name}" '
        f"{attributes}>\n{operations}\n</work></workstage>\n"
    )


def file_of(
    *stages: str, storage: str = STORAGE, head: str = 'name="demo" description="A trial"'
) -> str:
    return (
        f"<workload {head}>\n{storage}\n<workflow>\n"
        + "\n".join(stages)
        + "\n</workflow></workload>"
    )


@pytest.fixture
def imported(tmp_path: Path) -> "Importer":
    return Importer(tmp_path)


class Importer:
    """Imports texts as files, with what a suite of them must be to be one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self,
        *stages: str,
        storage: str = STORAGE,
        head: str = 'name="demo" description="A trial"',
        **how: object,
    ) -> Import:
        path = self.folder / "w.xml"
        path.write_text(file_of(*stages, storage=storage, head=head))
        found = importer.from_cosbench(path, **how)  # type: ignore[arg-type]  # options as they are
        written = self.folder / "suite.yaml"
        written.write_text(found.text)
        assert loader.load(written) == found.suite
        return found

    def workload(self, *stages: str, **how: object) -> Workload:
        (one,) = self(*stages, **how).suite.workloads  # type: ignore[arg-type]  # as above
        return one


def messages(found: Import) -> str:
    return "\n".join(str(remark) for remark in found.remarks)


def test_cosbenchs_own_sample_keeps_all_its_figures(imported: Importer) -> None:
    suite = imported(
        INIT, PREPARE, work(MIX, attributes='workers="8" rampup="30" runtime="300"')
    ).suite
    assert (suite.name, suite.about, suite.api, suite.layouts) == (
        "demo",
        "A trial",
        ("swift",),
        ("rgw-beast", "swift"),
    )
    assert (suite.repeats, suite.cache) == (1, "none")
    (one,) = suite.workloads
    assert (one.name, one.workers, one.runtime, one.warmup) == ("main", (8,), 300, 30)
    assert (one.objects.size, one.objects.containers, one.objects.per_container) == (64000, 32, 50)
    assert (one.operations, one.pick, one.verify) == (
        {"read": 80, "write": 20},
        "uniform",
        VERIFIED_SHARE,
    )


def test_stages_of_one_shape_become_one_workload_with_many_worker_counts(
    imported: Importer,
) -> None:
    stages = [
        work(stage=f"main_w{count}", attributes=f'workers="{count}" runtime="60"')
        for count in (1, 8, 64)
    ]
    assert imported.workload(PREPARE, *stages).workers == (1, 8, 64)


def test_stages_of_different_shapes_become_workloads_of_their_own_names(imported: Importer) -> None:
    suite = imported(
        PREPARE,
        work(name="read", attributes='workers="1" runtime="60"'),
        work(MIX, name="mix", attributes='workers="1" runtime="60"'),
        work(name="read", attributes='workers="2" runtime="60"'),
        work(name="read", attributes='workers="2" runtime="61"'),
    ).suite
    assert [(one.name, one.workers) for one in suite.workloads] == [
        ("read", (1, 2)),
        ("mix", (1,)),
        ("read-2", (2,)),
    ]


def test_steps_that_all_come_as_often_become_repeats(imported: Importer) -> None:
    stages = [work(attributes=f'workers="{count}" runtime="60"') for count in (1, 8)]
    assert imported(PREPARE, *stages, *stages, *stages).suite.repeats == 3


def test_a_step_that_comes_more_often_than_others_is_refused(imported: Importer) -> None:
    stages = [work(attributes=f'workers="{count}" runtime="60"') for count in (1, 8, 1)]
    with pytest.raises(DocumentError, match="the same step again"):
        imported(PREPARE, *stages)


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ("c(64)KB", 64_000),
        ("c(65536)B", 65_536),
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
def test_sizes_keep_their_selectors_and_units_of_a_thousand(
    imported: Importer, sizes: str, wanted: object
) -> None:
    assert imported.workload(PREPARE.replace("c(64)KB", sizes), work()).objects.size == wanted


@given(st.integers(1, 10**6), st.sampled_from(["B", "KB", "MB"]))
def test_no_size_is_rounded_on_its_way_through_yaml(number: int, unit: str) -> None:
    size, _ = importer_selectors.sizes(f"c({number}){unit}")
    assert size == number * {"B": 1, "KB": 1000, "MB": 10**6}[unit]


def test_s3_is_an_api_and_is_compared_where_swift_speaks_it(imported: Importer) -> None:
    storage = (
        '<storage type="s3" '
        'config="accesskey=K;secretkey=S;endpoint=http://h:8000;path_style_access=true"/>'
    )
    suite = imported(PREPARE, work(), storage=storage).suite
    assert (suite.api, suite.layouts) == (("s3",), ("rgw-beast", "swift-s3api"))


def test_the_nearest_storage_holds(imported: Importer) -> None:
    stage = work(READ).replace("\n<operation", '\n<storage type="s3"/><operation', 1)
    assert imported(PREPARE, stage, storage='<storage type="mock"/>').suite.api == ("s3",)


def test_config_is_inherited_and_the_last_value_wins(imported: Importer) -> None:
    stage = work(
        '<operation type="read" config="objects=u(1,9)"/>',
        attributes='workers="8" runtime="300" config="objects=u(1,5)"',
    )
    one = imported.workload(
        PREPARE, stage, head='name="demo" config="containers=u(1,3);objects=u(1,2)"'
    )
    assert (one.objects.containers, one.objects.per_container) == (3, 9)


def test_objects_picked_one_after_the_other_by_all_workers_stay_so(imported: Importer) -> None:
    assert imported.workload(PREPARE, work(READ.replace("u(", "s("))).pick == "sequential"


def test_hash_checks_of_reads_become_verification(imported: Importer) -> None:
    found = imported(PREPARE, work(READ.replace('config="', 'config="hashCheck=true;')))
    assert found.suite.workloads[0].verify == 1
    assert "hashCheck becomes verify" in messages(found)


def test_failures_per_million_become_the_bound_where_all_works_say_the_same(
    imported: Importer,
) -> None:
    stages = [work(attributes=f'workers="{count}" runtime="60" afr="500"') for count in (1, 8)]
    assert imported(PREPARE, *stages).suite.bounds.error_share == 0.0005
    found = imported(PREPARE, stages[0], work(attributes='workers="8" runtime="60"'))
    assert found.suite.bounds.error_share == 0.001
    assert "afr 500 (failures per million) is left out" in messages(found)


def test_writes_and_deletes_of_what_was_written_need_no_prepared_objects(
    imported: Importer,
) -> None:
    config = "containers=u(1,2);objects=u(1,100)"
    write = f'<operation type="write" ratio="50" config="{config};sizes=c(1)MB"/>'
    operations = write + f'<operation type="delete" ratio="50" config="{config}"/>'
    one = imported.workload(work(operations))
    assert (one.operations, one.objects.size) == ({"write": 50, "delete": 50}, 10**6)


def test_what_an_earlier_stage_writes_tells_the_size_of_what_is_read(imported: Importer) -> None:
    write = work(
        '<operation type="write" config="containers=s(1,4);objects=s(1,100);sizes=c(9)KB"/>',
        name="fill",
    )
    read = work('<operation type="read" config="containers=u(1,4);objects=u(1,100)"/>', name="read")
    suite = imported(write, read).suite
    assert [(one.name, one.objects.size) for one in suite.workloads] == [
        ("fill", 9000),
        ("read", 9000),
    ]


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("80", "70"), 5, "the ratios of work 'main' add up to 90: COSBench wants 100"),
        (('type="read"', 'type="raed"'), 6, "COSBench has no operation 'raed'"),
        (('workers="8"', ""), 5, "must have `workers` above 0"),
        (
            ('workers="8"', 'workers="two"'),
            5,
            "workers: a whole number from 0 up is wanted, not 'two'",
        ),
        (('runtime="300"', ""), 5, "has no limit, neither runtime nor totalOps nor totalBytes"),
        (
            ("containers=u(1,32);objects=u(1,50)", "objects=u(1,50)"),
            6,
            "config must say which containers",
        ),
        (("u(1,50)", "x(1,50)"), 6, "objects: 'x(1,50)' is no selector"),
        (("u(1,50)", "u(0,50)"), 6, "COSBench counts from 1"),
        (("u(1,50)", "u(50,1)"), 6, "begins after its end"),
        (("u(1,50)", "u(1,9999999999)"), 6, "beyond 2147483647"),
        (
            ("sizes=c(64)KB", "sizes=c(64)KiB"),
            7,
            "'KiB' is no unit of COSBench (known: B, KB, MB, GB)",
        ),
        (("sizes=c(64)KB", "sizes=h(1|64)KB"), 7, "is no bar such as 1|64|10"),
        ((";sizes=c(64)KB", ""), 7, "config must say the sizes"),
        (('name="main" workers', "workers"), 5, "a work has no name"),
    ],
)
def test_what_cosbench_itself_would_not_take_is_refused_with_its_line(
    imported: Importer, change: tuple[str, str], line: int, words: str
) -> None:
    stage = work(MIX).replace(*change)
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
        (
            ('runtime="300"', 'runtime="300" totalOps="1000"'),
            "totalOps may end the work before its runtime does",
        ),
        (
            ('runtime="300"', 'runtime="300" division="object"'),
            "gives each worker a part of the objects to itself",
        ),
        (("u(1,50)", "h(1|10|90,11|50|10)"), "picks some more often than others by steps"),
        (
            ("containers=u(1,32);objects=u(51", "containers=u(33,64);objects=u(51"),
            "write goes to other containers than read",
        ),
        (
            ("sizes=c(64)KB", "sizes=c(1)MB"),
            "objects of another size are written than are worked on",
        ),
        (("sizes=c(64)KB", "sizes=c(64)KB;content=zero"), "here it is random"),
        (
            ("sizes=c(64)KB", "sizes=c(64)KB;chunked=true"),
            "chunked uploads do not tell their length",
        ),
        (
            ('<workstage name="main"', '<workstage name="main" trigger="drop.sh"'),
            "runs a script beside it",
        ),
        (
            ("containers=u(1,32);objects=u(1,50)", "containers=r(1,32);objects=r(1,50)"),
            "each worker goes through the same range",
        ),
        (
            ("containers=u(1,32);objects=u(1,50)", "containers=s(1,32);objects=u(1,50)"),
            "in different ways",
        ),
    ],
)
def test_what_would_measure_something_else_is_refused_unless_part_of_it_is_asked_for(
    imported: Importer, change: tuple[str, str], words: str
) -> None:
    stage = work(MIX).replace(*change)
    with pytest.raises(DocumentError, match="--partial") as error:
        imported(PREPARE, stage)
    assert words in str(error.value)
    if "h(" not in change[1]:  # then nothing is known of the objects
        found = imported(PREPARE, stage, partial=True)
        assert words in messages(found)
        assert words in " ".join(
            line.removeprefix("#").strip()
            for line in found.text.splitlines()
            if line.startswith("#")
        )


def test_a_size_that_the_file_does_not_tell_is_asked_for_and_never_made_up(
    imported: Importer,
) -> None:
    with pytest.raises(DocumentError, match="its size is not known: give one by --size"):
        imported(work())
    with pytest.raises(UsageError, match="nothing in it can be said in a suite"):
        imported(work(), partial=True)
    assert imported.workload(work(), size=4096).objects.size == 4096


def test_a_prefix_makes_other_objects_of_what_is_prepared(imported: Importer) -> None:
    stage = work(READ.replace('config="', 'config="cprefix=other;'))
    with pytest.raises(DocumentError, match="its size is not known"):
        imported(PREPARE, stage)
    both = imported.workload(PREPARE.replace('config="', 'config="cprefix=other;'), stage)
    assert both.objects.size == 64_000


def test_a_runtime_that_the_file_does_not_tell_is_asked_for_and_never_made_up(
    imported: Importer,
) -> None:
    stage = work(attributes='workers="4" totalOps="1000"')
    with pytest.raises(DocumentError, match="give one by --runtime"):
        imported(PREPARE, stage)
    assert imported.workload(PREPARE, stage, runtime_s=45).runtime == 45


def test_works_that_run_at_once_are_refused(imported: Importer) -> None:
    stage = f'<workstage name="two">{work()}{work(MIX)}</workstage>'.replace(
        '<workstage name="main">', ""
    ).replace("</workstage>\n", "")
    with pytest.raises(DocumentError, match="stage 'two' runs 2 works at once"):
        imported(PREPARE, stage)


def test_a_storage_that_is_no_api_is_refused(imported: Importer) -> None:
    with pytest.raises(
        DocumentError, match=r"w\.xml:2:1: storage 'librados' is none that a suite can ask"
    ):
        imported(PREPARE, work(), storage='<storage type="librados"/>')


def test_a_storage_policy_is_refused(imported: Importer) -> None:
    with pytest.raises(DocumentError, match="policy 'gold' puts objects where that policy says"):
        imported(PREPARE, work(), storage='<storage type="swift" config="policy=gold"/>')


LEFT_OUT: Mapping[str, tuple[str, str]] = {
    "auth": (
        '<auth type="swauth" config="username=u;password=geheim;auth_url=http://h"/>',
        "auth 'swauth' is left out",
    ),
    "delay": (
        (
            '<workstage name="delay" closuredelay="60"><work type="delay" name="delay" '
            'workers="1"/></workstage>'
        ),
        "pause of 60 s",
    ),
    "cleanup": (
        (
            '<workstage name="c"><work type="cleanup" workers="1" '
            'config="containers=r(1,2)"/></workstage>'
        ),
        "cleanup",
    ),
    "attribute": (
        work(attributes='workers="9" runtime="300" rampUp="9"'),
        "no attribute 'rampUp' (did you mean 'rampup'?)",
    ),
    "key": (
        work(READ.replace('config="', 'config="hashcheck=true;')),
        "no key 'hashcheck' (did you mean 'hashCheck'?)",
    ),
    "element": (
        "<workstag/>",
        "<'workstag'> in <workflow> is left out (did you mean 'workstage'?)",
    ),
    "prefix": (PREPARE.replace('config="', 'config="oprefix=o;'), "oprefix is left out"),
    "interval": (
        work(attributes='workers="9" runtime="300" interval="1"'),
        "interval '1' is left out",
    ),
    "driver": (
        work(attributes='workers="9" runtime="300" driver="driver2"'),
        "driver 'driver2' is left out",
    ),
    "rampdown": (
        work(attributes='workers="9" runtime="300" rampdown="5"'),
        "rampdown '5' is left out",
    ),
    "idle operation": (
        work(READ + MIX.splitlines()[1].replace('"20"', '"0"')),
        "write has a ratio of 0",
    ),
    "words": ("unheard", "text within <workflow> is left out"),
    "no pair": (
        work(READ.replace('config="', 'config="abc;')),
        "a part of config that is no key=value",
    ),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_named_on_the_way_and_in_the_suite(
    imported: Importer, what: str
) -> None:
    more, words = LEFT_OUT[what]
    storage = more + STORAGE if what == "auth" else STORAGE
    found = imported(PREPARE, work(), *([] if what == "auth" else [more]), storage=storage)
    assert words in messages(found)
    assert words in found.text
    assert "geheim" not in messages(found) + found.text
    assert "AUTH_tk1" not in messages(found) + found.text


def test_every_attribute_that_is_not_in_the_suite_has_its_line(imported: Importer) -> None:
    found = imported(
        PREPARE, work(attributes='workers="8" runtime="300" interval="1"\n driver="d" bogus="1"')
    )
    told = {remark.message.split()[0]: remark.place.line for remark in found.remarks}
    assert (told["interval"], told["driver"], told["<work>"]) == (5, 6, 6)


def test_words_of_the_file_cannot_leave_the_comment_they_stand_in(imported: Importer) -> None:
    hostile = work(READ.replace('config="', 'config="x&#10;name: evil&#10;=1;'))
    found = imported(PREPARE, hostile, head='name="demo" description="a: [b&#10;seed: 1"')
    assert (found.suite.name, found.suite.seed, found.suite.about) == (
        "demo",
        2014,
        "a: [b seed: 1",
    )


def test_a_name_becomes_one_that_suites_may_have(imported: Importer) -> None:
    suite = imported(PREPARE, work(name="64 KB_Read"), head='name="Ärger &amp; Co_1.0"').suite
    assert (suite.name, suite.workloads[0].name, suite.about) == (
        "rger-co-1-0",
        "64-kb-read",
        "Imported from COSBench's w.xml",
    )


def test_what_no_suite_can_have_is_told_as_such(imported: Importer) -> None:
    with pytest.raises(UsageError, match=r"w\.xml: makes a suite that is none:\n"):
        imported(PREPARE, work(attributes='workers="70000" runtime="60"'))


def test_a_file_that_measures_nothing_is_refused(imported: Importer) -> None:
    with pytest.raises(DocumentError, match="nothing is measured"):
        imported(INIT, PREPARE)
    with pytest.raises(DocumentError, match="the workflow has no <workstage>"):
        imported()


def test_another_xml_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.xml"
    path.write_text("<Server/>")
    with pytest.raises(DocumentError, match=r"begins with <workload>, not <Server>"):
        importer.from_cosbench(path)


def test_the_yaml_says_nothing_that_the_suite_has_by_itself(imported: Importer) -> None:
    found = imported(PREPARE, work())
    assert Suite.model_validate(yaml.safe_load(found.text)) == found.suite
    assert "seed" not in found.text
    assert "verify" not in found.text
