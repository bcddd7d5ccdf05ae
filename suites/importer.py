"""COSBench's workload files as suites: what can be said in a suite is, and all that cannot is named
with its line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import cosbench_xml, importer_yaml, loader
from weighbridge.suites.importer_remarks import Remark, Remarks
from weighbridge.suites.importer_shapes import NAMES, Shaper, WorkloadShape
from weighbridge.suites.importer_works import Stage, Work, stages
from weighbridge.suites.suite import Suite

APIS = {"swift": "swift", "s3": "s3"}
"""COSBench's storages that are APIs of a suite."""

LAYOUTS = {"swift": ("rgw-beast", "swift"), "s3": ("rgw-beast", "swift-s3api")}
"""What is compared when the command names no layouts: both stores, by the API of the file."""

AFR_UNIT = 1_000_000
"""COSBench's `afr` is failures per million."""


@dataclass(frozen=True)
class Import:
    """A suite made of a workload file, the same as YAML, and what of the file is not in it."""

    suite: Suite
    text: str
    remarks: tuple[Remark, ...]


@dataclass
class _Steps:
    """A workload that is being put together."""

    name: str
    shape: WorkloadShape
    works: list[Work]


def from_cosbench(
    path: Path, *, partial: bool = False, size: int | None = None, runtime_s: int | None = None
) -> Import:
    """The suite of a workload file of COSBench.

    What would make it measure something else is an error unless `partial`; `size` in bytes and
    `runtime_s` are taken where the file has none. Raises DocumentError with the places of all that
    stands in the way, or UsageError.
    """
    remarks = Remarks()
    root = cosbench_xml.read(path)
    found = stages(root, remarks)
    works = _works(found, remarks)
    api = _api(works, remarks)
    shaper = Shaper(remarks, size=size, runtime_s=runtime_s)
    steps = _steps(works, shaper)
    repeats = _repeats(steps, remarks)
    share = _error_share([work for one in steps for work in one.works], remarks)
    wrong = remarks.of("fault") if partial else remarks.of("fault", "changes")
    if wrong:
        error = DocumentError([remark.place.fault(remark.message) for remark in wrong])
        if not remarks.of("fault"):
            error.advice = "With --partial the suite is made all the same, of what can be said."
        raise error
    if not steps:
        raise UsageError(f"{path}: nothing in it can be said in a suite")
    text = importer_yaml.text(
        {
            "name": _slug(root.get("name") or "", "imported"),
            "about": " ".join((root.get("description") or "").split())
            or f"Imported from COSBench's {path.name}",
            "api": [api],
            "layouts": list(LAYOUTS[api]),
            "repeats": repeats,
            "cache": "none",
            **({} if share is None else {"bounds": {"error_share": share}}),
            "workloads": [
                importer_yaml.workload(one.name, one.shape, _counts(one)) for one in steps
            ],
        },
        path.name,
        remarks.of("told", "changes"),
    )
    try:
        suite = loader.parse(f"{path.stem}.yaml", text)
    except DocumentError as error:
        raise UsageError(f"{path}: makes a suite that is none:\n{error}") from None
    return Import(suite, text, remarks.of("told", "changes"))


def _works(found: Sequence[Stage], remarks: Remarks) -> list[Work]:
    """The prepare and normal works in order; what the others are for is done by the suite
    itself.
    """
    works = []
    for stage in found:
        loads = [work for work in stage.works if work.kind in {"normal", "prepare"}]
        normal = [work for work in loads if work.kind == "normal"]
        if normal and len(loads) > 1:
            message = (
                f"stage {stage.name!r} runs {len(loads)} works at once; the workloads of a "
                "suite run one after the other"
            )
            remarks.changes(stage.place, message)
        for work in stage.works:
            if work.kind == "delay":
                remarks.told(
                    work.element.place,
                    f"the delay of stage {stage.name!r} is left out: nothing waits between steps "
                    "here",
                )
            elif work.kind != "normal":
                _tell_preparation(work, remarks)
        works += loads
    if not any(work.kind == "normal" for work in works) and found:
        remarks.fault(found[0].place, "no stage has a normal work: nothing is measured")
    return works


def _tell_preparation(work: Work, remarks: Remarks) -> None:
    what = {
        "init": "containers are made by the suite itself",
        "prepare": "objects are made by the suite itself",
        "cleanup": "the suite deletes what it made by itself",
        "dispose": "the suite deletes what it made by itself",
    }.get(work.kind)
    if what is None:
        return
    remarks.told(work.element.place, f"{work.kind} (workers {work.workers}) is left out: {what}")
    for name, value in (("runtime", work.runtime_s), ("rampup", work.rampup_s), ("afr", work.afr)):
        if value:
            remarks.told(
                work.element.at(name),
                f"{name} of {work.kind} is left out: all of it is done, or the run fails",
            )
    for key in ("createContainer", "deleteContainer", "cprefix", "csuffix", "oprefix", "osuffix"):
        if key in work.settings:
            remarks.told(work.settings[key].place, f"{key} is left out: {NAMES}")


def _api(works: Sequence[Work], remarks: Remarks) -> str:
    """The API of all normal works."""
    apis: list[str] = []
    for work in works:
        if work.kind != "normal":
            continue
        kind = work.storage.value
        if kind not in APIS:
            known = ", ".join(APIS)
            remarks.changes(
                work.storage.place,
                f"storage {kind!r} is none that a suite can ask (known: {known})",
            )
        elif apis and APIS[kind] not in apis:
            remarks.changes(
                work.storage.place,
                f"some works ask by {kind}, others by {apis[0]}: a suite asks by each all it has",
            )
        else:
            apis.append(APIS[kind])
    return apis[0] if apis else "swift"


def _steps(works: Sequence[Work], shaper: Shaper) -> list[_Steps]:
    """Works of one shape as the steps of one workload, in order of the first of each."""
    found: list[_Steps] = []
    for work in works:
        if work.kind == "prepare":
            shaper.prepared(work)
            continue
        shape = shaper.shape(work)
        if shape is None or work.workers < 1:
            continue
        same = next((one for one in found if one.shape == shape), None)
        if same is not None and found[-1] is not same:
            shaper.remarks.told(
                work.element.place,
                "this step comes after those of its own workload here, not in between",
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
    """A name for the workload of some works: theirs, or what the names of their stages have in
    common.
    """
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
    """A name as suites have it: lower case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or otherwise


def _counts(steps: _Steps) -> list[int]:
    return list(dict.fromkeys(work.workers for work in steps.works))


def _repeats(steps: Sequence[_Steps], remarks: Remarks) -> int:
    """How often every step is in the file, when that is one number."""
    times: dict[tuple[str, int], list[Work]] = {}
    for one in steps:
        for work in one.works:
            times.setdefault((one.name, work.workers), []).append(work)
    numbers = {len(works) for works in times.values()}
    if len(numbers) == 1:
        return numbers.pop()
    for works in times.values():
        for work in works[1:]:
            remarks.changes(
                work.element.place,
                "the same step again, and not every step as often: a suite repeats all or none",
            )
    return 1


def _error_share(works: Sequence[Work], remarks: Remarks) -> float | None:
    """What share of operations may fail, when all works say so alike; None leaves it to the suite's
    own bound.
    """
    shares = {work.afr for work in works}
    if len(shares) == 1 and None not in shares:
        return (works[0].afr or 0) / AFR_UNIT
    for work in works:
        if work.afr is not None:
            what = "works have different ones, or none: a suite has one bound, and its own is kept"
            remarks.told(
                work.element.at("afr"), f"afr {work.afr} (failures per million) is left out: {what}"
            )
    return None
