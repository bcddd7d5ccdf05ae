"""The parts of the driver, on what COSBench answered and archived."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

import weighbridge.drivers.cosbench.archive
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.access import StorageAccess, access, config
from weighbridge.drivers.cosbench.archive import Archived, LocalFolder, collect, folder_at
from weighbridge.drivers.cosbench.controller import Controller, Unanswered, java_date
from weighbridge.drivers.cosbench.ending import AskedToEnd, EndRequest
from weighbridge.drivers.cosbench.figures import bins, codes, log_of_stage, reasons, rows
from weighbridge.drivers.cosbench.fitness import unfit
from weighbridge.drivers.cosbench.from_archive import Circumstances, measured
from weighbridge.drivers.cosbench.script import Script, prepare_script, step_script
from weighbridge.drivers.cosbench.selectors import HISTOGRAM_WEIGHT, sizes
from weighbridge.drivers.cosbench.submission import Submission
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.order import Step
from weighbridge.results.record.measurement import Load
from weighbridge.suites import Api, Workload
from weighbridge.suites.workload import SizeBar, SizeHistogram, Uniform

sys.path.insert(0, str(Path(__file__).parent))
from recorded_controller import DATA, Recorded, Take, recorded, text_of

REACH = StorageAccess(
    "none",
    "",
    "swift",
    "token=AUTH_tk1;storage_url=http://10.0.0.2:8080/v1/AUTH_a;logging=false",
    ("AUTH_tk1",),
)
AROUND = Circumstances(
    api="swift", started_at="2026-11-21T00:40:00Z", load=None, started_by_us=True, drivers=1
)


def change(workload: Workload, **more: Any) -> Workload:
    return Workload.model_validate({**workload.model_dump(), **more})


def archived(folder: str, state: str) -> Archived:
    """A recording as it stands."""
    number, _, name = Path(folder).name.partition("-")
    texts = {
        f"{number}-{name}.csv": recorded(folder),
        f"{number}-{name}-rt-histogram.csv": recorded(folder, "-rt-histogram") or "ResTime\n",
        "workload.log": recorded(folder, "log"),
    }
    _, _, log = text_of(DATA / Path(folder).parent / "system.log").rpartition(
        f"begin to process workload {number}\n"
    )
    return Archived(
        number,
        name,
        state,
        {name: text.encode() for name, text in texts.items()},
        log.partition("begin to process")[0],
    )


def operations(script: Script) -> dict[str, dict[str, str]]:
    return {
        operation.get("type", ""): dict(
            part.split("=", 1) for part in operation.get("config", "").split(";")
        )
        for operation in ET.fromstring(script.text).iter("operation")
    }


# ---- what COSBench cannot do


@pytest.mark.parametrize(
    ("change_it", "api", "said"),
    [
        ({"operations": {"head": 1}}, "swift", "COSBench has no head"),
        ({"operations": {"list": 1}}, "s3", "list does nothing over s3"),
        (
            {"operations": {"read": 2, "write": 1}},
            "swift",
            "whole per cent, and these are read 66.67 %, write 33.33 %",
        ),
        ({"operations": {"read": 1, "delete": 1}}, "swift", "reads beside deletes"),
        ({"operations": {"delete": 1}}, "swift", "choose counts without a common divisor"),
        ({"pick": "sequential"}, "swift", "choose counts without a common divisor"),
        ({"pick": {"zipf": 1.1}}, "swift", "not by popularity"),
        ({"rate_per_s": 5}, "swift", "not at a rate"),
        ({"verify": True}, "swift", "is not compared"),
        ({"runtime": 1.5}, "swift", "in whole seconds, not 1.5"),
        ({"warmup": 0.5}, "swift", "in whole seconds, not 0.5"),
        ({"objects": {"size": 3 * 2**30 + 1}}, "swift", "more than COSBench can number"),
        ({"objects": {"size": {"uniform": (1, 2**31)}}}, "swift", "2 GiB at most"),
        ({"objects": {"size": {"uniform": (0, 5)}}}, "swift", "from 1 byte"),
    ],
)
def test_what_cosbench_cannot_express_is_said_in_words(
    change_it: dict[str, Any], api: Api, said: str, mixed: Workload
) -> None:
    assert unfit(mixed, api) == unfit(mixed, "s3") == ()
    assert any(said in one for one in unfit(change(mixed, **change_it), api))


def test_below_gateways_cosbench_asks_nothing(mixed: Workload) -> None:
    assert any("swift or s3, not rados" in one for one in unfit(mixed, "rados"))


def test_sequential_reads_deletes_and_lists_are_done_where_cosbench_can(mixed: Workload) -> None:
    odd = {"size": 1000, "containers": 2, "per_container": 51}
    assert unfit(change(mixed, pick="sequential", objects=odd), "s3") == ()
    assert unfit(change(mixed, operations={"delete": 1}, objects=odd), "s3") == ()
    assert unfit(change(mixed, operations={"list": 1}), "swift") == ()


# ---- what it is given


@pytest.mark.parametrize(
    ("size", "selector"),
    [
        (65536, "c(65536)B"),
        (64000, "c(64000)B"),
        (5 * 10**9, "c(5000000)KB"),
        (Uniform(uniform=(1, 2000)), "u(1,2000)B"),
    ],
)
def test_sizes_are_in_bytes_wherever_they_can_be(size: Any, selector: str) -> None:
    assert sizes(size) == selector


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8))
def test_bars_of_a_histogram_come_to_their_shares_although_cosbench_is_one_off(
    weights: list[int],
) -> None:
    bars = tuple(
        SizeBar(size=(1000 * number, 1000 * number + 9), weight=weight)
        for number, weight in enumerate(weights, 1)
    )
    text = sizes(SizeHistogram(histogram=bars)).removeprefix("h(").removesuffix(")B")
    given_weights = [int(bar.split("|")[2]) for bar in text.split(",")]
    for weight, said in zip(weights, given_weights, strict=True):
        assert abs((said + 1) / HISTOGRAM_WEIGHT - weight / sum(weights)) < 0.00001


def test_a_step_is_one_stage_whose_writes_overwrite_nothing_that_is_read(mixed: Workload) -> None:
    script = step_script("n", mixed, "wb-mixed-", REACH, 7, "written-1-")
    root = ET.fromstring(script.text)
    (work,) = root.iter("work")
    assert script.stages == ("s1-main",)
    assert {name: work.get(name) for name in ("workers", "runtime", "rampup", "interval", "type")} == {
        "workers": "7", "runtime": "12", "rampup": "2", "interval": "1", "type": "normal",
    }  # fmt: skip
    assert [operation.get("ratio") for operation in root.iter("operation")] == ["80", "20"]
    found = operations(script)
    assert found["read"] == {
        "cprefix": "wb-mixed-",
        "containers": "u(1,2)",
        "oprefix": "object-",
        "objects": "u(1,50)",
    }
    assert (found["write"]["oprefix"], found["write"]["objects"][:4], found["write"]["sizes"]) == (
        "written-1-",
        "s(1,",
        "c(64000)B",
    )


def test_lists_take_containers_in_turn_since_workers_would_die_of_sharing_too_few_out(
    mixed: Workload,
) -> None:
    script = step_script("n", change(mixed, operations={"list": 1}), "wb-", REACH, 64, "w")
    assert operations(script)["list"] == {"cprefix": "wb-", "containers": "s(1,2)"}


def test_preparing_makes_containers_and_only_what_is_needed_of_objects(mixed: Workload) -> None:
    reads = prepare_script("n", mixed, "wb-", REACH, 500)
    assert reads.stages == ("s1-init", "s2-prepare")
    assert [work.get("workers") for work in ET.fromstring(reads.text).iter("work")] == ["1", "100"]
    assert prepare_script("n", change(mixed, operations={"write": 1}), "wb-", REACH, 8).stages == (
        "s1-init",
    )


def test_a_secret_is_escaped_for_xml_and_redacted_however_it_is_written(mixed: Workload) -> None:
    key = 'k&<"=/+y'
    target = Endpoint(api="s3", url="http://10.0.0.2:8000", user="AK", key=SecretStr(key))
    reach = access(target, Account(target, 5.0), "token", 5.0)
    script = step_script("n", mixed, "wb-", reach, 1, "w")
    storage = ET.fromstring(script.text).find("storage")
    assert storage is not None
    parts = dict(part.split("=", 1) for part in storage.get("config", "").split(";"))
    assert parts == {
        "accesskey": "AK", "secretkey": key, "endpoint": "http://10.0.0.2:8000", "path_style_access": "true", "timeout": "5000",
        "logging": "false",
    }  # fmt: skip
    hidden = reach.redacted(script.text + key)
    assert "k&" not in hidden
    assert "AK;" not in hidden
    assert ET.fromstring(reach.redacted(script.text)) is not None


def test_swauth_is_given_user_and_auth_url_and_asks_for_its_token_itself() -> None:
    target = Endpoint(
        api="swift", url="http://10.0.0.2:8080/auth/v1.0", user="test:tester", key=SecretStr("k")
    )
    reach = access(target, Account(target, 5.0), "swauth", 5.0)
    assert (reach.auth, reach.storage) == ("swauth", "swift")
    assert (
        "username=test:tester;password=k;auth_url=http://10.0.0.2:8080/auth/v1.0"
        in reach.auth_config
    )
    assert "logging=false" in reach.storage_config
    with pytest.raises(DriverError, match="not to a storage URL of one's own"):
        access(
            target.model_copy(update={"storage_url": "http://a/v1/x"}),
            Account(target, 5.0),
            "swauth",
            5.0,
        )


def test_what_cosbench_cannot_carry_to_a_target_is_refused() -> None:
    with pytest.raises(DriverError, match="secretkey: its value has a semicolon"):
        config({"secretkey": "a;b"})
    target = Endpoint(
        api="s3", url="http://10.0.0.2", user="AK", key=SecretStr("k"), token=SecretStr("t")
    )
    with pytest.raises(DriverError, match="no session token"):
        access(target, Account(target, 5.0), "token", 5.0)
    target = Endpoint(
        api="s3", url="https://10.0.0.2", user="AK", key=SecretStr("k"), ca_file="/ca.pem"
    )
    with pytest.raises(DriverError, match="trusts the authorities of its Java"):
        access(target, cast("Account", None), "token", 5.0)


# ---- its controller


def test_only_an_accepted_id_is_a_submission(controller: Recorded) -> None:
    asked = Controller(controller.url, "anonymous", "cosbench")
    assert asked.submit("<workload name='n'><workflow/></workload>") == "w1"
    answers = (DATA / "http" / "submit-errors.txt").read_text().split("\n\n")
    refusals = [
        answer.strip().splitlines()[0]
        for answer in answers
        if answer.startswith(("cannot parse", "Internal Error"))
    ]
    assert len(refusals) >= 3
    for refusal in [*refusals, "Bad Request", "Accepted", "op ratio should sum to 100"]:
        controller.refusal = refusal
        with pytest.raises(DriverError, match="COSBench refused the workload"):
            asked.submit("<workload/>")


def test_credentials_are_in_the_query_and_their_refusals_are_told_apart(
    controller: Recorded,
) -> None:
    controller.users = {"bench": "s3 cret&"}
    asked = Controller(controller.url, "bench", "s3 cret&")
    assert asked.index().drivers == {"driver1": "http://127.0.0.1:18088/driver"}
    assert asked.submit("<workload name='n'><workflow/></workload>") == "w1"
    with pytest.raises(DriverError, match="does not let user 'bench' in: User info") as error:
        Controller(controller.url, "bench", "wrong").index()
    assert "wrong" not in str(error.value)
    controller.users = {}
    controller.refusal = "\n"
    with pytest.raises(DriverError, match="an empty answer, which is how COSBench refuses user"):
        asked.submit("<workload/>")


def test_a_running_workload_is_found_in_the_recorded_index(monkeypatch: pytest.MonkeyPatch) -> None:
    body = (DATA / "http" / "index-running.txt").read_text().partition("\n\n")[2]
    controller = Controller("http://127.0.0.1:1/controller", "u", "p")
    monkeypatch.setattr(Controller, "_ask", lambda *_args: body)
    index = controller.index()
    assert index.drivers == {"driver1": "http://127.0.0.1:18088/driver"}
    (seen,) = index.active
    assert (seen.id, seen.state, seen.stage, seen.submitted) == (
        "w1",
        "PROCESSING",
        "s1-init",
        datetime.fromisoformat("2026-11-21T00:21:13"),
    )
    assert java_date("Sat Nov 01 00:21:13 CEST 2026").day == 1
    with pytest.raises(Unanswered):
        java_date("today")


def test_a_workload_that_never_ends_is_cancelled_at_its_deadline_with_its_drivers_named(
    controller: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.step = Take("jdk8/w36-cancel-me", ["s2-main-b"], "FINISHED", looks=-1)
    monkeypatch.setattr("weighbridge.drivers.cosbench.submission.STAGE_S", 0.0)
    monkeypatch.setattr("weighbridge.drivers.cosbench.submission.MARGIN_S", 0.1)
    errand = Submission(
        Controller(controller.url, "u", "p"), LocalFolder(str(controller.archive)), EndRequest()
    )
    script = Script(
        "n",
        "<workload name='n'><workflow><workstage name='main'/></workflow></workload>",
        ("s1-main",),
    )
    with pytest.raises(DriverError, match="has not ended w1-n within 0 s") as error:
        errand.run(script, 0.0, lambda _stage: None)
    assert "driver1 at http://127.0.0.1:18088/driver" in error.value.advice
    assert controller.cancelled == ["w1"]


def test_a_controller_that_is_silent_for_long_is_given_up(
    controller: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Controller(controller.url, "u", "p")
    monkeypatch.setattr("weighbridge.drivers.cosbench.submission.SILENCE_S", 0.1)
    monkeypatch.setattr(Controller, "index", _unanswered)
    script = Script("n", "<workload name='n'><workflow/></workload>", ())
    with pytest.raises(Unanswered, match="gone"):
        Submission(asked, LocalFolder(str(controller.archive)), EndRequest()).run(
            script, 0.0, lambda _stage: None
        )
    assert controller.cancelled == ["w1"]


def _unanswered(_self: object) -> None:
    raise Unanswered("gone")


def test_waiting_ends_as_soon_as_the_end_is_asked_for() -> None:
    ending = EndRequest()
    ending.check()
    ending.ask(5)
    ending.ask(6)
    with pytest.raises(AskedToEnd):
        ending.wait(1000)
    assert ending.code == 5


# ---- its archive


def _nothing(_seconds: float) -> None:
    """Pass no time."""


def test_only_regular_files_of_an_archive_are_read_and_no_more_than_a_bound_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("what only this user may read")
    archive = tmp_path / "archive"
    (archive / "w1-n" / "folder").mkdir(parents=True)
    (archive / "w1-n" / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(archive / "w1-n" / "pipe")
    (archive / "w1-n" / "scripts.log").write_text("x" * 100)
    (archive / "run-history.csv").write_text("w1,n,2026-11-21 00:00:00,x\n")
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "LARGEST_FILE_BYTES", 60)
    folder = LocalFolder(str(archive))
    when = datetime.fromisoformat("2026-11-21 00:00:00")
    assert collect(folder, "w1", "n", when, "FINISHED", _nothing).files == {
        "scripts.log": b"x" * 60
    }
    for number in range(100):
        (archive / "w1-n" / f"more-{number}").touch()
    with pytest.raises(DriverError, match="has 104 files"):
        collect(folder, "w1", "n", when, "FINISHED", _nothing)


def test_the_folder_of_a_workload_is_not_read_through_a_link_nor_by_an_id_that_leads_elsewhere(
    tmp_path: Path,
) -> None:
    (tmp_path / "home" / "folder").mkdir(parents=True)
    (tmp_path / "home" / "folder" / "scripts.log").write_text("what only this user may read")
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "w1-n").symlink_to(tmp_path / "home" / "folder")
    folder = LocalFolder(str(archive))
    with pytest.raises(DriverError, match="w1-n: is a link, which is not followed"):
        folder.names("w1-n")
    assert folder.read("w1-n/scripts.log") is None
    with pytest.raises(DriverError, match="is no plain path"):
        folder.names("w1/../../home/folder")
    assert folder.read("w1/../../home/folder/scripts.log") is None


def test_the_logs_of_a_controller_are_read_where_who_set_it_up_has_them(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "system.log").write_text("begin to process workload w1\nends\n")
    (tmp_path / "cosbench" / "archive").mkdir(parents=True)
    (tmp_path / "cosbench" / "log").symlink_to(tmp_path / "logs")
    assert (
        LocalFolder(str(tmp_path / "cosbench" / "archive")).read("../log/system.log", last_bytes=5)
        == b"ends\n"
    )


def test_an_archive_is_known_by_id_name_and_submission_and_taken_when_its_last_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """w18 was handed out twice: cancelled while it waited, and again after the controller was
    started anew.
    """
    history = (DATA / "jdk8" / "run-history.csv").read_text()
    assert len([line for line in history.splitlines() if line.startswith("w18,")]) == 2
    (tmp_path / "run-history.csv").write_text(history)
    (tmp_path / "w18-tiny").mkdir()
    (tmp_path / "w18-tiny" / "w18-tiny.csv").write_text("figures")
    wrong = datetime.fromisoformat("2026-11-21 00:24:50")
    (line,) = [line for line in history.splitlines() if line.startswith("w18,tiny,")]
    right = datetime.fromisoformat(line.split(",")[2])
    folder = LocalFolder(str(tmp_path))
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "WAIT_S", 0.0)
    with pytest.raises(DriverError, match="its archive has not come"):
        collect(folder, "w18", "tiny", right, "FINISHED", _nothing)
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "WAIT_S", 60.0)

    def last(_seconds: float) -> None:
        (tmp_path / "w18-tiny" / "scripts.log").touch()

    assert collect(folder, "w18", "tiny", right, "FINISHED", last).summary == "figures"
    monkeypatch.setattr(weighbridge.drivers.cosbench.archive, "WAIT_S", 0.0)
    with pytest.raises(DriverError, match="its archive has not come"):
        collect(folder, "w18", "tiny", wrong, "FINISHED", _nothing)


def test_an_archive_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match="there is no such folder where the driver runs"):
        folder_at(str(tmp_path / "none"))


@pytest.mark.parametrize(
    "folder", sorted(path.relative_to(DATA).as_posix() for path in DATA.glob("*/w*"))
)
def test_every_recorded_summary_is_read_whole(folder: str) -> None:
    found = rows(recorded(folder))
    assert found
    for row in found:
        assert row.status in {"completed", "failed", "terminated", "cancelled", "aborted"}
        assert (row.operation is None) == (row.count is None)


def test_what_is_not_applicable_is_nothing_and_never_nought() -> None:
    init, prepare, *_ = rows(recorded("jdk8/w35-mock-stepped"))
    assert (init.count, init.mean_ms, init.success) == (0, None, None)
    assert (prepare.operation, prepare.count, prepare.mean_ms, prepare.success) == (
        "prepare-write",
        100,
        10.23,
        1.0,
    )
    (hung,) = rows(recorded("jdk8/w42-hang-long"))
    assert (hung.count, hung.throughput_per_s) == (None, None)


def test_a_summary_in_another_language_or_form_is_refused() -> None:
    head, row = recorded("jdk8/w35-mock-stepped").splitlines()[:2]
    with pytest.raises(DriverError, match="Its JVM must write numbers in English"):
        rows(f"{head}\n{row.replace('N/A', '10,5')}")
    with pytest.raises(DriverError, match="begins in another way"):
        rows("<html>")
    with pytest.raises(DriverError, match="begins in another way"):
        rows("")


def test_bins_hold_as_many_as_the_summary_counts_in_every_recorded_stage() -> None:
    for folder in ("jdk8/w33-mock-errors", "jdk8/w35-mock-stepped"):
        histogram = recorded(folder, "-rt-histogram")
        for row in rows(recorded(folder)):
            found = bins(histogram, row.stage, row.operation or "")
            if row.operation in ("read", "write", "delete"):
                assert found is not None
                assert (found.count, found.width_us, found.beyond_us) == (
                    row.count,
                    10_000,
                    500_000_000,
                )
            else:
                assert found is None


def test_a_histogram_that_is_cut_off_is_refused() -> None:
    histogram = recorded("jdk8/w35-mock-stepped", "-rt-histogram")
    with pytest.raises(DriverError, match="its last row is missing"):
        bins(histogram[: len(histogram) // 2].rpartition("\n")[0], "s3-main-w1", "read")
    assert bins("ResTime\n0~10\n", "s1-main", "read") is None


def test_codes_are_of_their_stage_and_reasons_are_of_their_workload() -> None:
    log = recorded("jdk8/w33-mock-errors", "log")
    assert codes(log_of_stage(log, "s3-main-ok")) == {"N/A": 103}
    assert codes(log_of_stage(log, "s1-init")) == {}
    unknown = archived("jdk8/w39-unknown-storage", "TERMINATED")
    assert reasons(unknown.system_log, unknown.log) == (
        "HTTP 400 - unrecognized storage type: nosuch",
    )
    assert "refused" in " ".join(reasons("", recorded("jdk8/w38-allfail", "log")))


# ---- its measurement


def test_failures_are_counted_from_the_share_and_never_more_exactly_than_it_tells(
    mixed: Workload,
) -> None:
    step = Step(workload=change(mixed, runtime=6.0), workers=2)
    measurement = measured(archived("jdk8/w33-mock-errors", "FAILED"), "s3-main-ok", step, AROUND)
    read, write = measurement.tallies
    assert (read.count, read.errors, write.count, write.errors) == (
        1010,
        {"untold": 57},
        546,
        {"untold": 29},
    )
    assert not any(" between " in note for note in measurement.notes)
    many = recorded("jdk8/w33-mock-errors").replace("1010,64640000", "101000,64640000")
    whole = archived("jdk8/w33-mock-errors", "FAILED")
    histogram = whole.histogram.replace("\n0~10,", "\n0~10,", 1)
    head, first, rest = histogram.split("\n", 2)
    fields = first.split(",")
    fields[1] = str(int(fields[1]) + 101000 - 1010)
    files = {
        **whole.files,
        "w33-mock-errors.csv": many.encode(),
        "w33-mock-errors-rt-histogram.csv": "\n".join((head, ",".join(fields), rest)).encode(),
    }
    notes = measured(
        Archived(whole.id, whole.name, whole.state, files, ""), "s3-main-ok", step, AROUND
    ).notes
    assert any("read: between 5692 and 5703 failed" in note for note in notes)


@pytest.mark.parametrize(
    ("folder", "stage", "state", "said"),
    [
        (
            "jdk8/w36-cancel-me",
            "s2-main-b",
            "CANCELLED",
            "ended as CANCELLED: somebody cancelled it",
        ),
        ("jdk8/w37-allfail-main", "s1-m", "FAILED", "Connection to http://127.0.0.1:7999 refused"),
        ("jdk8/w40-swift-token", "s2-main", "TERMINATED", "ended as TERMINATED"),
        ("jdk8/w42-hang-long", "s1-m", "FINISHED", "read of stage s1-m has no figures"),
        ("jdk8/w43-swift-fail-404", "s1-m", "FAILED", "write of stage s1-m succeeded not once"),
        ("jdk17/w7-driver-down", "s1-a", "TERMINATED", "see log/system.log of its controller"),
        ("jdk8/w35-mock-stepped", "s9-none", "FINISHED", "read of stage s9-none has no figures"),
    ],
)
def test_figures_of_a_workload_that_did_not_end_well_are_not_used(
    folder: str, stage: str, state: str, said: str, mixed: Workload
) -> None:
    with pytest.raises(DriverError) as error:
        measured(archived(folder, state), stage, Step(workload=mixed, workers=2), AROUND)
    assert said in error.value.message


def test_a_histogram_of_another_count_than_the_summary_is_not_used(mixed: Workload) -> None:
    whole = archived("jdk8/w35-mock-stepped", "FINISHED")
    summary = whole.summary.replace("1694,1694000", "1695,1694000").encode()
    torn = Archived(
        whole.id, whole.name, whole.state, {**whole.files, "w35-mock-stepped.csv": summary}, ""
    )
    with pytest.raises(DriverError, match="the histogram has 1694 of 1695 response times"):
        measured(torn, "s4-main-w2", Step(workload=mixed, workers=2), AROUND)


def test_what_cosbench_does_in_its_own_way_is_told_beside_the_figures(mixed: Workload) -> None:
    whole = archived("jdk8/w35-mock-stepped", "FINISHED")
    load = Load(cpu_s=1.0, cpu_limit=2.0, window_s=12.0)
    around = Circumstances(
        api="swift", started_at="2026-11-21T00:40:00Z", load=load, started_by_us=True, drivers=2
    )
    ours = measured(whole, "s4-main-w2", Step(workload=mixed, workers=2), around)
    assert ours.load == load
    assert not any("date -s" in note for note in ours.notes)
    assert any("about 1 ms for COSBench's own check" in note for note in ours.notes)
    assert any("2 COSBench drivers number what they write alike" in note for note in ours.notes)
    assert not any("by the time its workers were at work" in note for note in ours.notes)
    longer = measured(
        whole, "s4-main-w2", Step(workload=change(mixed, runtime=20.0), workers=2), AROUND
    )
    assert any("COSBench itself says 141.27 op/s" in note for note in longer.notes)


def test_an_archive_on_another_host_needs_a_place_that_says_where() -> None:
    make: Callable[[str], object] = folder_at
    with pytest.raises(DriverError, match=r"not of the form ssh://USER@HOST\[:PORT\]/PATH"):
        make("ssh://host")


def test_words_of_a_library_about_the_request_do_not_show_the_password_that_cosbench_wants_in_it() -> (
    None
):
    controller = Controller("http://127.0.0.1:9/controller\x7f", "bench", "planted password/&")
    with pytest.raises(Unanswered, match="can't contain control characters") as error:
        controller.index()
    assert "planted" not in str(error.value)
