"""Power cuts of a layout under load: write, cut, start again on what is left, read everything."""

from __future__ import annotations

import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Final

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import CommandFailed, TargetError, UsageError, VerificationFailed
from weighbridge.common.record import Record
from weighbridge.drivers.survival import (
    Expected,
    InspectOrder,
    Operation,
    WriteOrder,
    Writing,
    expected_after,
    inspect,
    record_operations,
    unreadable,
    writing,
)
from weighbridge.gateways import verify
from weighbridge.results.run.durability import CUTS_FILE as CUTS
from weighbridge.results.run.durability import FINDINGS, Example, PowerCut, read_cuts, record_cut
from weighbridge.results.run.reading import read_record, write_atomically
from weighbridge.suites import Durability
from weighbridge.topologies.deployment import Deployment, StateFolders, deploy
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import PowerCuts
from weighbridge.topologies.loader import Layout, Planned

CONTROL_CUTS: Final = 2
"""Of a control: it has to lose something once."""
CONTROL_LOAD_S: Final = 10.0
"""Its load at most: short, so that little reaches disks by itself."""
FIRST_CUT: Final = 0.1
"""No cut is in this first part of the load, in which little has been written."""
SERVES_WITHIN_S: Final = 180.0
"""How long a store is asked again after a cut until it serves: one that recovers takes a minute."""
_LOOK_S: Final = 1.0
_INSPECTED_AT_ONCE: Final = 8
_LONGEST_WHY: Final = 300

Say = Callable[[str], None]


@dataclass(frozen=True)
class _Mark:
    """A moment of the load that all disks remember, between two times of CLOCK_MONOTONIC."""

    number: int
    at_s: float
    before_s: float
    after_s: float


def unfit(planned: Planned, hardware: Hardware, wanted: Durability) -> str:
    """Why the power of a layout cannot be cut; empty if it can."""
    name = planned.layout.name
    if planned.gateway.already_runs:
        return f"{name}: this suite cannot cut the power of a gateway that already runs"
    if not hardware.of.cuts_power:
        return f"{name}: this suite cannot cut a machine's power: choose lab hosts"
    if why := planned.gateway.cannot_restart():
        return f"{name}: {why}"
    if wanted.api is not None and not set(wanted.api) & set(planned.gateway.apis()):
        return f"{name}: has none of the APIs {', '.join(wanted.api)}"
    return ""


def refuse_unfit(wanted: Durability | None, planned: Sequence[Planned], hardware: Hardware) -> None:
    """Raise UsageError with every layout whose power cannot be cut as it is wanted."""
    if wanted is None:
        return
    faults = [why for one in planned if (why := unfit(one, hardware, wanted))]
    if faults:
        raise UsageError("\n".join(faults), advice="Leave the power cuts or those layouts out.")


def cuts_of(wanted: Durability, *, control: bool) -> tuple[int, float]:
    """How many cuts a pass has, and how long its load runs, in seconds."""
    if control:
        return min(CONTROL_CUTS, wanted.cuts), min(CONTROL_LOAD_S, wanted.load)
    return wanted.cuts, wanted.load


@dataclass
class DurabilityPass:
    """The cuts of one layout or its control, on its own deployment: lines go to `folder`, and what
    the load did to `logs/survival-LAYOUT-LOAD.jsonl`.
    """

    planned: Planned
    hardware: Hardware
    place: StateFolders
    say: Say
    _: KW_ONLY
    wanted: Durability
    seed: int
    folder: Path
    control: bool = False

    def __post_init__(self) -> None:
        layout = self.planned.layout.name
        self._name = layout + ("-control" if self.control else "")
        self._log = self.folder / "logs" / f"survival-{self._name}.log"
        self._seed = self.seed if self.wanted.seed is None else self.wanted.seed
        cuts = read_cuts(self.folder)
        own = [cut.load for cut in cuts if (cut.layout, cut.control) == (layout, self.control)]
        self._nth = max(own, default=0) + 1
        self._random = random.Random(f"{self._seed} {self._name} {self._nth}")  # noqa: S311 - repeatable, not secret
        self._count, self._load_s = cuts_of(self.wanted, control=self.control)

    def run(self) -> tuple[PowerCut, ...]:
        """All cuts. Raises TargetError when the layout does not start or fails, DriverError when
        load or inspection does; StoreError. What was recorded stays.
        """
        logs = self.folder / "logs" / f"durability-{self._name}"
        with deploy(
            self.planned, self.hardware, self.place, self.say, logs=logs, cuts=True
        ) as deployment:
            apis = self.wanted.api
            endpoints = tuple(
                one for one in deployment.endpoints if apis is None or one.api in apis
            )
            power = deployment.machines.power_cuts()
            order = self._order(endpoints)
            operations, marks = self._load(deployment, power, order)
            path = self.folder / "logs" / f"survival-{self._name}-{self._nth}.jsonl"
            record_operations(path, operations)
            cuts = []
            for mark in marks:
                expected = expected_after(operations, mark.before_s, mark.after_s)
                cuts.append(self._cut(deployment, power, order, mark, expected))
            return tuple(cuts)

    def _order(self, endpoints: tuple[Endpoint, ...]) -> WriteOrder:
        return WriteOrder(
            endpoints=endpoints,
            prefix=f"wb-{secrets.token_hex(4)}",
            sizes=self.wanted.sizes,
            multipart=self.wanted.multipart,
            workers=self.wanted.workers,
            overwrites=self.wanted.overwrites,
            deletes=self.wanted.deletes,
            seed=self._seed,
        )

    def _load(
        self, deployment: Deployment, power: PowerCuts, order: WriteOrder
    ) -> tuple[tuple[Operation, ...], tuple[_Mark, ...]]:
        """Write, and mark moments of it; nothing is outstanding at the end."""
        first_s = FIRST_CUT * self._load_s
        moments = sorted(self._random.uniform(first_s, self._load_s) for _ in range(self._count))
        self.say(
            f"{self._name}: writing for {self._load_s:g} s, with {self._count} moments for "
            "power cuts"
        )
        with writing(deployment.client, order, self._log) as writer:
            power.record(flushes=not self.control)
            began_s = time.monotonic()
            writer.go()
            marks = []
            for moment_s in moments:
                self._wait(deployment, writer, began_s + moment_s)
                before_s = time.monotonic()
                number = power.mark()
                marks.append(_Mark(number, before_s - began_s, before_s, time.monotonic()))
            deployment.check()
            writer.stop()
            power.cut()
            return writer.operations(), tuple(marks)

    def _wait(self, deployment: Deployment, writer: Writing, until_s: float) -> None:
        while (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _LOOK_S))
            writer.check()
            if left_s > _LOOK_S:
                deployment.check()

    def _cut(
        self,
        deployment: Deployment,
        power: PowerCuts,
        order: WriteOrder,
        mark: _Mark,
        expected: tuple[Expected, ...],
    ) -> PowerCut:
        # Every second cut keeps nothing that was not flushed: what a store loses most by.
        keep = 0.0 if mark.number % 2 or self.control else self.wanted.keep
        seed = self._random.randrange(2**32)
        began_s = time.monotonic()
        disks = power.restore(mark.number, keep=keep, seed=seed)
        why_not = self._why_not_serving(deployment, order.endpoints)
        took_s = time.monotonic() - began_s
        examples: tuple[Example, ...] = ()
        notes: tuple[str, ...] = ()
        if why_not:
            objects = unreadable(expected, why_not)
        else:
            asked = InspectOrder(
                endpoints=order.endpoints, seed=order.seed, threads=_INSPECTED_AT_ONCE
            )
            found = inspect(deployment.client, asked, expected, self._log)
            objects, examples, notes = found.objects, found.examples, found.notes
        for text in notes:
            self.say(f"{self._name}: cut {mark.number}: {text}")
        # If hosts or disks failed, what was found says nothing of the store.
        if gone := [name for name, host in deployment.hosts.items() if not host.is_up()]:
            names = ", ".join(gone)
            raise TargetError(f"{names}: gone before everything was read after a power cut")
        power.cut()
        cut = PowerCut(
            layout=self.planned.layout.name,
            release=self.planned.layout.release,
            control=self.control,
            number=mark.number,
            load=self._nth,
            at_s=round(mark.at_s, 3),
            seed=seed,
            keep=keep,
            serves_s=None if why_not else round(took_s, 3),
            why_not=why_not,
            objects=objects,
            disks=disks,
            examples=examples,
            notes=notes,
        )
        record_cut(self.folder, cut)
        self.say(f"{self._name}: cut {mark.number} of {self._count}: {words(cut)}")
        return cut

    def _why_not_serving(self, deployment: Deployment, endpoints: Sequence[Endpoint]) -> str:
        until_s = time.monotonic() + SERVES_WITHIN_S
        try:
            # What a start says is the same at every cut.
            deployment.start_again(tuple(deployment.hosts), lambda _: None)
            while True:
                try:
                    verify.verify(deployment.client, endpoints)
                except VerificationFailed:
                    deployment.check()
                    if time.monotonic() > until_s:
                        raise
                    time.sleep(_LOOK_S)
                else:
                    return ""
        except UsageError:
            raise
        except TargetError as error:
            return why(error)


def why(error: TargetError) -> str:
    """An error in a line: of a command the last of its output, since its script says little."""
    if not isinstance(error, CommandFailed):
        return error.message.splitlines()[0]
    how = "a command took too long" if error.code is None else f"a command ended with {error.code}"
    return ": ".join((error.host, how, *error.output.strip().splitlines()[-1:]))[:_LONGEST_WHY]


def words(cut: PowerCut) -> str:
    """What a cut did, in a line."""
    if cut.serves_s is None:
        return f"does not serve again: {cut.why_not}"
    found = [f"{count:,} {name}" for name in FINDINGS if (count := cut.count(name))]
    kept = f"serves after {cut.serves_s:.1f} s; of {cut.acknowledged:,} acknowledged objects"
    return f"{kept} {', '.join(found)}" if found else f"{kept} none is lost"


def missing(
    folder: Path, layouts: Iterable[str], wanted: Durability
) -> tuple[tuple[str, bool], ...]:
    """Which passes a run lacks: a layout's name, and whether it is the control's."""
    loads = Counter((cut.layout, cut.control, cut.load) for cut in read_cuts(folder))
    found: dict[tuple[str, bool], int] = {}
    for (name, control, _), made in loads.items():
        found[name, control] = max(made, found.get((name, control), 0))
    passes = [
        (name, control, cuts_of(wanted, control=control)[0])
        for name in layouts
        for control in ((True, False) if wanted.control else (False,))
    ]
    return tuple(
        (name, control) for name, control, count in passes if found.get((name, control), 0) < count
    )


FILE: Final = "durability.json"


class DurabilityOrder(Record):
    """The settings of all cuts of a folder. `layouts` are those that were cut, by name."""

    wanted: Durability
    seed: int
    hardware: str
    layouts: dict[str, Layout]

    def record(self, folder: Path) -> None:
        """Write it beside other layouts'. Raises UsageError about other settings, StoreError."""
        path = folder / FILE
        all_of_it = self
        if path.exists():
            before = read_record(path, DurabilityOrder)
            if other := self._other_than(before):
                raise UsageError(
                    f"{folder}: its cuts were made with other settings: {', '.join(other)}",
                    advice=f"Choose another folder with --out, or the settings in {path}.",
                )
            layouts: Mapping[str, Layout] = {**before.layouts, **self.layouts}
            all_of_it = self.model_copy(update={"layouts": layouts})
        elif (folder / CUTS).exists():
            raise UsageError(
                f"{folder}: has cuts, and no {FILE} that says how they were made",
                advice="Choose another folder with --out.",
            )
        write_atomically(path, all_of_it.model_dump_json(indent=1))

    def _other_than(self, before: DurabilityOrder) -> list[str]:
        mine, others = (one.model_dump(exclude={"layouts"}) for one in (self, before))
        mine, others = ({**one.pop("wanted"), **one} for one in (mine, others))
        names = [name for name in mine if mine[name] != others[name]]
        return names + [
            f"the layout {name}"
            for name, layout in self.layouts.items()
            if before.layouts.get(name, layout) != layout
        ]
