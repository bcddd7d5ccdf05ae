"""The files that ship and can be named on a command line."""

from __future__ import annotations

from typing import Literal

from weighbridge.common.json_document import JsonDocument
from weighbridge.common.record import Record
from weighbridge.suites import loader as suite_files
from weighbridge.topologies.loader import load_hardware, shipped_hardware


class ListedSuite(Record):
    """A suite that ships."""

    name: str
    about: str
    api: tuple[str, ...]
    workloads: tuple[str, ...]
    repeats: int
    steps: int
    """Of each layout, in one repeat and over one API."""


class SuitesDocument(JsonDocument):
    """What `suites` prints."""

    document: Literal["suites"] = "suites"
    suites: tuple[ListedSuite, ...]


class ListedHardware(Record):
    """A hardware file that ships."""

    name: str
    about: str
    kind: str
    hosts: tuple[str, ...]


class HardwareDocument(JsonDocument):
    """What `hardware` prints."""

    document: Literal["hardware"] = "hardware"
    hardware: tuple[ListedHardware, ...]


def shipped_suites() -> SuitesDocument:
    """All suites that ship."""
    suites = [suite_files.load(path) for path in suite_files.shipped().values()]
    return SuitesDocument(
        suites=tuple(
            ListedSuite(
                name=one.name,
                about=one.about,
                api=one.api,
                workloads=tuple(workload.name for workload in one.workloads),
                repeats=one.repeats,
                steps=sum(len(workload.workers) for workload in one.workloads),
            )
            for one in suites
        )
    )


def shipped_hardware_files() -> HardwareDocument:
    """All hardware files that ship."""
    files = [load_hardware(path) for path in shipped_hardware().values()]
    return HardwareDocument(
        hardware=tuple(
            ListedHardware(name=one.name, about=one.about, kind=one.kind, hosts=tuple(one.hosts))
            for one in files
        )
    )
