"""Malformed answers and archives of COSBench's controller."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pytest
from pydantic import SecretStr

from tests.mutation import Dice, cases, tried, wrong_lines, wrong_text
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench import archive
from weighbridge.drivers.cosbench.archive import Archived, collect
from weighbridge.drivers.cosbench.controller import Controller, java_date
from weighbridge.drivers.cosbench.measurement import StepContext, bins, measurement_of, rows
from weighbridge.drivers.protocol import Step
from weighbridge.results.run.step import Measurement
from weighbridge.suites import Objects, Workload

HEAD: Final = (
    "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,"
    "90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,"
    "Detailed Status\n"
)
_STATUS: Final = "completed,waiting @ 2026-11-21 00:35:10\n"
SUMMARY: Final = (
    f"s1-init,init-write,init,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0,0,N/A,{_STATUS}"
    f"s3-main,read,read,5,327680,6.4,6.4,10,10,10,20,30,90,2.5,163840,94.66%,{_STATUS}"
    f"s3-main,write,write,4,262144,6.57,6.57,10,10,10,20,30,70,2,131072,100%,{_STATUS}"
)
HISTOGRAM: Final = """ResTime,s3-main-w1-main-read,(%),s3-main-w1-main-write,(%)
0~10,3,60%,3,75%
10~20,2,100%,1,100%
20~30,0,100%,0,100%
500000~+INF,0,100%,0,100%
"""
LOG: Final = (
    "==================== stage: s3-main ====================\n"
    "2026-11-21 00:36:10,216 [ERROR] [AbstractOperator] - worker 1 fail to perform operation "
    "e1/myobjects3\n"
    "com.intel.cosbench.api.storage.StorageException: error injection\n"
    "\tat com.intel.cosbench.driver.agent.AbstractAgent.call(AbstractAgent.java:44)\n"
    "2026-11-21 00:36:15,100 [WARN] [ErrorStatistics] - error code: 503 occurred 12 times, fail: "
    "read\n"
)
HISTORY: Final = (
    "Id,Name,Submitted-At,Started-At\nw33,mock,2026-11-21 00:35:10,2026-11-21 "
    "00:36:02,read,failed\n"
)
SYSTEM: Final = (
    "INFO begin to process workload w33\n[ERROR] - driver report error: no such "
    "container\nbegin to process workload w34\n"
)
STEP: Final = Step(
    workload=Workload(
        name="small",
        objects=Objects(size=65536),
        operations={"read": 50, "write": 50},
        workers=(2,),
        runtime=2.0,
        warmup=1.0,
    ),
    workers=2,
)
CONTEXT: Final = StepContext(
    api="swift", started_at="2026-11-21T00:40:00Z", load=None, started_by_us=False, drivers=2
)
FILES: Final = {
    "w33-mock.csv": HEAD + SUMMARY,
    "w33-mock-rt-histogram.csv": HISTOGRAM,
    "workload.log": LOG,
    "scripts.log": "",
}


class MalformedFolder:
    """An archive of one workload with one malformed file."""

    def __init__(self, dice: Dice) -> None:
        self.files = {f"w33-mock/{name}": text.encode() for name, text in FILES.items()}
        self.files |= {"run-history.csv": HISTORY.encode(), "../log/system.log": SYSTEM.encode()}
        name = dice.choice(
            (*self.files, "w33-mock/w33-mock.csv", "w33-mock/w33-mock-rt-histogram.csv")
        )
        text = self.files[name].decode()
        if name.endswith("mock.csv") and dice.random() < 0.7:
            self.files[name] = (HEAD + _cells(dice, SUMMARY)).encode(errors="surrogatepass")
        else:
            change = _cells if dice.random() < 0.4 else wrong_text
            self.files[name] = change(dice, text).encode(errors="surrogatepass")

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(
            name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")
        )

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        return self.files.get(path)

    def close(self) -> None: ...


def _cells(dice: Dice, text: str) -> str:
    spaced = text.replace(" ", "\1").replace(",", " ")
    return wrong_lines(dice, spaced).replace(" ", ",").replace("\1", " ")


@cases
def test_any_archive_gives_a_measurement_or_a_driver_error(dice: Dice) -> None:
    folder = MalformedFolder(dice)
    state = dice.choice(("FINISHED", "FINISHED", "FINISHED", "FAILED", "CANCELLED", "TERMINATED"))

    def read() -> Measurement:
        kept = collect(
            folder,
            "w33",
            "mock",
            datetime(2026, 11, 21, 0, 35, 10),  # noqa: DTZ001 - as its files
            state,
            lambda _: None,
        )
        return measurement_of(kept, "s3-main", STEP, CONTEXT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "WAIT_S", -1)
        found = tried(read, DriverError, saying="COSBench")
    if found is not None:
        assert Measurement.model_validate_json(found.model_dump_json()) == found


INDEX: Final = """Drivers:
driver1\thttp://127.0.0.1:18088/driver
Total: 1 drivers

Active Workloads:
w33\tSat Nov 21 00:36:02 UTC 2026\tPROCESSING\ts3-main
w34\tSat Nov 21 00:36:03 UTC 2026\tQUEUING\tNone
Total: 2 active workloads
"""
WORKLOAD: Final = "w33\tSat Nov 21 00:36:02 UTC 2026\tFINISHED\ts3-main\n"


@cases
def test_any_answer_of_a_controller_is_understood_or_a_driver_error(dice: Dice) -> None:
    controller = Controller(
        "http://127.0.0.1:19088/controller", "anonymous", SecretStr("cosbench").get_secret_value()
    )
    asked = dice.choice(("index", "workload", "submit"))
    answers = {"index": INDEX, "workload": WORKLOAD, "submit": "Accepted with ID: w33\n"}
    text = wrong_text(dice, answers[asked]).encode(errors="replace").decode()
    calls: dict[str, Any] = {
        "index": controller.index,
        "workload": lambda: controller.workload("w33"),
        "submit": lambda: controller.submit("<workload/>"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Controller, "_ask", lambda *_, **__: text)
        tried(calls[asked], DriverError, saying="COSBench")


def test_bins_out_of_order_or_with_negative_counts_are_a_driver_error() -> None:
    head = "ResTime,s3-main-w1-main-read,(%),s3-main-w1-main-write,(%)"
    for wrong in ("10~20,2,100%,1,100%\n0~10,3,60%,3,75%\n", "0~10,-3,60%,3,75%\n"):
        with pytest.raises(DriverError, match="histogram cannot be that of read of s3-main"):
            bins(f"{head}\n{wrong}500000~+INF,0,100%,0,100%\n", "s3-main", "read")


@pytest.mark.parametrize("cell", ["-5", "nan", "inf", "1" + "0" * 30])
def test_a_summary_with_impossible_figures_is_a_driver_error(cell: str) -> None:
    for column, changed in (("6.4,6.4", f"{cell},{cell}"), ("2.5", cell)):
        with pytest.raises(DriverError, match="row that cannot be read"):
            rows(HEAD + SUMMARY.replace(f",{column},", f",{changed},"))


def test_a_date_with_an_endless_year_is_a_driver_error() -> None:
    with pytest.raises(DriverError, match="an invalid date"):
        java_date(f"Sat Nov 21 00:36:02 UTC {'9' * 400}")


def test_a_share_of_successes_that_rounds_to_zero_is_an_error_not_a_division() -> None:
    files = {name: text.replace("94.66%", "0.005%").encode() for name, text in FILES.items()}
    archived = Archived("w33", "mock", "FINISHED", files, "")
    with pytest.raises(DriverError, match="but no share"):
        measurement_of(archived, "s3-main", STEP, CONTEXT)
