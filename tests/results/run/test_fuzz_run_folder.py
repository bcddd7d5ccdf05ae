"""Every file of a run folder, corrupted on purpose: it gives a valid record or our own error."""

import base64
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from pydantic import BaseModel, TypeAdapter

from fake_knobs import FEW
from fake_run import fake_run
from fake_tuning import fake_tuning
from made_rows import made_workload
from tests.mutation import CASES, DICE, Dice, cases, tried, wrong_bytes, wrong_json
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.results import derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.study import StudyRun, study_of
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run import machine
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.reading import read_lines, read_record
from weighbridge.results.run.resolved import Manifest, ResolvedPlan, RunEvent
from weighbridge.results.run.step import Bins, Second, StepResult
from weighbridge.results.run.store import _holders
from weighbridge.results.run.telemetry import LINE, Attested, ProbeSecond
from weighbridge.results.run.trial import Trial, TuningRun, Winner
from weighbridge.results.show.feature import FEATURES
from weighbridge.suites.studies import loader as studies

WORKLOADS: Final = (
    made_workload(
        4096, name="small-read", operations={"read": 60, "delete": 40}, workers=(2,), runtime=1.0
    ),
)
Folders = dict[str, Path]
MACHINE: Final = machine.MachineRun(
    run_id="earlier",
    machine="m, 2, auto-2",
    controls=(machine.ControlRatio(metric="throughput", difference=0.04, error=0.02),),
    slopes=(machine.LoadSlope(layout="swift", metric="throughput", slope=-0.3, error=0.1),),
)


@cache
def folders_in(runs: Path) -> Folders:
    """Run folders with one step a layout, by kind, and an empty one."""
    store = fake_run(runs, workloads=WORKLOADS, repeats=1)
    same = {"machine": machine.machine_of(store.manifest)}
    machine.keep_runs(
        store.folder,
        (MACHINE.model_copy(update={**same, "run_id": f"earlier-{n}"}) for n in range(3)),
    )
    return {
        "run": store.folder,
        "tuning": fake_tuning(runs, knobs=FEW).folder,
        "empty": runs,
    }


@pytest.fixture(scope="session")
def runs_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


@pytest.fixture(scope="session")
def folders(runs_once: Path) -> Folders:
    return folders_in(runs_once)


def cut(document: Any, most: int = 2) -> Any:
    """A document with its lists cut to a few entries: it has every key and is quick to read."""
    if isinstance(document, dict):
        return {key: cut(value, most) for key, value in document.items()}
    return (
        [cut(value, most) for value in document[:most]] if isinstance(document, list) else document
    )


def of_file(folder: Path, name: str) -> Any:
    data = (folder / name).read_bytes()
    return json.loads(data.splitlines()[0] if name.endswith("l") else data)


def study(folder: Path) -> dict[str, Any]:
    """The study that ships with the fewest variants, at one scale, with one table."""
    _, found = studies.load(studies.find("swift-vs-rgw-read-2014"))
    document: dict[str, Any] = StudyRun(study=found, scale="lab").model_dump(mode="json")
    kept = {"factors", "variants", "compares"}
    given = document["study"]
    document["study"] = {
        key: value if key in kept else cut(value, 2) for key, value in given.items()
    }
    del document["study"]["scales"]["full"]
    return document


RECORDS: Final[dict[str, tuple[type[BaseModel], Callable[[Folders], Any]]]] = {
    "manifest.json": (Manifest, lambda folders: cut(of_file(folders["tuning"], "manifest.json"))),
    "plan.resolved.json": (
        ResolvedPlan,
        lambda folders: cut(of_file(folders["run"], "plan.resolved.json")),
    ),
    "tuning.json": (TuningRun, lambda folders: cut(of_file(folders["tuning"], "tuning.json"), 1)),
    "winner.json": (Winner, lambda folders: of_file(folders["tuning"], "winner.json")),
    "study.json": (StudyRun, lambda folders: study(folders["empty"])),
}


def same(record: BaseModel) -> bool:
    """Whether a record is unchanged when written and read back."""
    written = record.model_dump_json()
    return type(record).model_validate_json(written).model_dump_json() == written


@cache
def documents(runs: Path) -> dict[str, list[Any]]:
    """A complete document for each file of one record, and the lines of each other file."""
    folders = folders_in(runs)
    found = {name: [made(folders)] for name, (_, made) in RECORDS.items()}
    return found | {name: made(folders) for name, (_, made) in LINES.items()}


def test_the_uncorrupted_documents_are_read(runs_once: Path) -> None:
    for name, (model, _) in RECORDS.items():
        assert model.model_validate(documents(runs_once)[name][0])
    for name, (adapter, _) in LINES.items():
        assert all(adapter.validate_python(one) for one in documents(runs_once)[name])


@cases
def test_any_record_file_is_read_or_refused(dice: Dice, runs_once: Path) -> None:
    for name, (model, _) in RECORDS.items():
        path = runs_once / name
        path.write_bytes(wrong_json(dice, documents(runs_once)[name][0]))
        read: Callable[[], BaseModel | None] = partial(read_record, path, model)
        found = tried(
            partial(study_of, runs_once) if model is StudyRun else read, UsageError, saying=name
        )
        assert found is None or same(found)


EVENT: Final = RunEvent(
    at="2026-11-22T04:42:26Z", kind="step", text="swift, small-read", layout="swift"
).model_dump(mode="json")
ATTESTED: Final = {
    "layout": "swift",
    "repeat": 0,
    "host": "store-1",
    "kind": "disk",
    "unit": "B/s",
    "what": "disk wb0 read",
    "value": 1.5,
    "promised": 2.5,
    "sender": "a",
    "receiver": "b",
    "operation": "read",
    "pick": "random",
    "request_bytes": 4096,
}
SECOND: Final = Second(
    second=0, operation="read", count=2, bytes=2, errors=0, max_us=9, sum_us=12, bands=((1, 2),)
)
BINS: Final = Bins(width_us=10_000, counts=((0, 3), (2, 1)), beyond_us=500_000_000, beyond=1)
TALLY: Final = {
    "operation": "read",
    "count": 5,
    "bytes": 5,
    "errors": {"http-503": 2},
    "bins": BINS.model_dump(mode="json"),
    "sum_us": 9,
}


def steps(folders: Folders) -> list[Any]:
    """A line of a step that was measured, one of COSBench's kind, and one that was not measured."""
    found = of_file(folders["run"], "steps.jsonl")
    found["measurement"]["seconds"] = [SECOND.model_dump(mode="json")]
    other = json.loads(json.dumps(found))
    other["measurement"]["tallies"] = [TALLY]
    return [
        found,
        other,
        {**found, "measurement": None, "valid": False, "notes": ["the gateway did not answer"]},
    ]


def telemetry(folders: Folders) -> list[Any]:
    path = next((folders["run"] / "telemetry").iterdir())
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    probe = ProbeSecond(
        second=0, at_s=0.5, phase="measure", host="a", probe="radosgw", values={"qlen": 1.0}
    )
    return [lines[0], lines[1], lines[-1], probe.model_dump(mode="json")]


LINES: Final[dict[str, tuple[TypeAdapter[Any], Callable[[Folders], list[Any]]]]] = {
    "steps.jsonl": (TypeAdapter(StepResult), steps),
    "events.jsonl": (TypeAdapter(RunEvent), lambda folders: [EVENT]),
    "attestation.jsonl": (TypeAdapter(Attested), lambda folders: [ATTESTED]),
    "trials.jsonl": (
        TypeAdapter(Trial),
        lambda folders: [of_file(folders["tuning"], "trials.jsonl")],
    ),
    "telemetry.jsonl": (LINE, telemetry),
    "machine.jsonl": (TypeAdapter(machine.MachineRun), lambda _: [MACHINE.model_dump(mode="json")]),
    "series.jsonl": (TypeAdapter(Second), lambda folders: [SECOND.model_dump(mode="json")]),
}


@cases
def test_any_file_of_lines_is_read_or_refused_with_a_line(dice: Dice, runs_once: Path) -> None:
    for name, (adapter, _) in LINES.items():
        path = runs_once / name
        data = wrong_json(dice, dice.choice(documents(runs_once)[name]))
        path.write_bytes(data + dice.choice((b"\n", b"\n", b"\n", b"", b"\r\n", b"\n\n")))
        found = tried(
            lambda: list(read_lines(path, adapter.validate_json)),  # noqa: B023
            InvalidMeasurement,
            saying=f"{name}:",
        )
        assert all(same(one) for one in found or ())


@cases
def test_any_holders_file_is_read(dice: Dice, folders: Folders) -> None:
    path = folders["empty"] / "holders.jsonl"
    holder = wrong_json(dice, {"pid": 17, "since": "2026-11-22T04:42:26Z"})
    path.write_bytes(holder + b'\n{"pid":1,"since":""}')
    assert tried(lambda: _holders(path), UsageError) is not None


def all_of(folder: Path) -> RunData:
    data = open_run(folder)
    for part in ("plan", "rows", "layers", "comparison", "attested", "events", "gaps"):
        getattr(data, part)
    for feature in FEATURES.values():
        feature.answer(data)
        list(feature.sections(data))
    for _ in data.telemetry():
        pass
    return data


class Changing:
    """A run folder whose files are corrupted and restored."""

    def __init__(self, pristine: Path, folder: Path) -> None:
        shutil.copytree(pristine, folder)
        self.folder = folder
        paths = [
            path
            for path in folder.rglob("*")
            if path.is_file() and not {"derived", "confirmation"} & set(path.parts)
        ]
        self.files = {path: path.read_bytes() for path in sorted(paths)}

    @contextmanager
    def wrong(self, dice: Dice) -> Iterator[Path]:
        chosen = dice.sample(list(self.files), dice.choice((1, 1, 1, 2)))
        for path in chosen:
            self._corrupt(dice, path)
        yield self.folder
        for path in chosen:
            path.write_bytes(self.files[path])

    def _corrupt(self, dice: Dice, path: Path) -> None:
        kind, data = dice.randrange(12), self.files[path]
        lines = data.splitlines(keepends=True)
        if kind == 0:
            path.unlink()
        elif kind < 4 or path.suffix not in (".json", ".jsonl") or not lines:
            path.write_bytes(wrong_bytes(dice, data))
        elif path.suffix == ".json":
            path.write_bytes(wrong_json(dice, json.loads(data)))
        else:
            number = dice.randrange(len(lines))
            lines[number] = wrong_json(dice, json.loads(lines[number])) + b"\n"
            path.write_bytes(b"".join(lines))


@pytest.fixture(scope="session")
def changing(folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Changing]:
    """Folders to corrupt. A report was made of each: it caches things that take time once."""
    copies = tmp_path_factory.mktemp("changed")
    made = {name: Changing(folders[name], copies / name) for name in ("run", "tuning")}
    for one in made.values():
        derive(one.folder, pictures=False)
    return made


# A case reads and judges every file, of which one or two are wrong; above, each file has all cases.
@settings(CASES, max_examples=max(1, CASES.max_examples // 3))
@given(dice=DICE)
def test_any_run_folder_is_judged_or_refused(dice: Dice, changing: dict[str, Changing]) -> None:
    with changing["run"].wrong(dice) as folder:
        tried(lambda: all_of(folder))


@settings(CASES, max_examples=max(1, CASES.max_examples // 100))
@given(dice=DICE)
def test_a_report_of_any_run_folder_is_made_or_refused(
    dice: Dice, changing: dict[str, Changing]
) -> None:
    with changing[dice.choice(("run", "run", "run", "tuning"))].wrong(dice) as folder:
        tried(lambda: derive(folder, pictures=False))


def test_a_plan_that_replays_what_its_suite_lacks_or_names_a_path_or_no_cpus_is_refused(
    folders: Folders, tmp_path: Path
) -> None:
    for where, value, said in (
        (("passes", "rgw-beast", 0, "workloads", 0, "name"), "another", "replays 'another', which"),
        (("layouts", 0, "name"), "../../etc/passwd", "layouts.0.name"),
        (("hardware", "hosts", "client-1", "cpuset"), "none", "'none' is not a list of CPUs"),
    ):
        inner = plan = of_file(folders["run"], "plan.resolved.json")
        for name in where[:-1]:
            inner = inner[name]
        inner[where[-1]] = value
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        with pytest.raises(UsageError, match=re.escape(said)):
            read_record(tmp_path / "plan.json", ResolvedPlan)


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1e308])
@pytest.mark.parametrize("where", [("window_s",), ("load", "window_s"), ("load", "cpu_limit")])
def test_an_impossible_window_is_refused_with_its_line(
    folders: Folders, tmp_path: Path, where: tuple[str, ...], value: float
) -> None:
    line = next(one for one in steps(folders) if one["measurement"])
    held = line["measurement"]
    for name in where[:-1]:
        held = held[name]
    held[where[-1]] = value
    (tmp_path / "steps.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(
        InvalidMeasurement, match=rf"steps\.jsonl:1: measurement\.{'.'.join(where)}"
    ):
        list(read_lines(tmp_path / "steps.jsonl", StepResult.model_validate_json))


@pytest.mark.parametrize(
    ("name", "value"),
    [("cpus", 1e-310), ("nic_bits_s", 1e-310), ("cpu_s", 1e308), ("sent_bytes", 10**400)],
)
def test_impossible_telemetry_is_refused_with_its_line(
    folders: Folders, tmp_path: Path, name: str, value: float
) -> None:
    of_second = name in ("cpu_s", "sent_bytes")
    line = telemetry(folders)[1 if of_second else 0]
    (line if of_second else line["hosts"][0])[name] = value
    (tmp_path / "telemetry.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InvalidMeasurement, match=rf"telemetry\.jsonl:1: .*{name}"):
        list(read_lines(tmp_path / "telemetry.jsonl", LINE.validate_json))


PLAIN = Histogram.of([1, 5, 900, 12_345, 12_345, 3_000_000])
ENCODED = PLAIN.encode()


def repacked(dice: Dice, text: str) -> str:
    """A histogram that decompresses, with wrong counts: otherwise no case gets past the packing."""
    packed = base64.b64decode(text)
    inner = wrong_bytes(dice, zlib.decompress(packed[8:]))
    again = zlib.compress(inner)
    return base64.b64encode(packed[:4] + len(again).to_bytes(4, "big") + again).decode()


@cases
def test_any_text_is_a_histogram_or_invalid_measurement(dice: Dice) -> None:
    text = (
        repacked(dice, ENCODED)
        if dice.random() < 0.5
        else wrong_bytes(dice, ENCODED.encode()).decode(errors="replace")
    )
    found = tried(lambda: Histogram.decode(text), InvalidMeasurement, saying="a histogram")
    if found is None:
        return
    assert found.count == sum(count for _, count in found.buckets())
    assert Histogram.decode(found.encode()).buckets() == found.buckets()
    assert not found.count or found.percentile_us(1) <= found.percentile_us(
        50
    ) <= found.percentile_us(100)
