"""The driver as a process, with a null target and COSBench's recorded controller."""

from __future__ import annotations

import base64
import gzip
import signal
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from tests.drivers.cosbench.conftest import KEY, Trial, change
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.site import CosbenchSite
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import (
    AgeBuckets,
    Cleanup,
    DriverFailure,
    KeptFile,
    Progress,
    Step,
)
from weighbridge.results.figures.validity import judge
from weighbridge.suites import Bounds

sys.path.insert(0, str(Path(__file__).parent))
from recorded_controller import UNKNOWN_STORAGE, Take

pytestmark = pytest.mark.long  # starts programs in every test


def text(kept: KeptFile) -> str:
    return (
        kept.text
        if kept.packed is None
        else gzip.decompress(base64.b64decode(kept.packed)).decode()
    )


def test_a_step_is_prepared_measured_kept_and_cleaned_up(program_trial: Trial) -> None:
    driver, store, mixed = program_trial.driver, program_trial.store, program_trial.mixed
    heard: list[Progress] = []
    ready = driver.setup(program_trial.make())
    assert ready.versions["cosbench drivers"] == "driver1 http://127.0.0.1:18088/driver"
    prepared = program_trial.prepare(mixed, heard.append)
    assert (prepared.objects, prepared.bytes) == (100, 6_400_000)
    measurement = program_trial.step(mixed, heard.append).measurement
    figures = (measurement.driver, measurement.api, measurement.workers, measurement.window_s)
    assert figures == ("cosbench", "swift", 2, 12.0)
    read, write = measurement.tallies
    assert (read.operation, read.count, read.bytes) == ("read", 1694, 1_694_000)
    assert (write.operation, write.count) == ("write", 424)
    assert read.bins is not None
    assert (read.bins.width_us, read.bins.count, read.bins.counts[0]) == (10_000, 1694, (1, 1642))
    assert (read.latency, read.min_us, read.max_us) == (None, None, None)
    assert read.sum_us == round(10.95 * 1694 * 1000)
    assert measurement.load is None
    assert any("date -s" in note for note in measurement.notes)
    assert judge(measurement, Bounds()).valid
    assert {"prepare", "warm-up"} <= {one.phase for one in heard}
    store.put("wb-test-mixed-1", "object-1", "written-1")
    store.put("wb-test-mixed-2", "object-1")
    assert driver.cleanup(Cleanup(workload=mixed, what="written")).deleted == 1
    assert store.names() == [
        name
        for bucket in ("wb-test-mixed-1/", "wb-test-mixed-2/")
        for name in (bucket, f"{bucket}object-1")
    ]
    assert driver.cleanup(Cleanup(workload=mixed, what="all")).deleted == 2
    assert store.names() == []
    driver.quit()


@pytest.mark.test_all
def test_kept_files_and_logs_contain_no_secret(program_trial: Trial, tmp_path: Path) -> None:
    program_trial.driver.setup(
        program_trial.make(user="bench", password=SecretStr("console-secret"))
    )
    kept = [*program_trial.prepare().kept, *program_trial.step().kept]
    submitted = list(program_trial.controller.workloads.values())[-1]
    storage = ET.fromstring(submitted.text).find("storage")
    assert storage is not None
    token = storage.get("config", "").partition("token=")[2].partition(";")[0]
    assert token
    names = {one.name for one in kept}
    assert {"workload.xml", f"w2-{submitted.name}.csv"} <= names
    assert any(name.endswith("-rt-histogram.csv.gz") for name in names)
    everything = "".join(text(one) for one in kept) + (tmp_path / "driver.log").read_text()
    assert "storage_url=http" in everything
    for secret in (token, KEY, "console-secret"):
        assert secret not in everything


def test_each_step_writes_under_new_names_and_each_workload_has_a_new_token(trial: Trial) -> None:
    trial.begin()
    for _ in range(2):
        trial.step()
    _, *steps = [ET.fromstring(one.text) for one in trial.controller.workloads.values()]
    configs = [
        operation.get("config", "") for root in steps for operation in root.iter("operation")
    ]
    prefixes = [config.partition("oprefix=")[2].partition(";")[0] for config in configs]
    assert prefixes[0] == prefixes[2] == "object-"
    assert len(set(prefixes)) == 3
    assert len({one.name for one in trial.controller.workloads.values()}) == 3


def test_prepared_objects_are_not_prepared_again_until_a_step_deletes_some(trial: Trial) -> None:
    trial.driver.setup(trial.make())
    assert trial.prepare().kept
    again = trial.prepare()
    assert (again.objects, again.kept, len(trial.controller.workloads)) == (100, (), 1)


def test_a_failed_workload_with_figures_is_a_measurement_with_errors(trial: Trial) -> None:
    trial.controller.step = Take("jdk8/w33-mock-errors", ["s4-main-strict"], "FAILED")
    reads = change(trial.mixed, operations={"read": 1}, name="reads")
    trial.begin(reads)
    measurement = trial.step(reads).measurement
    (tally,) = measurement.tallies
    assert (tally.count, tally.errors) == (1992, {"untold": 89})
    assert any("failures with no status 90 times" in note for note in measurement.notes)
    assert not judge(measurement, Bounds()).valid


@pytest.mark.parametrize(
    ("take", "reason"),
    [
        (UNKNOWN_STORAGE, "ended as TERMINATED: HTTP 400 - unrecognized storage type: nosuch"),
        (
            Take("jdk17/w2-s3-moto", ["s3-main"], "FINISHED"),
            "check that its drivers' JVM has its storage's libraries",
        ),
    ],
)
def test_a_workload_without_credible_figures_fails_with_its_reason_and_its_files(
    take: Take, reason: str, trial: Trial
) -> None:
    trial.controller.step = take
    trial.begin()
    with pytest.raises(DriverFailure) as error:
        trial.step()
    assert reason in error.value.message
    assert "workload.xml" in {one.name for one in error.value.kept}
    assert any(one.name.endswith(".csv") for one in error.value.kept)
    assert trial.driver.process.wait(10) == 3


@pytest.mark.parametrize(
    ("take", "reason"),
    [
        (
            Take("jdk8/w33-mock-errors", ["s1-init", "s2-prepare"], "FAILED"),
            "COSBench wrote 97 of 100 objects of mixed",
        ),
        (Take("jdk8/w38-allfail", ["s1-init", "s2-m"], "TERMINATED"), "HTTP 200 - launch failed; "),
    ],
)
def test_missing_objects_fail_the_preparation(take: Take, reason: str, trial: Trial) -> None:
    trial.controller.prepare = take
    with pytest.raises(DriverFailure) as error:
        trial.begin()
    assert reason in error.value.message
    assert error.value.kept


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_a_driver_that_is_ended_during_a_step_cancels_its_workload_first(
    end: str, program_trial: Trial
) -> None:
    controller, driver = program_trial.controller, program_trial.driver
    program_trial.begin()
    controller.step = Take("jdk8/w36-cancel-me", ["s2-main-b"], "FINISHED", looks=-1)
    controller.asked.clear()
    driver._send(Step(workload=program_trial.mixed, workers=2))
    assert controller.asked.wait(20)
    assert controller.cancelled == []
    if end == "stdin":
        assert driver.process.stdin is not None
        driver.process.stdin.close()
    else:
        driver.process.send_signal(signal.SIGTERM)
    assert driver.process.wait(20) == (0 if end == "stdin" else 128 + signal.SIGTERM)
    assert controller.cancelled == ["w2"]


def test_a_controller_that_forgets_its_workloads_has_been_restarted(trial: Trial) -> None:
    trial.begin()
    trial.controller.forgets = True
    with pytest.raises(DriverFailure, match="no longer knows w2: it was restarted"):
        trial.step()


def test_deletes_are_checked_against_listings(trial: Trial) -> None:
    # It has 176 deletes.
    trial.controller.step = Take("jdk8/w33-mock-errors", ["s3-main-ok"], "FINISHED")
    trial.controller.prepare = Take("real/w9-prep-r64k", ["s1-init", "s2-prepare"], "FINISHED")
    objects = {"size": 64000, "containers": 1, "per_container": 200}
    deletes = change(trial.mixed, name="deletes", operations={"delete": 1}, objects=objects)
    left = [f"object-{number}" for number in range(1, 21)]
    trial.begin(deletes)
    trial.store.put("wb-test-deletes-1", *left)
    assert trial.step(deletes).measurement.tallies[0].count == 176
    trial.prepare(deletes)
    trial.store.delete("wb-test-deletes-1", *left)
    with pytest.raises(DriverFailure, match="200 objects of deletes were deleted before the end"):
        trial.step(deletes)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"refusal": "op ratio should sum to 100"}, "refused the workload: op ratio should sum"),
        ({"users": {"bench": "s3cret"}}, "COSBench refuses user 'anonymous'"),
        ({"drivers": ""}, "COSBench's controller has no drivers"),
    ],
)
def test_a_refusal_of_the_controller_is_reported_with_its_reason(
    broken: dict[str, Any], reason: str, trial: Trial
) -> None:
    for name, value in broken.items():
        setattr(trial.controller, name, value)
    with pytest.raises(DriverError, match=reason):
        trial.begin()


@pytest.mark.parametrize(
    ("url", "reason", "advice"),
    [
        (
            "http://127.0.0.1:9/controller",
            "does not answer: Connection refused",
            "that the client host can reach it",
        ),
        ("{store}/controller", "not by COSBench's controller", "http://HOST:19088/controller"),
    ],
)
def test_an_unreachable_or_wrong_controller_is_named_with_advice(
    url: str, reason: str, advice: str, trial: Trial
) -> None:
    place = url.format(store=trial.store.url)
    site = CosbenchSite(controller=place, archive=str(trial.controller.archive))
    with pytest.raises(DriverError, match=reason) as error:
        trial.driver.setup(trial.make().model_copy(update={"site": site}))
    assert advice in str(error.value)


def test_a_gateway_that_refuses_the_user_fails_before_anything_is_submitted(trial: Trial) -> None:
    url = f"{trial.store.url}/auth/v1.0"
    target = Endpoint(api="swift", url=url, user="ben:ch", key=SecretStr("wrong"))
    with pytest.raises(DriverError, match="no token for user"):
        trial.driver.setup(trial.make(target=target))
    assert not trial.controller.workloads


def test_an_invalid_command_is_answered_and_ends_the_driver(driver: DriverProcess) -> None:
    assert driver.process.stdin is not None
    driver.process.stdin.write(b'{"kind": "nonsense", "key": "planted"}\n')
    driver.process.stdin.flush()
    event = driver._lines.next(30)
    assert b"the line is not a valid command" in event
    assert b"planted" not in event
    assert driver.process.wait(10) == 3


def test_cosbench_does_not_age_a_store(trial: Trial) -> None:
    trial.driver.setup(trial.make())
    aged = {"objects": 5, "age": {"fill": 0.1, "size": 4096}}
    with pytest.raises(DriverError, match="COSBench cannot age a store"):
        trial.driver.age(AgeBuckets.model_validate(aged))
