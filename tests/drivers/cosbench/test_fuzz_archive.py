"""What COSBench's controller answers and archives, made wrong on purpose."""

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
from weighbridge.drivers.cosbench.figures import bins, rows
from weighbridge.drivers.cosbench.from_archive import Circumstances, measured
from weighbridge.drivers.order import Step
from weighbridge.results.record.measurement import Measurement
from weighbridge.suites import Objects, Workload

HEAD: Final = (
    "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,"
    "99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status\n"
)
SUMMARY: Final = """s1-init,init-write,init,0,0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0,0,N/A,completed,waiting @ 2026-11-21 00:35:10
s3-main,read,read,5,327680,6.4,6.4,10,10,10,20,30,90,2.5,163840,94.66%,completed,waiting @ 2026-11-21 00:35:10
s3-main,write,write,4,262144,6.57,6.57,10,10,10,20,30,70,2,131072,100%,completed,waiting @ 2026-11-21 00:35:10
"""
HISTOGRAM: Final = """ResTime,s3-main-w1-main-read,(%),s3-main-w1-main-write,(%)
0~10,3,60%,3,75%
10~20,2,100%,1,100%
20~30,0,100%,0,100%
500000~+INF,0,100%,0,100%
"""
LOG: Final = """==================== stage: s3-main ====================
2026-11-21 00:36:10,216 [ERROR] [AbstractOperator] - worker 1 fail to perform operation e1/myobjects3
com.intel.cosbench.api.storage.StorageException: error injection
	at com.intel.cosbench.driver.agent.AbstractAgent.call(AbstractAgent.java:44)
2026-11-21 00:36:15,100 [WARN] [ErrorStatistics] - error code: 503 occurred 12 times, fail: read
"""
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
AROUND: Final = Circumstances(
    api="swift", started_at="2026-11-21T00:40:00Z", load=None, started_by_us=False, drivers=2
)
FILES: Final = {
    "w33-mock.csv": HEAD + SUMMARY,
    "w33-mock-rt-histogram.csv": HISTOGRAM,
    "workload.log": LOG,
    "scripts.log": "",
}


class Kept:
    """An archive of one workload, with one of its files made wrong."""

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
            self.files[name] = (_cells if dice.random() < 0.4 else wrong_text)(dice, text).encode(
                errors="surrogatepass"
            )

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(
            name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")
        )

    def read(self, path: str, *, last_bytes: int | None = None) -> bytes | None:
        return self.files.get(path)

    def close(self) -> None: ...


def _cells(dice: Dice, text: str) -> str:
    """Text with commas for blanks while a word of it is changed."""
    return (
        wrong_lines(dice, text.replace(" ", "\1").replace(",", " "))
        .replace(" ", ",")
        .replace("\1", " ")
    )


@cases
def test_whatever_an_archive_holds_is_a_measurement_or_an_error_of_the_driver(dice: Dice) -> None:
    folder = Kept(dice)
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
        return measured(kept, "s3-main", STEP, AROUND)

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
def test_whatever_a_controller_answers_is_understood_or_an_error_of_the_driver(dice: Dice) -> None:
    controller = Controller(
        "http://127.0.0.1:19088/controller", "anonymous", SecretStr("cosbench").get_secret_value()
    )
    asked = dice.choice(("index", "workload", "submit"))
    text = (
        wrong_text(
            dice, {"index": INDEX, "workload": WORKLOAD, "submit": "Accepted with ID: w33\n"}[asked]
        )
        .encode(errors="replace")
        .decode()
    )
    calls: dict[str, Any] = {
        "index": controller.index,
        "workload": lambda: controller.workload("w33"),
        "submit": lambda: controller.submit("<workload/>"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Controller, "_ask", lambda *_, **__: text)
        tried(calls[asked], DriverError, saying="COSBench")


def test_bins_out_of_order_or_of_negative_counts_are_an_error_of_the_driver() -> None:
    for wrong in ("10~20,2,100%,1,100%\n0~10,3,60%,3,75%\n", "0~10,-3,60%,3,75%\n"):
        with pytest.raises(DriverError, match="histogram cannot be that of read of s3-main"):
            bins(
                f"ResTime,s3-main-w1-main-read,(%),s3-main-w1-main-write,(%)\n{wrong}500000~+INF,0,100%,0,100%\n",
                "s3-main",
                "read",
            )


@pytest.mark.parametrize("cell", ["-5", "nan", "inf", "1" + "0" * 30])
def test_a_summary_with_figures_that_cannot_be_is_an_error_of_the_driver(cell: str) -> None:
    for column in ("6.4,6.4", "2.5"):
        with pytest.raises(DriverError, match="row that cannot be read"):
            rows(
                HEAD
                + SUMMARY.replace(
                    f",{column},", f",{cell},{cell}," if "," in column else f",{cell},"
                )
            )


def test_a_date_of_a_year_without_end_is_an_error_of_the_driver() -> None:
    with pytest.raises(DriverError, match="a date that is none"):
        java_date(f"Sat Nov 21 00:36:02 UTC {'9' * 400}")


def test_a_share_of_successes_that_rounds_to_nothing_is_an_error_and_no_division() -> None:
    files = {name: text.replace("94.66%", "0.005%").encode() for name, text in FILES.items()}
    with pytest.raises(DriverError, match="no share that succeeded"):
        measured(Archived("w33", "mock", "FINISHED", files, ""), "s3-main", STEP, AROUND)
