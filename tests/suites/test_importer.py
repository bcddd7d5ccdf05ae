import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.suites.conftest import INIT, MIX, PREPARE, READ, Importer, messages, workstage
from weighbridge.common.document import DocumentError
from weighbridge.suites import SizeBar, SizeHistogram, Uniform, importer_shapes
from weighbridge.suites.workload import VERIFIED_SHARE


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
def test_sizes_keep_their_distribution_in_decimal_units(
    imported: Importer, sizes: str, wanted: object
) -> None:
    assert imported.workload(PREPARE.replace("c(64)KB", sizes), workstage()).objects.size == wanted


@given(st.integers(1, 10**6), st.sampled_from(["B", "KB", "MB"]))
def test_no_size_is_rounded(number: int, unit: str) -> None:
    size, _ = importer_shapes.selector_sizes(f"c({number}){unit}")
    assert size == number * {"B": 1, "KB": 1000, "MB": 10**6}[unit]


def test_s3_is_compared_with_the_swift_layout_that_has_it(imported: Importer) -> None:
    storage = (
        '<storage type="s3" '
        'config="accesskey=K;secretkey=S;endpoint=http://h:8000;path_style_access=true"/>'
    )
    suite = imported(PREPARE, workstage(), storage=storage).suite
    assert (suite.api, suite.layouts) == (("s3",), ("rgw-beast", "swift-s3api"))


def test_the_innermost_storage_applies(imported: Importer) -> None:
    stage = workstage(READ).replace("\n<operation", '\n<storage type="s3"/><operation', 1)
    assert imported(PREPARE, stage, storage='<storage type="mock"/>').suite.api == ("s3",)


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
    assert imported.workload(PREPARE, workstage(READ.replace("u(", "s("))).pick == "sequential"


def test_hash_checks_of_reads_become_verification(imported: Importer) -> None:
    found = imported(PREPARE, workstage(READ.replace('config="', 'config="hashCheck=true;')))
    assert found.suite.workloads[0].verify == 1
    assert "hashCheck becomes verify" in messages(found)


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
