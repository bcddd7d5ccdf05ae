from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt
from rich.console import Console

from weighbridge.budget import RepeatScatter, claim
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import JsonDocument, Record
from weighbridge.conductor.plan import NO_CONTROLS, Plan
from weighbridge.conductor.time_estimate import (
    REPORTING_S,
    TimeEstimate,
    show_duration,
    starting_s,
    stopping_s,
)
from weighbridge.gateways.sizing import Sized
from weighbridge.results.numbers import UNKNOWN, counted
from weighbridge.results.show.terminal import print_line, print_table
from weighbridge.selection import size_remark
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned


class OutlinedLayout(Record):
    """A layout that would be measured."""

    name: str
    about: str
    gateway: str
    release: str
    settings_of: str | None = None
    """The release whose settings it gets; None: its own."""
    control_of: str | None = None
    """The layout that it is an A/A control of."""


class OutlinedSetting(Record):
    """A setting of some layouts that follows the size of the hosts."""

    key: str
    """Its dotted key below a layout's `settings`."""
    value: str
    """As layout files have it."""
    why: str
    """How it follows, with the figures."""
    layouts: tuple[str, ...]


class OutlinedWorkload(Record):
    """A workload of one pass over all layouts."""

    name: str
    api: str
    driver: str
    layer: str | None
    """The layer below or beside gateways that is loaded; None: the gateways."""
    operations: dict[str, float]
    """Weights."""
    object_size_bytes: NonNegativeFloat
    """Of drawn sizes the expected mean."""
    objects: NonNegativeInt
    """How many are written before its steps."""
    workers: tuple[PositiveInt, ...]
    warmup_s: NonNegativeFloat
    window_s: NonNegativeFloat


class LayoutsOutline(Record):
    """What is known of layouts before any is started."""

    layouts: tuple[OutlinedLayout, ...]
    by_size: tuple[OutlinedSetting, ...]
    """What follows the size of the hosts."""
    size_remark: str
    """What to know of it; empty: nothing."""
    advice: tuple[str, ...]
    """What is allowed in a layout, and seldom meant."""


class PlanOutline(LayoutsOutline, JsonDocument):
    """What `compare --dry-run` prints."""

    document: Literal["plan"] = "plan"
    suite: str
    hardware: str
    workloads: tuple[OutlinedWorkload, ...]
    repeats: PositiveInt
    deployments: PositiveInt
    """How often a layout is started; endpoints that already run are visited so often."""
    steps: NonNegativeInt
    """Steps in all; with --find at most."""
    estimated_s: NonNegativeFloat
    """Estimated time for all, report included."""
    claim: str
    """What it could claim, in a sentence."""


def outline_layouts(
    planned: Sequence[Planned], hardware: Hardware, twins: Mapping[str, str] = NO_CONTROLS
) -> LayoutsOutline:
    """The outline of layouts; `twins`: the layouts that A/A controls are controls of."""
    sized: dict[Sized, list[str]] = {}
    for one in planned:
        for setting in one.sizing:
            sized.setdefault(setting, []).append(one.layout.name)
    return LayoutsOutline(
        layouts=tuple(
            OutlinedLayout(
                name=one.layout.name,
                about=one.layout.about,
                gateway=one.layout.gateway,
                release=one.layout.release,
                settings_of=one.gateway.settings_elsewhere(one.layout.release),
                control_of=twins.get(one.layout.name),
            )
            for one in planned
        ),
        by_size=tuple(
            OutlinedSetting(key=one.key, value=one.shown, why=one.why, layouts=tuple(names))
            for one, names in sized.items()
        ),
        size_remark=size_remark(hardware) if sized else "",
        advice=tuple(
            text for one in planned if one.layout.name not in twins for text in one.advice
        ),
    )


def outline(plan: Plan, planned: Sequence[Planned], spread: RepeatScatter) -> PlanOutline:
    """The outline of a plan of these layouts; `spread`: how far repeats scatter here."""
    ways = {
        (way.driver, way.api, way.layer): way
        for name, ways in plan.passes.items()
        if name not in plan.twins
        for way in ways
    }
    return PlanOutline(
        suite=plan.suite.name,
        hardware=plan.hardware.name,
        **dict(outline_layouts(planned, plan.hardware, plan.twins)),
        workloads=tuple(
            OutlinedWorkload(
                name=one.name,
                api=way.api,
                driver=way.driver,
                layer=way.layer,
                operations=dict(one.operations),
                object_size_bytes=one.objects.mean_bytes,
                objects=one.objects.count if one.needs_objects else 0,
                workers=one.workers,
                warmup_s=one.warmup,
                window_s=one.runtime,
            )
            for way in ways.values()
            for one in way.workloads
        ),
        repeats=plan.suite.repeats,
        deployments=len(plan.visits),
        steps=plan.steps,
        estimated_s=TimeEstimate.of(plan).left_s() + REPORTING_S,
        claim=claim(plan, spread),
    )


def print_layouts(found: LayoutsOutline, screen: Console) -> None:
    """Print the layouts of an outline, and what to know of them."""
    controls = {one.name for one in found.layouts if one.control_of is not None}
    rows = []
    for layout in found.layouts:
        about = layout.about
        if layout.control_of is not None:
            about = f"A/A control of {layout.control_of}"
        release = layout.release
        if layout.settings_of is not None:
            release = f"{release} (settings of {layout.settings_of})"
        rows.append((layout.name, layout.gateway, release, about))
    print_table(screen, ("layout", "gateway", "release", "what it is"), rows)
    if found.by_size:
        sized = []
        for one in found.by_size:
            names = [name for name in one.layouts if name not in controls]
            sized.append((one.key, one.value, one.why, ", ".join(names)))
        print_table(screen, ("by the size of hosts", "value", "why", "layouts"), sized)
    if found.size_remark:
        print_line(screen, found.size_remark)
    for text in found.advice:
        print_line(screen, text)


def print_trial(
    planned: Sequence[Planned],
    hardware: Hardware,
    screen: Console,
    asked: Iterable[tuple[str, float]],
) -> None:
    """Print what would be started, and about how long all of it takes; `asked` says for each
    deployment what would be done with it, and for how many seconds.
    """
    print_layouts(outline_layouts(planned, hardware), screen)
    seconds = 0.0
    for text, asked_s in asked:
        print_line(screen, text)
        seconds += starting_s(hardware) + asked_s + stopping_s(hardware)
    layouts = counted(len(planned), "layout")
    print_line(screen, f"{layouts} on {hardware.name}: about {show_duration(seconds)} in all")


def print_plan(found: PlanOutline, screen: Console) -> None:
    """Print an outline."""
    print_layouts(found, screen)
    loads = []
    for load in found.workloads:
        operations = ", ".join(load.operations)
        if len(load.operations) > 1:
            operations = ", ".join(f"{name} {weight:g}" for name, weight in load.operations.items())
        loads.append(
            (
                load.name,
                f"{load.driver}, {load.layer or load.api}",
                operations,
                show_bytes(load.object_size_bytes),
                f"{load.objects:,}" if load.objects else UNKNOWN,
                " ".join(map(str, load.workers)),
                f"{load.warmup_s:g} s",
                f"{load.window_s:g} s",
            )
        )
    right = ("size", "objects", "workers", "warm-up", "window")
    print_table(screen, ("workload", "by", "operations", *right), loads, right=right)
    print_line(
        screen,
        f"{counted(found.repeats, 'repeat')} on {found.hardware}: "
        f"{counted(found.deployments, 'visit')}, {counted(found.steps, 'step')}, about "
        f"{show_duration(found.estimated_s)} in all",
    )
    print_line(screen, found.claim)
