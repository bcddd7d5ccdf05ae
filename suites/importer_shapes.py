"""What a normal work of COSBench does, in the terms of a suite: which objects of which sizes, by
which operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.suites import importer_selectors
from weighbridge.suites.cosbench_xml import XmlPlace
from weighbridge.suites.importer_remarks import Remarks
from weighbridge.suites.importer_selectors import Size, Span
from weighbridge.suites.importer_works import OPERATION_TYPES, Operation, Settings, Work
from weighbridge.suites.workload import Operation as Verb

SUITE_OPERATIONS: dict[str, Verb] = {
    "read": "read",
    "write": "write",
    "delete": "delete",
    "list": "list",
}

NAMES = "the suite makes and names containers and objects by itself"

Naming = tuple[str, str, str, str]
"""Prefix and suffix of containers, and of objects."""


@dataclass(frozen=True)
class ObjectRange:
    """Objects of some containers, and how they are named."""

    containers: Span
    objects: Span
    naming: Naming

    def covers(self, other: ObjectRange) -> bool:
        """Whether all objects of the other are among these."""
        return (
            self.naming == other.naming
            and self.containers.covers(other.containers)
            and self.objects.covers(other.objects)
        )

    @property
    def count(self) -> int:
        """How many objects there are."""
        return self.containers.count * self.objects.count


@dataclass(frozen=True)
class Written:
    """Objects that a work of the file writes before others work on them."""

    range: ObjectRange
    size: Size
    place: XmlPlace
    by: Literal["prepare", "write"]


@dataclass(frozen=True)
class WorkloadShape:
    """All of a workload but its name and its worker counts.

    Two works of one shape are steps of one workload.
    """

    size: Size
    containers: int
    per_container: int
    operations: tuple[tuple[Verb, int], ...]
    pick: Literal["uniform", "sequential"]
    runtime_s: int
    warmup_s: int
    verify: bool


class Shaper:
    """Makes shapes of works, one after the other as they stand in the file; what it cannot it
    remarks.

    `size` and `runtime_s` are taken where the file has none.
    """

    def __init__(
        self, remarks: Remarks, *, size: int | None = None, runtime_s: int | None = None
    ) -> None:
        self.remarks = remarks
        self.size = size
        self.runtime_s = runtime_s
        self.written: list[Written] = []

    def prepared(self, work: Work) -> None:
        """Take note of what a prepare work writes."""
        place = work.element.at("config")
        objects = self._range(work.settings, place)
        size = self._size(work.settings, place)
        for what in (objects.containers, objects.objects) if objects else ():
            if what.order != "range":
                self.remarks.fault(
                    place,
                    "COSBench prepares a range r(first,last) of containers and objects, and "
                    "nothing else",
                )
        if objects is not None and size is not None:
            self.written.append(Written(objects, size, place, "prepare"))

    def shape(self, work: Work) -> WorkloadShape | None:
        """The shape of a normal work; None when there is none, for a reason that has been
        remarked.
        """
        operations = self._operations(work)
        runtime_s = self._runtime(work)
        if not operations:
            return None
        ranges = {
            operation: self._range(
                operation.settings, operation.place, lists=operation.kind == "list"
            )
            for operation in operations
        }
        sizes = {
            operation: self._size(operation.settings, operation.place)
            for operation in operations
            if operation.kind == "write"
        }
        if None in ranges.values() or None in sizes.values():
            return None
        known = {operation: one for operation, one in ranges.items() if one is not None}
        # What is read says which objects there are; where nothing is, what is written, deleted or
        # listed does.
        first = next(
            operation
            for kind in ("read", "write", "delete", "list")
            for operation in operations
            if operation.kind == kind
        )
        base = known[first]
        self._same_range(first, known)
        size = self._size_of(
            first, base, {key: size for key, size in sizes.items() if size is not None}
        )
        for operation, wrote in sizes.items():
            if wrote is not None:
                self.written.append(Written(known[operation], wrote, operation.place, "write"))
        if size is None or runtime_s is None:
            return None
        weights: dict[Verb, int] = {}
        for operation in operations:
            verb = SUITE_OPERATIONS[operation.kind]
            weights[verb] = weights.get(verb, 0) + operation.ratio
        return WorkloadShape(
            size=size,
            containers=base.containers.count,
            per_container=base.objects.count,
            operations=tuple(weights.items()),
            pick=self._pick(first, base),
            runtime_s=runtime_s,
            warmup_s=work.rampup_s,
            verify=any(
                operation.kind == "read" and _true(operation.settings, "hashCheck")
                for operation in operations
            ),
        )

    def _operations(self, work: Work) -> tuple[Operation, ...]:
        if not work.operations:
            self.remarks.fault(work.element.place, f"work {work.name!r} has no <operation>")
        kept = []
        for operation in work.operations:
            if operation.kind not in OPERATION_TYPES:
                known = ", ".join(OPERATION_TYPES)
                self.remarks.fault(
                    operation.place,
                    f"COSBench has no operation {operation.kind!r} (known: {known})",
                )
            elif operation.ratio == 0:
                self.remarks.told(
                    operation.place,
                    f"{operation.kind} has a ratio of 0 and is left out, as COSBench does",
                )
            elif operation.kind == "filewrite":
                self.remarks.changes(
                    operation.place,
                    "filewrite writes files of the driver's machine; a suite writes made-up content",
                )
            else:
                self._tell(operation)
                kept.append(operation)
        total = sum(operation.ratio for operation in work.operations)
        if work.operations and total != 100:
            self.remarks.fault(
                work.element.place,
                f"the ratios of work {work.name!r} add up to {total}: COSBench wants 100",
            )
        return tuple(kept)

    def _tell(self, operation: Operation) -> None:
        """Remark the settings of an operation that have no word in a suite, and what it does
        otherwise here.
        """
        settings, place = operation.settings, operation.place
        for key in ("name", "histogram"):
            if key in settings:
                self.remarks.told(
                    settings[key].place,
                    f"{key} is left out: a suite has one figure for each kind of operation anyway",
                )
        if operation.kind == "write":
            self.remarks.told(
                place, "writes make new objects; COSBench writes again over those of its range"
            )
            if _true(settings, "chunked"):
                self.remarks.changes(
                    settings["chunked"].place,
                    "chunked uploads do not tell their length; here every upload does",
                )
            if _true(settings, "hashCheck"):
                what = "here reads are checked against what must have been written"
                self.remarks.told(
                    settings["hashCheck"].place,
                    f"hashCheck puts a hash into what is written; {what}",
                )
            self._content(settings)
        if operation.kind == "read" and _true(settings, "hashCheck"):
            self.remarks.told(
                settings["hashCheck"].place,
                "hashCheck becomes verify: every byte of what is read is checked",
            )
        if operation.kind == "delete":
            what = "here each object is deleted once, those written before first"
            self.remarks.told(
                place, f"COSBench counts the delete of what is gone, or fails, as a success; {what}"
            )
        if operation.kind == "list":
            self.remarks.told(
                place,
                "COSBench's s3 storage lists nothing and counts it as a success; here lists are "
                "asked for",
            )

    def _content(self, settings: Settings) -> None:
        if "content" in settings and settings["content"].value != "random":
            self.remarks.changes(
                settings["content"].place,
                "content: other than random bytes, it may be compressed; here it is random",
            )

    def _runtime(self, work: Work) -> int | None:
        element = work.element
        limits = [
            name
            for name, value in (("totalOps", work.total_ops), ("totalBytes", work.total_bytes))
            if value
        ]
        if work.runtime_s:
            for name in limits:
                self.remarks.changes(
                    element.at(name),
                    f"{name} may end the work before its runtime does; here the runtime counts "
                    "alone",
                )
            return work.runtime_s
        if not limits:
            self.remarks.fault(
                element.place,
                f"work {work.name!r} has no limit, neither runtime nor totalOps nor totalBytes",
            )
            return None
        if self.runtime_s is None:
            self.remarks.changes(
                element.at(limits[0]),
                f"{limits[0]} ends the work after so much; a suite has a runtime: give one by "
                "--runtime",
            )
            return None
        self.remarks.told(
            element.at(limits[0]),
            f"{limits[0]} is replaced by the runtime of {self.runtime_s} s that was given",
        )
        return self.runtime_s

    def _range(
        self, settings: Settings, place: XmlPlace, *, lists: bool = False
    ) -> ObjectRange | None:
        spans: list[Span] = []
        for key in ("containers", "objects"):
            if key not in settings:
                if (
                    lists and key == "objects"
                ):  # COSBench lists a container whatever its objects are
                    spans.append(Span("uniform", 1, 1))
                    continue
                self.remarks.fault(place, f"config must say which {key}: such as {key}=u(1,100)")
                return None
            value = settings[key].value
            try:
                spans.append(importer_selectors.span(value))
            except ValueError as error:
                if value.lstrip().startswith("h("):
                    self.remarks.changes(settings[key].place, f"{key}: {error}")
                else:
                    self.remarks.fault(settings[key].place, f"{key}: {error}")
                return None
        names = [
            settings[key].value if key in settings else ""
            for key in ("cprefix", "csuffix", "oprefix", "osuffix")
        ]
        for key in ("cprefix", "csuffix", "oprefix", "osuffix"):
            if key in settings:
                self.remarks.told(settings[key].place, f"{key} is left out: {NAMES}")
        return ObjectRange(spans[0], spans[1], (names[0], names[1], names[2], names[3]))

    def _size(self, settings: Settings, place: XmlPlace) -> Size | None:
        if "sizes" not in settings:
            self.remarks.fault(
                place, "config must say the sizes of what is written: such as sizes=c(64)KB"
            )
            return None
        self._content(settings)
        try:
            size, drawn = importer_selectors.sizes(settings["sizes"].value)
        except ValueError as error:
            self.remarks.fault(settings["sizes"].place, f"sizes: {error}")
            return None
        if drawn:
            self.remarks.told(settings["sizes"].place, f"sizes: {drawn}")
        return size

    def _same_range(self, first: Operation, ranges: dict[Operation, ObjectRange]) -> None:
        """See that all operations go to the same containers, and those that need objects to the
        same ones.
        """
        base = ranges[first]
        for operation, one in ranges.items():
            containers = (one.containers.first, one.containers.last, one.naming[:2])
            if containers != (base.containers.first, base.containers.last, base.naming[:2]):
                what = f"goes to other containers than {first.kind}"
                self.remarks.changes(
                    operation.place,
                    f"{operation.kind} {what}; a workload has one set of containers",
                )
            elif operation.kind == "delete" and any(
                other.kind == "write" and by.covers(one) for other, by in ranges.items()
            ):
                continue  # what was written is deleted, as here
            elif operation.kind in {"read", "delete"} and not (
                one.covers(base) and base.covers(one)
            ):
                self.remarks.changes(
                    operation.place,
                    f"{operation.kind} goes to other objects than the {first.kind} before it",
                )
            elif operation.kind == "read" and (one.containers.order, one.objects.order) != (
                base.containers.order,
                base.objects.order,
            ):
                self.remarks.changes(
                    operation.place,
                    "read goes to its objects in another order than the read before it",
                )
        if min(base.containers.first, base.objects.first) > 1:
            self.remarks.told(
                first.place, "containers and objects are counted from 1 here, as many as there are"
            )

    def _pick(self, first: Operation, base: ObjectRange) -> Literal["uniform", "sequential"]:
        if first.kind in {"write", "list"}:
            return "uniform"
        orders = {span.order for span in (base.containers, base.objects) if span.count > 1} or {
            "uniform"
        }
        if orders == {"range"}:
            what = (
                "each worker goes through the same range by itself; here the workers go "
                "through it together"
            )
            self.remarks.changes(first.place, f"{first.kind} by r(): {what}")
        elif len(orders) > 1:
            self.remarks.changes(
                first.place,
                f"{first.kind} picks containers and objects in different ways; here in one",
            )
        return "uniform" if "uniform" in orders else "sequential"

    def _size_of(
        self, first: Operation, base: ObjectRange, writes: dict[Operation, Size]
    ) -> Size | None:
        """The size of a workload's objects: as they were written before, or as the work writes
        them.
        """
        places = {operation: operation.place for operation in writes}
        if first.kind == "write":
            sizes = list(writes.values())
            self._alike(sizes[0], list(writes.items())[1:], places)
            return sizes[0]
        by = next((one for one in reversed(self.written) if one.range.covers(base)), None)
        # Which objects there are makes no difference to a list but for how many.
        if by is None and first.kind == "list":
            by = next(
                (
                    one
                    for one in reversed(self.written)
                    if one.range.containers.covers(base.containers)
                ),
                None,
            )
        if by is None and self.size is None:
            what = f"no stage before writes all that {first.kind} goes to, so its size is not known"
            self.remarks.changes(first.place, f"{what}: give one by --size")
            return None
        if by is None:
            self.remarks.told(
                first.place,
                f"what {first.kind} goes to is not written in this file: the size that was given "
                "is taken",
            )
            size: Size | None = self.size
        else:
            size = by.size
            if by.by == "write":
                self.remarks.told(
                    first.place,
                    f"the size of what {first.kind} goes to is that of the writes of line "
                    f"{by.place.line}",
                )
            elif by.range.count > base.count:
                self.remarks.told(
                    first.place,
                    f"{by.range.count} objects are prepared there; here the {base.count} that "
                    f"{first.kind} goes to",
                )
        if size is not None:
            self._alike(size, list(writes.items()), places)
        return size

    def _alike(
        self,
        size: Size,
        writes: Sequence[tuple[Operation, Size]],
        places: dict[Operation, XmlPlace],
    ) -> None:
        for operation, wrote in writes:
            if wrote != size:
                self.remarks.changes(
                    places[operation],
                    "objects of another size are written than are worked on; a workload has one",
                )


def _true(settings: Settings, key: str) -> bool:
    return key in settings and settings[key].value.lower() == "true"
