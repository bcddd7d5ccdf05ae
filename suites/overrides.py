"""What a command line sets in place of what a suite says.

Each is a change of the suite's document, so that it is validated as the file is, and its faults are
reported where it was given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.quantities import parse_bytes, show_bytes
from weighbridge.suites.operations import OPERATIONS
from weighbridge.suites.suite import Suite
from weighbridge.suites.workload import Workload

KEPT_BYTES: Final = 256_000_000
"""Objects of another size are as many as the suite's, or fewer if that is more than this and than
the suite's bytes: they must be written before they can be read.
"""
FEWEST: Final = 4
"""Objects of a container, whatever their size."""


@dataclass(frozen=True)
class Overrides:
    """Options of a command line as they were given; None: as the suite says."""

    workers: str | None = None
    """Worker counts of every workload, `1,16`."""
    sizes: str | None = None
    """Object sizes, `64k,8M`: with `mix`, one workload for each size and operation."""
    mix: str | None = None
    """Operations, `read,write`."""
    duration: str | None = None
    """The measured window of every step, `30s`."""
    warmup: str | None = None
    """What goes before it and does not count, `5s`."""
    api: str | None = None
    """The APIs, `s3,swift`."""

    @property
    def given(self) -> bool:
        return any(getattr(self, one.name) is not None for one in fields(self))


NONE: Final = Overrides()


@dataclass(frozen=True)
class _Size:
    """A size as a file has it, with its mean in bytes."""

    written: object
    mean_bytes: float

    @property
    def label(self) -> str:
        """Part of a workload's name, such as `64kb`."""
        short = show_bytes(self.mean_bytes).lower().replace(" ", "")
        return re.sub(r"[^a-z0-9]+", "-", short)


def override(document: Document, suite: Suite, overrides: Overrides, places: Sequence[int]) -> None:
    """Change a suite's document; `suite` is what it says, `places` are its workloads' in it. Raises
    DocumentError with what is no size or operation; validation finds the rest.
    """
    if overrides.sizes is not None or overrides.mix is not None:
        _replace_workloads(document, suite, overrides, places)
    for number in range(len(document.data["workloads"])):
        if overrides.workers is not None:
            words = [one for _, one in items(overrides.workers)]
            counts = [int(one) if re.fullmatch("[0-9]{1,19}", one) else one for one in words]
            origin = _origin("--workers", overrides.workers)
            document.change(("workloads", number, "workers"), counts, origin)
        for option, key, time in (
            ("--duration", "runtime", overrides.duration),
            ("--warmup", "warmup", overrides.warmup),
        ):
            if time is not None:
                document.change(("workloads", number, key), time, _origin(option, time))
    # What the suite says about itself may not hold any more.
    given = [
        f"--{one.name} {value}"
        for one in fields(overrides)
        if (value := getattr(overrides, one.name)) is not None
    ]
    if given:
        about = f"Requests of suite {suite.name}, changed by {' '.join(given)}"
        document.change(("about",), about, _origin(given[0].partition(" ")[0], given[0]))
    if overrides.api is not None:
        apis = [one for _, one in items(overrides.api)]
        document.change(("api",), apis, _origin("--api", overrides.api))


def as_options(faults: Sequence[Fault]) -> list[Fault]:
    """Faults of a changed document, those of an option once instead of once for each workload."""
    return list(
        dict.fromkeys(
            replace(one, message=re.sub(r"^workloads\.\d+(\.|: )", "", one.message))
            if one.file.startswith("--")
            else one
            for one in faults
        )
    )


def items(text: str) -> Iterator[tuple[int, str]]:
    """The items of a comma-separated list, each with its column from 1."""
    column = 1
    for part in text.split(","):
        if word := part.strip():
            yield column + part.index(word), word
        column += len(part) + 1


def _origin(option: str, text: str, column: int = 1, message: str = "") -> Fault:
    return Fault(option, 1, column, message, text)


def _replace_workloads(
    document: Document, suite: Suite, overrides: Overrides, places: Sequence[int]
) -> None:
    """One workload for each size and operation, in all else like the most similar of the suite."""
    faults: list[Fault] = []
    sizes = _sizes(suite, overrides.sizes, faults)
    operations = _operations(suite, overrides.mix, faults)
    if faults:
        raise DocumentError(faults)
    option, text = (
        ("--mix", overrides.mix) if overrides.sizes is None else ("--sizes", overrides.sizes)
    )
    origin = _origin(option, text or "")
    written: list[dict[str, Any]] = document.data["workloads"]
    made, controls = [], []
    for operation in operations:
        for size in sizes:
            number = _most_similar(suite.workloads, operation, size.mean_bytes)
            workload = suite.workloads[number]
            one = deepcopy(written[places[number]])
            one["name"] = f"{operation}-{size.label}"
            one["objects"]["size"] = size.written
            one["objects"]["per_container"] = _count(workload, size.mean_bytes)
            one["operations"] = {operation: 100}
            made.append(one)
            if isinstance(suite.control, tuple) and workload.name in suite.control:
                controls.append(one["name"])
    document.change(("workloads",), made, origin)
    if isinstance(suite.control, tuple):
        document.change(("control",), controls or True, origin)


def _sizes(suite: Suite, text: str | None, faults: list[Fault]) -> list[_Size]:
    found: list[_Size] = []
    if text is None:
        for one in suite.workloads:
            dumped = one.objects.model_dump(mode="json")["size"]
            size = _Size(dumped, one.objects.mean_bytes)
            found += [size] if size not in found else []
        return found
    for column, word in items(text):
        try:
            number = parse_bytes(word)
            assert isinstance(number, int)  # noqa: S101 - of a text it makes an integer
            twice = number in [one.mean_bytes for one in found]
            faults += [_origin("--sizes", text, column, f"{word} is there twice")] if twice else []
            found.append(_Size(word, float(number)))
        except ValueError as error:
            faults.append(_origin("--sizes", text, column, str(error)))
    return found


def _operations(suite: Suite, text: str | None, faults: list[Fault]) -> list[str]:
    if text is None:
        return list(dict.fromkeys(name for one in suite.workloads for name in one.operations))
    asked: list[str] = []
    for column, word in items(text):
        if word not in OPERATIONS:
            message = f"no operation {word!r}{did_you_mean(word, OPERATIONS)}"
            faults.append(_origin("--mix", text, column, message))
        if word in asked:
            faults.append(_origin("--mix", text, column, f"{word} is there twice"))
        asked.append(word)
    return asked


def _most_similar(workloads: Sequence[Workload], operation: str, mean_bytes: float) -> int:

    def unlike(number: int) -> tuple[bool, int, float]:
        one = workloads[number]
        ratio = max(one.objects.mean_bytes, 1.0) / max(mean_bytes, 1.0)
        return (operation not in one.operations, len(one.operations), abs(math.log(ratio)))

    return min(range(len(workloads)), key=unlike)


def _count(workload: Workload, mean_bytes: float) -> int:
    objects = workload.objects
    kept_bytes = max(objects.count * objects.mean_bytes, KEPT_BYTES)
    fitting = int(kept_bytes / max(mean_bytes, 1.0) / objects.containers)
    return min(objects.per_container, max(FEWEST, fitting))
