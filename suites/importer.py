"""COSBench's workload files as suites, with remarks on all that a suite cannot express."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import parse_bytes, show_bytes
from weighbridge.suites import cosbench_xml, loader
from weighbridge.suites.importer_shapes import NAME_KEYS, NAMES, ShapeBuilder, Size, WorkloadShape
from weighbridge.suites.importer_works import APIS, Remark, Remarks, Stage, StageReader, Work
from weighbridge.suites.suite import Suite
from weighbridge.suites.workload import Uniform


def workload_text(name: str, shape: WorkloadShape, workers: Sequence[int]) -> dict[str, object]:
    """A workload as YAML data."""
    return {
        "name": name,
        "objects": {
            "size": _size(shape.size),
            "containers": shape.containers,
            "per_container": shape.per_container,
        },
        "operations": dict(shape.operations),
        **({} if shape.pick == "uniform" else {"pick": shape.pick}),
        **({} if shape.range_bytes is None else {"range": {"bytes": _bytes(shape.range_bytes)}}),
        **({} if shape.part_bytes is None else {"multipart": {"part": _bytes(shape.part_bytes)}}),
        "workers": list(workers),
        "runtime": f"{shape.runtime_s}s",
        "warmup": f"{shape.warmup_s}s",
        **({"verify": True} if shape.verify else {}),
    }


def suite_text(suite: Mapping[str, object], origin: str, remarks: Sequence[Remark]) -> str:
    """The complete file: its origin, the remarks, and the suite."""
    lines = [f"Made by `weighbridge import-cosbench` from {_one_line(origin)}."]
    for severity, title in (
        ("change", "Not in it, so it measures something other than that file:"),
        ("note", "Left out, or handled otherwise by every suite:"),
    ):
        same: dict[str, list[int]] = {}
        for remark in remarks:
            if remark.severity == severity:
                same.setdefault(remark.message, []).append(remark.place.line)
        lines += ["", title] if same else []
        for message, places in same.items():
            numbers = ", ".join(map(str, dict.fromkeys(places)))
            lines.append(f"  line{'s' if ',' in numbers else ''} {numbers}: {_one_line(message)}")
    head = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return head + yaml.safe_dump(
        dict(suite), sort_keys=False, allow_unicode=True, default_flow_style=None, width=120
    )


def _one_line(message: str) -> str:
    return "".join(one if one.isprintable() else " " for one in message)


def _size(size: Size) -> object:
    if isinstance(size, int):
        return _bytes(size)
    if isinstance(size, Uniform):
        return {"uniform": [_bytes(one) for one in size.uniform]}
    bars = []
    for bar in size.histogram:
        low, high = map(_bytes, bar.bounds)
        bars.append({"size": low if low == high else [low, high], "weight": int(bar.weight)})
    return {"histogram": bars}


def _bytes(count: int) -> str | int:
    text = show_bytes(count).replace(" ", "")
    return text if parse_bytes(text) == count else count


LAYOUTS = {"swift": ("rgw-beast", "swift"), "s3": ("rgw-beast", "swift-s3api")}
"""The layouts compared by default: both stores, by the API of the file."""

AFR_UNIT = 1_000_000
"""COSBench's `afr` is failures per million."""

PREPARATION = {
    "init": "the suite creates containers itself",
    "prepare": "the suite creates objects itself",
    "cleanup": "the suite deletes what it created",
    "dispose": "the suite deletes what it created",
}
"""Why the works around the measured ones are left out."""


@dataclass(frozen=True)
class Import:
    """A suite made from a workload file, its YAML, and what of the file is not in it."""

    suite: Suite
    text: str
    remarks: tuple[Remark, ...]


@dataclass
class _Steps:
    """A workload under construction."""

    name: str
    shape: WorkloadShape
    works: list[Work]


def from_cosbench(
    path: Path, *, partial: bool = False, size: int | None = None, runtime_s: int | None = None
) -> Import:
    """The suite of a COSBench file. `partial` allows what changes the measurement; `size` in bytes
    and `runtime_s` apply where the file has none. Raises DocumentError or UsageError.
    """
    remarks = Remarks()
    root = cosbench_xml.read(path)
    works = _works(StageReader(remarks).stages(root), remarks)
    api = _api(works, remarks)
    builder = ShapeBuilder(remarks, size=size, runtime_s=runtime_s)
    steps = _steps(works, builder)
    repeats = _repeats(steps, remarks)
    share = _error_share([work for one in steps for work in one.works], remarks)
    wrong = remarks.of("fault") if partial else remarks.of("fault", "change")
    if wrong:
        error = DocumentError([remark.place.fault(remark.message) for remark in wrong])
        if not remarks.of("fault"):
            error.advice = "Use --partial to make a suite of what can be expressed."
        raise error
    if not steps:
        raise UsageError(f"{path}: nothing in it can be expressed in a suite")
    about = " ".join((root.get("description") or "").split())
    content: dict[str, object] = {
        "name": _slug(root.get("name") or "", "imported"),
        "about": about or f"Imported from COSBench's {path.name}",
        "api": [api],
        "layouts": list(LAYOUTS[api]),
        "repeats": repeats,
        "cache": "none",
        **({} if share is None else {"bounds": {"error_share": share}}),
        "workloads": [
            workload_text(
                one.name, one.shape, list(dict.fromkeys(work.workers for work in one.works))
            )
            for one in steps
        ],
    }
    notes = remarks.of("note", "change")
    text = suite_text(content, path.name, notes)
    try:
        suite = loader.parse(f"{path.stem}.yaml", text)
    except DocumentError as error:
        raise UsageError(f"{path}: the suite made from it is not valid:\n{error}") from None
    return Import(suite, text, notes)


def _works(found: Sequence[Stage], remarks: Remarks) -> list[Work]:
    """The prepare and normal works in order; a suite does what the others are for itself."""
    works = []
    for stage in found:
        loads = [work for work in stage.works if work.kind in {"normal", "prepare"}]
        loads = _joined(loads, remarks)
        if len(loads) > 1 and any(work.kind == "normal" for work in loads):
            remarks.change(
                stage.place,
                f"stage {stage.name!r} runs {len(loads)} works at once; the workloads of a suite "
                "run one after the other",
            )
        for work in stage.works:
            if work.kind == "delay":
                remarks.note(
                    work.element.place,
                    f"the delay of stage {stage.name!r} is left out: there is none between steps "
                    "here",
                )
            elif work.kind in PREPARATION:
                _note_preparation(work, remarks)
        works += loads
    if not any(work.kind == "normal" for work in works) and found:
        remarks.fault(found[0].place, "no stage has a normal work: nothing is measured")
    return works


def _joined(works: Sequence[Work], remarks: Remarks) -> list[Work]:
    """Works that request the same at the same time, such as one for each driver, as one work."""
    found: dict[str, Work] = {}
    for work in works:
        operations = [(one.kind, one.ratio, one.settings) for one in work.operations]
        requests = repr((replace(work, name="", workers=0, operations=()), operations))
        first = found.setdefault(requests, work)
        if first is not work:
            message = f"its workers count with those of {first.name!r}, which requests the same"
            remarks.note(work.element.place, message)
            found[requests] = replace(first, workers=first.workers + work.workers)
    return list(found.values())


def _note_preparation(work: Work, remarks: Remarks) -> None:
    message = f"{work.kind} (workers {work.workers}) is left out: {PREPARATION[work.kind]}"
    remarks.note(work.element.place, message)
    for name, value in (("runtime", work.runtime_s), ("rampup", work.rampup_s), ("afr", work.afr)):
        if value:
            remarks.note(
                work.element.at(name),
                f"{name} of {work.kind} is left out: it is completed, or the run fails",
            )
    for key in ("createContainer", "deleteContainer", *NAME_KEYS):
        if key in work.settings:
            remarks.note(work.settings[key].place, f"{key} is left out: {NAMES}")


def _api(works: Sequence[Work], remarks: Remarks) -> str:
    apis: list[str] = []
    for work in works:
        if work.kind != "normal":
            continue
        kind = work.storage.kind
        if kind not in APIS:
            known = ", ".join(APIS)
            message = f"a suite has no API for storage {kind!r} (known: {known})"
            remarks.change(work.storage.place, message)
        elif apis and APIS[kind] not in apis:
            remarks.change(
                work.storage.place,
                f"some works use {kind}, others {apis[0]}: a suite runs all its workloads by each "
                "of its APIs",
            )
        else:
            apis.append(APIS[kind])
    return apis[0] if apis else "swift"


def _steps(works: Sequence[Work], builder: ShapeBuilder) -> list[_Steps]:
    """Works of the same shape as steps of one workload, in order of the first of each."""
    found: list[_Steps] = []
    for work in works:
        if work.kind == "prepare":
            builder.prepared(work)
            continue
        shape = builder.shape(work)
        if shape is None or work.workers < 1:
            continue
        same = next((one for one in found if one.shape == shape), None)
        if same is not None and found[-1] is not same:
            builder.remarks.note(
                work.element.place, "this step follows the others of its workload here"
            )
        if same is None:
            found.append(_Steps("", shape, [work]))
        else:
            same.works.append(work)
    names: list[str] = []
    for number, one in enumerate(found, start=1):
        one.name = _name(one.works, number, names)
        names.append(one.name)
    return found


def _name(works: Sequence[Work], number: int, taken: Sequence[str]) -> str:
    """A unique name for a workload: that of its works, or their stages' common prefix."""
    names = {work.name for work in works}
    stage_names = [work.stage for work in works]
    common = stage_names[0]
    while not all(name.startswith(common) for name in stage_names):
        common = common[:-1]
    if len(works) > 1:
        common = re.sub(r"[-_. ]*w?[0-9]*$", "", common)
    wanted = _slug(names.pop() if len(names) == 1 else common, f"workload-{number}")
    name, count = wanted, 2
    while name in taken:
        name, count = f"{wanted[:36]}-{count}", count + 1
    return name


def _slug(text: str, otherwise: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or otherwise


def _repeats(steps: Sequence[_Steps], remarks: Remarks) -> int:
    """How often every step is in the file, if that is one number."""
    times: dict[tuple[str, int], list[Work]] = {}
    for one in steps:
        for work in one.works:
            times.setdefault((one.name, work.workers), []).append(work)
    numbers = {len(works) for works in times.values()}
    if len(numbers) == 1:
        return numbers.pop()
    for works in times.values():
        for work in works[1:]:
            remarks.change(
                work.element.place,
                "the same step again, but others are not repeated as often: a suite repeats all "
                "steps or none",
            )
    return 1


def _error_share(works: Sequence[Work], remarks: Remarks) -> float | None:
    """The share of operations that may fail, if all works say the same; None: the default."""
    shares = {work.afr for work in works}
    if len(shares) == 1 and None not in shares:
        return (works[0].afr or 0) / AFR_UNIT
    for work in works:
        if work.afr is not None:
            remarks.note(
                work.element.at("afr"),
                f"afr {work.afr} (failures per million) is left out: works have different ones, "
                "or none, and a suite has one limit; its default applies",
            )
    return None
