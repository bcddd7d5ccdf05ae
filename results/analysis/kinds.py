"""Kinds of requests: what rows must share to be compared, and their names in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from weighbridge.common.quantities import show_bytes
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.metrics import WITH_BODIES
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.suites import TRAITS, Api, DriverName, Operation

API_NAMES: Final[dict[Api, str]] = {
    "swift": "the Swift API",
    "s3": "the S3 API",
    "rados": "RADOS",
    "object-server": "Swift’s object servers",
    "rbd": "RBD",
    "cephfs": "CephFS",
}

Kind = tuple[str, Operation, Api, DriverName]
"""A kind of requests: workload, operation, API, and the driver that makes them."""


class OfAKind(Protocol):
    """A row, an effect or a finding: about one kind of requests."""

    @property
    def workload(self) -> str:
        """Name of the workload."""

    @property
    def operation(self) -> Operation:
        """What the requests do."""

    @property
    def api(self) -> Api:
        """Their API."""

    @property
    def driver(self) -> DriverName:
        """What made them."""


def kind_of(one: OfAKind) -> Kind:
    """The kind of requests that a row, an effect or a finding is about."""
    return one.workload, one.operation, one.api, one.driver


def subjects(rows: Sequence[Row]) -> dict[Kind, str]:
    """The name of each kind of requests: `1 MB reads`; with API, driver, workload if needed."""
    apis, drivers = (
        len({row.api for row in rows}) > 1,
        len({(row.api, row.driver) for row in rows}) > len({row.api for row in rows}),
    )
    names = {kind_of(row): _subject(row, api=apis, driver=drivers) for row in rows}
    called = list(names.values())
    return {
        kind: f"{name} of {kind[0]}" if called.count(name) > 1 else name
        for kind, name in names.items()
    }


def requests_of(operation: Operation, object_size_bytes: float | None) -> str:
    """`64 kB reads`, `listings`: with the size of bodies, if known."""
    noun = TRAITS[operation].noun
    if operation in WITH_BODIES and object_size_bytes is not None:
        return f"{show_bytes(object_size_bytes)} {noun}"
    return noun


def _subject(row: Row, *, api: bool, driver: bool) -> str:
    noun = requests_of(row.operation, row.object_size_bytes)
    noun = f"{noun} over {API_NAMES[row.api]}" if api else noun
    return f"{noun} by {driver_label(row.driver)}" if driver else noun
