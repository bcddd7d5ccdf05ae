"""A normal work of COSBench in the terms of a suite: which operations on which objects."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Literal

from weighbridge.suites.cosbench_xml import XmlPlace
from weighbridge.suites.importer_works import (
    PART_KEY,
    ConfigValue,
    Remarks,
    Settings,
    Severity,
    Work,
    WorkOperation,
)
from weighbridge.suites.operations import SMALLEST_PART_BYTES, Operation
from weighbridge.suites.workload import SizeBar, SizeHistogram, Uniform

Size = int | Uniform | SizeHistogram
"""As a workload has it."""

UNITS = {"GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}
"""COSBench's only units, powers of 1000. It looks for them in this order at the end of the text
(`DefaultSizeGenerator`), so that any other word that ends with B means bytes."""
BINARY_UNITS = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
"""Of its pull request 423 and of cosbench-sineio."""

LARGEST = 2**31 - 1
"""COSBench's numbers are Java's int."""

# COSBench's selectors of numbers: c(n), u(a,b), r(a,b), s(a,b), h(low|high|weight,...).
_SPAN = re.compile(r"\s*([cursh])\(([^()]*)\)\s*")
_OLD_RANGE = re.compile(r"\s*([0-9]{1,10})-([0-9]{1,10})\s*")
"""`1-32`, which COSBench still takes for r(1,32) (`RangeIntGenerator`)."""
_SIZES = re.compile(r"\s*([cursh]\([^()]*\))\s*([A-Za-z]*)\s*")


Order = Literal["constant", "uniform", "range", "sequential"]
_ORDERS: Mapping[str, Order] = {"c": "constant", "u": "uniform", "r": "range", "s": "sequential"}


@dataclass(frozen=True)
class Span:
    """Numbers from `first` to `last`, and the order in which they are picked.

    At random (`uniform`), in sequence by each worker separately (`range`) or by all together
    (`sequential`), or always the same one (`constant`).
    """

    order: Order
    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def covers(self, other: Span) -> bool:
        """Whether every number of the other is one of these."""
        return self.first <= other.first and other.last <= self.last


class Inexpressible(ValueError):
    """COSBench runs it; no suite has it."""


def selector_span(text: str) -> Span:
    """What a selector of containers or objects picks. Raises ValueError with the reason,
    Inexpressible where COSBench itself would run it.
    """
    letter, numbers = _parsed(_OLD_RANGE.sub(r"r(\1,\2)", text))
    if letter == "h":
        raise Inexpressible(
            f"{text} picks by a weighted histogram: a suite has only uniform, sequential and zipf"
        )
    if letter != "c" and len(numbers) == 1:
        raise Inexpressible(f"{text} has no end: a suite needs a known number of objects")
    return Span(_ORDERS[letter], numbers[0], numbers[-1])


def selector_sizes(text: str) -> tuple[Size, tuple[tuple[Severity, str], ...]]:
    """Sizes, and what is otherwise here. Raises ValueError and Inexpressible as `selector_span`."""
    match = _SIZES.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a selector of sizes such as c(64)KB")
    unit, doubt = _unit(match[2])
    size, note = _drawn(match[1], match[2], unit)
    remarks: list[tuple[Severity, str]] = [("change", doubt), ("note", note)]
    return size, tuple((severity, words) for severity, words in remarks if words)


def _unit(word: str) -> tuple[int, str]:
    """Bytes of a unit, and what is doubtful about it."""
    if word in BINARY_UNITS:
        return BINARY_UNITS[word], (
            f"{word} is {BINARY_UNITS[word]} bytes in some versions of COSBench, as here; 0.4.2 "
            "takes it for bytes"
        )
    for unit, scale in UNITS.items():
        if word.endswith(unit):
            return scale, "" if unit == word else f"COSBench takes {word!r} for {unit}"
    raise ValueError(f"{word!r} is not a unit of COSBench (known: {', '.join(UNITS)})")


def _drawn(text: str, word: str, unit: int) -> tuple[Size, str]:
    """The sizes of a selector in units, and how they are drawn here (or "")."""
    letter, numbers = _parsed(text)
    if letter == "h":
        note = "weights are exact here: COSBench gives the first bar one more and the last one less"
        return SizeHistogram(histogram=tuple(_bars(text, unit))), note
    if letter == "c" or numbers[0] == numbers[-1]:
        return numbers[0] * unit, ""
    if len(numbers) == 1:
        raise Inexpressible(f"{text!r} has no largest size")
    drawn = Uniform(uniform=(numbers[0] * unit, numbers[1] * unit))
    if letter == "u":
        note = f"drawn in bytes here, in multiples of 1 {word} in COSBench"
        return drawn, "" if unit == 1 else note
    return drawn, "sizes come in sequence in COSBench; here they are drawn uniformly"


def _parsed(text: str) -> tuple[str, tuple[int, ...]]:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a selector such as c(1), u(1,100), r(1,100), s(1,100)")
    if match[1] == "h":
        return "h", ()
    words = [word.strip() for word in match[2].split(",")]
    if match[1] == "c":
        words = words[:1]  # COSBench reads no further
    if len(words) > 2 or not all(re.fullmatch(r"[0-9]{1,10}", word) for word in words):
        raise ValueError(f"{text!r}: expected one number, or two, in the parentheses")
    numbers = tuple(int(word) for word in words)
    if max(numbers) > LARGEST:
        raise ValueError(f"{text!r}: beyond {LARGEST}, COSBench's largest number")
    if match[1] != "c" and min(numbers) < 1:
        raise ValueError(f"{text!r}: COSBench counts from 1")
    if numbers[0] > numbers[-1]:
        raise ValueError(f"{text!r}: begins after its end")
    return match[1], numbers


def _bars(text: str, unit: int) -> list[SizeBar]:
    bars = []
    for bar in text[text.index("(") + 1 : text.index(")")].split(","):
        match = re.fullmatch(r"\s*([0-9]{1,10})\|([0-9]{0,10})\|([0-9]{1,10})\s*", bar)
        if match is None:
            raise ValueError(
                f"{text!r}: {bar.strip()!r} is not a bar such as 1|64|10 "
                "(smallest, largest, weight)"
            )
        if not match[2]:
            raise Inexpressible(f"{text!r}: {bar.strip()!r} has no largest size")
        low, high, weight = int(match[1]), int(match[2]), int(match[3])
        if low < 1 or low > high or weight < 1:
            raise ValueError(
                f"{text!r}: {bar.strip()!r}: needs sizes of at least 1, the smallest first, and a "
                "weight above 0"
            )
        size = low * unit if low == high else (low * unit, high * unit)
        bars.append(SizeBar(size=size, weight=weight))
    return bars


SUITE_OPERATIONS: dict[str, Operation] = {
    "read": "read",
    "write": "write",
    "delete": "delete",
    "list": "list",
    "head": "head",
    "mwrite": "write-multipart",
}
"""By COSBench's: `head` and `mwrite` are those of its pull request 423 and of cosbench-sineio, as
are the last three of the others.
"""
_FILES = "writes files of the driver's machine; a suite writes random content"
OTHER_OPERATIONS = {
    "filewrite": _FILES,
    "mfilewrite": _FILES,
    "localwrite": "writes files on the driver's machine; a suite writes objects",
    "restore": "asks a store to restore archived objects; no suite does",
}
"""What COSBench does and a suite does not, with the reason."""
DEFAULT_PART_BYTES, DEFAULT_FILE_BYTES, DEFAULT_CHUNK_BYTES = 5 * 2**20, 4_000_000, 1_000_000
"""Of `part_size`, `file_length` and `chunk_length`."""

READS, WRITES = ("read", "head"), ("write", "mwrite")
OTHERWISE = {
    **dict.fromkeys(WRITES, "writes create new objects; COSBench overwrites those of its range"),
    "delete": "COSBench counts a delete of a missing object, or one that fails, as a success; "
    "here each object is deleted once, the oldest first",
    "list": "COSBench's s3 storage lists nothing and counts it as a success; here lists are "
    "requested",
}
"""What operations do otherwise here."""
HASH_CHECK = {
    **dict.fromkeys(
        WRITES, "adds a hash to what is written; here reads are compared with what was written"
    ),
    "read": "becomes verify: every byte of what is read is checked",
}
"""What becomes of `hashCheck`, by the operation that has it."""
_DEFINING = (*READS, *WRITES, "delete", "list")
"""The operation that comes first decides which objects a workload has."""

MOST_COMPARISONS = 20_000
"""Of objects with works that wrote them, for one work: above it, one work must have written all."""

NAME_KEYS = ("cprefix", "csuffix", "oprefix", "osuffix")
"""Prefix and suffix of containers, and of objects."""
NAMES = "the suite creates and names containers and objects itself"


@dataclass(frozen=True)
class ObjectRange:
    """Objects of some containers; `naming` has the values of NAME_KEYS."""

    containers: Span
    objects: Span
    naming: tuple[str, ...]

    def covers(self, other: ObjectRange) -> bool:
        """Whether all objects of the other are among these."""
        return (
            self.naming == other.naming
            and self.containers.covers(other.containers)
            and self.objects.covers(other.objects)
        )

    @property
    def count(self) -> int:
        return self.containers.count * self.objects.count

    def joined(self, other: ObjectRange) -> ObjectRange:
        """These objects and the others, in this order; what is between them counts as well."""
        return ObjectRange(
            _joined(self.containers, other.containers),
            _joined(self.objects, other.objects),
            self.naming,
        )


def _pieces(span: Span, others: Sequence[Span]) -> list[Span]:
    """A span, cut wherever one of the others begins or ends."""
    edges = {edge for one in others for edge in (one.first, one.last + 1)}
    inner = [edge for edge in edges if span.first < edge <= span.last]
    cuts = [span.first, *sorted(inner), span.last + 1]
    return [replace(span, first=first, last=end - 1) for first, end in pairwise(cuts)]


def _joined(span: Span, other: Span) -> Span:
    order = "uniform" if span.order == "constant" and span != other else span.order
    return Span(order, min(span.first, other.first), max(span.last, other.last))


@dataclass(frozen=True)
class WrittenRange:
    """Objects that a work of the file writes before others use them."""

    range: ObjectRange
    size: Size
    place: XmlPlace
    by: Literal["prepare", "write"]


@dataclass(frozen=True)
class WorkloadShape:
    """A workload without name and worker counts: works of the same shape are its steps."""

    size: Size
    containers: int
    per_container: int
    operations: tuple[tuple[Operation, int], ...]
    pick: Literal["uniform", "sequential"]
    runtime_s: int
    warmup_s: int
    verify: bool
    range_bytes: int | None
    part_bytes: int | None


class ShapeBuilder:
    """The shapes of works in file order; `size` and `runtime_s` apply where the file has none."""

    def __init__(
        self, remarks: Remarks, *, size: int | None = None, runtime_s: int | None = None
    ) -> None:
        self.remarks = remarks
        self.size = size
        self.runtime_s = runtime_s
        self.written: list[WrittenRange] = []

    def prepared(self, work: Work) -> None:
        """Record what a prepare work writes."""
        place = work.element.at("config")
        objects = self._range(work.settings, place)
        size = self._size(work.settings, place)
        for what in (objects.containers, objects.objects) if objects else ():
            if what.order != "range":
                self.remarks.fault(
                    place, "COSBench prepares only ranges r(first,last) of containers and objects"
                )
        if objects is not None and size is not None:
            self.written.append(WrittenRange(objects, size, place, "prepare"))

    def shape(self, work: Work) -> WorkloadShape | None:
        """The shape of a normal work; None where a remark says why there is none."""
        operations = self._operations(work)
        runtime_s = self._runtime(work)
        if not operations:
            return None
        ranges: dict[WorkOperation, ObjectRange] = {}
        sizes: dict[WorkOperation, Size] = {}
        for operation in operations:
            settings, place = operation.settings, operation.place
            found = self._range(settings, place, lists=operation.kind == "list")
            if found is not None:
                ranges[operation] = found
            if operation.kind in WRITES and (size := self._size(settings, place)) is not None:
                sizes[operation] = size
        writes = [operation for operation in operations if operation.kind in WRITES]
        if len(ranges) < len(operations) or len(sizes) < len(writes):
            return None
        # Reads define the objects; without any, what is written, deleted or listed does.
        first = min(operations, key=lambda one: _DEFINING.index(one.kind))
        base = ranges[first]
        if first.kind in READS:
            for operation, objects in ranges.items():
                if operation.kind in READS and objects.naming == base.naming:
                    base = base.joined(objects)
        self._check_ranges(first, base, ranges)
        size_of_objects = self._size_of(first, base, sizes)
        for operation, size in sizes.items():
            written = WrittenRange(ranges[operation], size, operation.place, "write")
            self.written.append(written)
        if size_of_objects is None or runtime_s is None:
            return None
        weights: dict[Operation, int] = {}
        range_bytes = self._range_bytes(work, size_of_objects)
        for operation in operations:
            verb = SUITE_OPERATIONS[operation.kind]
            if verb == "read" and range_bytes is not None:
                verb = "read-range"
            weights[verb] = weights.get(verb, 0) + operation.ratio
        return WorkloadShape(
            size=size_of_objects,
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
            range_bytes=range_bytes if "read-range" in weights else None,
            part_bytes=self._part_bytes(work) if "write-multipart" in weights else None,
        )

    def _range_bytes(self, work: Work, size: Size) -> int | None:
        """How much of an object each read of a work requests; None: all of it."""
        given = work.storage.settings
        if not _true(given, "is_range_request"):
            return None
        file_bytes = self._whole(given, "file_length", DEFAULT_FILE_BYTES)
        chunk_bytes = self._whole(given, "chunk_length", DEFAULT_CHUNK_BYTES)
        place = given["is_range_request"].place
        self.remarks.note(
            place,
            f"reads of {chunk_bytes} bytes begin at any byte in COSBench, here at a multiple of "
            "this length",
        )
        if file_bytes != size:
            self.remarks.change(
                place,
                f"file_length {file_bytes}: reads begin in as many bytes of each object; here "
                "anywhere in it, and its size is another",
            )
        return chunk_bytes

    def _part_bytes(self, work: Work) -> int:
        given = work.storage.settings
        part_bytes = self._whole(given, PART_KEY, DEFAULT_PART_BYTES)
        if part_bytes < SMALLEST_PART_BYTES:
            self.remarks.change(
                given[PART_KEY].place,
                f"{PART_KEY} {part_bytes}: S3 has no parts below {SMALLEST_PART_BYTES} bytes, "
                "which are used here",
            )
        return max(part_bytes, SMALLEST_PART_BYTES)

    def _whole(self, given: Mapping[str, ConfigValue], key: str, default: int) -> int:
        if key not in given:
            return default
        if not re.fullmatch("[1-9][0-9]{0,17}", given[key].value):
            message = f"storage: {key} must be a whole number above 0"
            self.remarks.fault(given[key].place, message)
            return default
        return int(given[key].value)

    def _operations(self, work: Work) -> tuple[WorkOperation, ...]:
        if not work.operations:
            self.remarks.fault(work.element.place, f"work {work.name!r} has no <operation>")
        kept = []
        for operation in work.operations:
            kind, place = operation.kind, operation.place
            if kind not in SUITE_OPERATIONS and kind not in OTHER_OPERATIONS:
                known = ", ".join((*SUITE_OPERATIONS, *OTHER_OPERATIONS))
                self.remarks.fault(place, f"COSBench has no operation {kind!r} (known: {known})")
            elif operation.ratio == 0:
                message = f"{kind} has a ratio of 0 and is left out, as COSBench does"
                self.remarks.note(place, message)
            elif kind in OTHER_OPERATIONS:
                self.remarks.change(place, f"{kind} {OTHER_OPERATIONS[kind]}")
            elif kind == "mwrite" and any(one.kind == "write" for one in work.operations):
                self.remarks.change(
                    place, "mwrite beside write: a workload uploads objects in parts, or at once"
                )
            else:
                self._note_differences(operation)
                kept.append(operation)
        total = sum(operation.ratio for operation in work.operations)
        if work.operations and total != 100:
            self.remarks.fault(
                work.element.place,
                f"the ratios of work {work.name!r} add up to {total}: COSBench requires 100",
            )
        return tuple(kept)

    def _note_differences(self, operation: WorkOperation) -> None:
        """Note the settings that a suite does not have, and what an operation does otherwise."""
        settings, place = operation.settings, operation.place
        for key in ("name", "histogram"):
            if key in settings:
                self.remarks.note(
                    settings[key].place,
                    f"{key} is left out: a suite has one figure for each kind of operation anyway",
                )
        if operation.kind in OTHERWISE:
            self.remarks.note(place, OTHERWISE[operation.kind])
        if operation.kind in HASH_CHECK and _true(settings, "hashCheck"):
            message = f"hashCheck {HASH_CHECK[operation.kind]}"
            self.remarks.note(settings["hashCheck"].place, message)
        if operation.kind in WRITES:
            if _true(settings, "chunked"):
                self.remarks.change(
                    settings["chunked"].place,
                    "chunked uploads do not declare their length; here every upload does",
                )
            self._content(settings)

    def _content(self, settings: Settings) -> None:
        if "content" in settings and settings["content"].value != "random":
            self.remarks.change(
                settings["content"].place,
                "content other than random bytes may be compressed; here it is random",
            )

    def _runtime(self, work: Work) -> int | None:
        element = work.element
        totals = (("totalOps", work.total_ops), ("totalBytes", work.total_bytes))
        limits = [name for name, value in totals if value]
        if work.runtime_s:
            for name in limits:
                self.remarks.change(
                    element.at(name),
                    f"{name} may end the work before its runtime does; here only the runtime "
                    "counts",
                )
            return work.runtime_s
        if not limits:
            self.remarks.fault(
                element.place,
                f"work {work.name!r} has no limit: no runtime, totalOps or totalBytes",
            )
            return None
        place = element.at(limits[0])
        if self.runtime_s is None:
            message = f"{limits[0]} ends the work; a suite needs a runtime: give one by --runtime"
            self.remarks.change(place, message)
        else:
            message = f"{limits[0]} is replaced by the given runtime of {self.runtime_s} s"
            self.remarks.note(place, message)
        return self.runtime_s

    def _range(
        self, settings: Settings, place: XmlPlace, *, lists: bool = False
    ) -> ObjectRange | None:
        if lists and "objects" not in settings:
            if "containers" not in settings:
                message = "list without containers lists the account; a suite lists containers"
                self.remarks.change(place, message)
                return None
            # COSBench lists a container whatever is in it.
            settings = {**settings, "objects": ConfigValue("u(1,1)", place)}
        spans: list[Span] = []
        for key in ("containers", "objects"):
            if key not in settings:
                self.remarks.fault(place, f"config must say which {key}: such as {key}=u(1,100)")
                return None
            try:
                spans.append(selector_span(settings[key].value))
            except ValueError as error:
                self._not_taken(settings[key].place, key, error)
                return None
        naming = tuple(settings[key].value if key in settings else "" for key in NAME_KEYS)
        for key in NAME_KEYS:
            if key in settings:
                self.remarks.note(settings[key].place, f"{key} is left out: {NAMES}")
        return ObjectRange(spans[0], spans[1], naming)

    def _size(self, settings: Settings, place: XmlPlace) -> Size | None:
        if "sizes" not in settings:
            self.remarks.fault(
                place, "config must say the sizes of what is written: such as sizes=c(64)KB"
            )
            return None
        self._content(settings)
        try:
            size, remarks = selector_sizes(settings["sizes"].value)
        except ValueError as error:
            self._not_taken(settings["sizes"].place, "sizes", error)
            return None
        for severity, words in remarks:
            self.remarks.add(settings["sizes"].place, f"sizes: {words}", severity)
        return size

    def _not_taken(self, place: XmlPlace, key: str, error: ValueError) -> None:
        severity: Severity = "change" if isinstance(error, Inexpressible) else "fault"
        self.remarks.add(place, f"{key}: {error}", severity)

    def _check_ranges(
        self, first: WorkOperation, base: ObjectRange, ranges: dict[WorkOperation, ObjectRange]
    ) -> None:
        """Remark operations on other containers, or on other objects where they need some; `base`
        are the objects of the workload.
        """
        reads = sum(one.ratio for one in ranges if one.kind in READS)
        for operation, one in ranges.items():
            kind, place = operation.kind, operation.place
            if kind in READS and one.naming == base.naming and one.count < base.count:
                self.remarks.change(
                    place,
                    f"{operation.ratio} of {reads} reads pick among {one.count} of {base.count} "
                    "objects; here all pick among all of them",
                )
                continue
            containers = (one.containers.first, one.containers.last, one.naming[:2])
            if containers != (base.containers.first, base.containers.last, base.naming[:2]):
                self.remarks.change(
                    place,
                    f"{kind} uses other containers than {first.kind}; a workload has one set of "
                    "containers",
                )
            elif kind == "delete" and any(
                other.kind in WRITES and by.covers(one) for other, by in ranges.items()
            ):
                continue  # written objects are deleted, as here
            elif kind in {*READS, "delete"} and not (one.covers(base) and base.covers(one)):
                self.remarks.change(
                    place, f"{kind} uses other objects than the {first.kind} before it"
                )
            elif kind in READS and (one.containers.order, one.objects.order) != (
                base.containers.order,
                base.objects.order,
            ):
                self.remarks.change(
                    place, f"{kind} picks its objects in another order than the read before it"
                )
        if min(base.containers.first, base.objects.first) > 1:
            self.remarks.note(
                first.place, "containers and objects are numbered from 1 here; the counts stay"
            )

    def _pick(self, first: WorkOperation, base: ObjectRange) -> Literal["uniform", "sequential"]:
        if first.kind in {*WRITES, "list"}:
            return "uniform"
        spans = [span for span in (base.containers, base.objects) if span.count > 1]
        orders = {span.order for span in spans} or {"uniform"}
        if orders == {"range"}:
            self.remarks.change(
                first.place,
                f"{first.kind} by r(): each worker goes through the same range by itself; here "
                "the workers go through it together",
            )
        elif len(orders) > 1:
            self.remarks.change(
                first.place,
                f"{first.kind} picks containers and objects in different ways; here in one",
            )
        elif orders == {"sequential"} and math.lcm(*(one.count for one in spans)) < base.count:
            # COSBench moves both on at each request (SequentialIntGenerator.next).
            count = math.lcm(*(one.count for one in spans))
            self.remarks.change(
                first.place, f"{first.kind} by s() of both reaches {count} of {base.count} objects"
            )
        return "uniform" if "uniform" in orders else "sequential"

    def _size_of(
        self, first: WorkOperation, base: ObjectRange, writes: dict[WorkOperation, Size]
    ) -> Size | None:
        size = writes[first] if first.kind in WRITES else self._size_before(first, base)
        for operation, written in writes.items():
            if size is not None and written != size:
                self.remarks.change(
                    operation.place,
                    "writes objects of another size than the others; a workload has one size",
                )
        return size

    def _size_before(self, first: WorkOperation, base: ObjectRange) -> Size | None:
        sources, complete = self._sources(base)
        if not complete and first.kind == "list":  # which depends on the number of objects only
            among = [one for one in self.written if one.range.containers.covers(base.containers)]
            sources, complete = among[-1:], bool(among)
        for one in sources:
            if one.by == "write" or not base.covers(one.range):
                self.remarks.note(
                    first.place,
                    f"of what line {one.place.line} writes, the {base.count} objects of "
                    f"{first.kind} exist here, and from the start",
                )
        sizes = [one.size for one in sources]
        if not complete and self.size is None:
            self.remarks.change(
                first.place,
                f"no earlier stage writes all objects of {first.kind}, so their size is not "
                "known: give one by --size",
            )
        elif not complete and self.size is not None:
            message = f"what this file does not write for {first.kind} has the given size"
            self.remarks.note(first.place, message)
            sizes.append(self.size)
        if first.kind != "list" and any(size != sizes[0] for size in sizes):
            self.remarks.change(
                first.place,
                f"the objects of {first.kind} have several sizes, the last by line "
                f"{sources[0].place.line}; a workload has one: here this one",
            )
        return sizes[0] if complete or self.size is not None else None

    def _sources(self, base: ObjectRange) -> tuple[list[WrittenRange], bool]:
        """The works that may have written some of these objects last, the latest first, and
        whether they wrote all.
        """
        earlier = [one for one in self.written[::-1] if one.range.naming == base.naming]
        containers = _pieces(base.containers, [one.range.containers for one in earlier])
        objects = _pieces(base.objects, [one.range.objects for one in earlier])
        pieces = [base]
        if len(containers) * len(objects) * len(earlier) <= MOST_COMPARISONS:
            pieces = [
                replace(base, containers=c, objects=o) for c, o in product(containers, objects)
            ]
        found: dict[int, WrittenRange] = {}
        complete = True
        for piece in pieces:
            by = [one for one in enumerate(earlier) if one[1].range.covers(piece)]
            complete = complete and bool(by)
            for number, one in by:
                found[number] = one
                if one.by == "prepare":  # a write may leave some objects as they were
                    break
        return [found[number] for number in sorted(found)], complete


def _true(settings: Settings, key: str) -> bool:
    return key in settings and settings[key].value == "true"
