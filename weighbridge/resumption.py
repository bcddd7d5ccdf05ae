"""Going on with a run that was ended or killed: what its folder says was to be done, whether this
is still the same machine, and what its last process has left standing here.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from weighbridge.common.document import DocumentError, Fault, did_you_mean
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.record import Record
from weighbridge.conductor.conductor import BUDGET, RESUMED
from weighbridge.conductor.facts import facts_of_machine
from weighbridge.conductor.measuring import whole
from weighbridge.conductor.plan import Plan
from weighbridge.gateways.gateway import Say
from weighbridge.results.record.hold import Holder
from weighbridge.results.record.manifest import Manifest
from weighbridge.results.record.reading import read_whole
from weighbridge.results.record.step import StepKey
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Further
from weighbridge.topologies.conducting import Conducted
from weighbridge.topologies.deployment import StatePlace, conducted
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned, planned_again

if TYPE_CHECKING:
    from weighbridge.topologies.lab.claim import ClaimedMachine

ALL: Final = "all"
MOST: Final = 100
"""Repeats that a run may be gone on with by."""
KERNEL: Final = "sysctl kernel.osrelease"
KINDS_OF: Final[Mapping[str, str]] = MappingProxyType({"sysctl": "sysctl", "package": "packages"})
"""Facts of the machine that are passed over together, by the first word of their names."""
PASSING: Final = ("load before",)
"""Facts of the machine that may differ from one hour to the next without the machine being another.
"""


@dataclass(frozen=True)
class Begun:
    """A run that has been begun: its folder, its plan, its layouts ready to be stood up, and the
    steps that are whole.
    """

    store: RunStore
    plan: Plan
    planned: tuple[Planned, ...]
    whole: frozenset[StepKey]

    @property
    def done(self) -> bool:
        """Whether every step of the plan is measured."""
        return all(key in self.whole for visit in self.plan.visits for key in self.plan.keys(visit))

    def with_further(self, within_s: float) -> Begun:
        """The same, with as many further repeats as fit into a time while not all is clear."""
        further = Further(blocks=MOST, within=float(within_s))
        suite = self.plan.suite.model_copy(update={"further": further})
        return replace(self, plan=self.plan.model_copy(update={"suite": suite}))


class Unlike(Record):
    """A fact that was another when the run was begun:

    `fact` is what it is called to be passed over, `of` what it is of.
    """

    fact: str
    of: str = ""
    before: str
    now: str

    def __str__(self) -> str:
        what = f"{self.fact} ({self.of})" if self.of else self.fact
        return (
            f"{what}: {self.before or 'not known'} when it was begun, {self.now or 'not known'} now"
        )


def begun(folder: Path) -> Begun:
    """The run of a folder.

    Raises UsageError when it is none or cannot be gone on with, InvalidMeasurement about broken
    lines.
    """
    store = RunStore.open(folder)
    plan = _plan(store)
    if "attest" not in plan.model_fields_set:
        # Plans of earlier versions do not say; what their hosts were measured at does.
        plan = plan.model_copy(
            update={"attest": any(one.kind != "osd" for one in store.attested())}
        )
    faults: list[Fault] = []
    planned = []
    for layout in plan.layouts:
        try:
            planned.append(planned_again(layout, plan.hardware, str(folder / "plan.resolved.json")))
        except DocumentError as error:
            faults += error.faults
    if faults:
        raise DocumentError(faults)
    return Begun(store, plan, tuple(planned), frozenset(whole(store.steps())))


def refuse_unlike(
    run: Begun, place: StatePlace, despite: Collection[str] = ()
) -> tuple[Unlike, ...]:
    """What differs from when the run was begun, all of it named in `despite`, or that says `all`.

    Raises UsageError with what differs and is not: figures of two machines, or of two versions, do
    not belong into one table.
    """
    found = unlike(run, place)
    facts = list(dict.fromkeys(one.fact for one in found))
    strange = [name for name in despite if name not in (*facts, ALL)]
    if strange:
        hints = ", ".join(f"{name!r}{did_you_mean(name, facts)}" for name in strange)
        raise UsageError(
            f"--despite {hints}: nothing of that name differs from when the run was begun"
        )
    refused = [one for one in found if ALL not in despite and one.fact not in despite]
    if refused:
        lines = "\n".join(f"  {one}" for one in refused)
        raise UsageError(
            f"{run.store.folder}: what decides the figures is not what it was:\n{lines}",
            advice="Go on where it was begun, or make a new run. To go on all the same: "
            f"--despite {','.join(facts)}",
        )
    return found


def unlike(run: Begun, place: StatePlace) -> tuple[Unlike, ...]:
    """Facts of this machine, this program and the images of the layouts that were others when the
    run was begun.
    """
    manifest = run.store.manifest
    then = {
        name: text
        for sheet in manifest.sheets
        if sheet.title == "machine"
        for name, text in sheet.facts.items()
    }
    found = _differing(then, facts_of_machine(run.plan.hardware)) if then else []
    if manifest.weighbridge_version and manifest.weighbridge_version != version("weighbridge"):
        found.append(
            Unlike(
                fact="weighbridge", before=manifest.weighbridge_version, now=version("weighbridge")
            )
        )
    if run.plan.hardware.of.contained:
        found += _rebuilt(manifest, run.planned, place)
    return tuple(found)


def take_away_leftovers(
    holders: Collection[Holder], place: StatePlace, say: Say, *, lab: bool = True
) -> None:
    """Take away what stands of a process that wrote to the run, if it was killed. Of others nothing
    is touched.

    `lab`: its hosts were containers; programs on others have ended with it. Raises UsageError while
    that deployment's hosts are still at work, TargetError when something cannot be taken away.
    """
    left: list[ClaimedMachine | Conducted] = [*conducted(place)]
    if lab:
        from weighbridge.topologies.lab import leftovers  # noqa: PLC0415 - the lab is wanted only where there is one
        from weighbridge.topologies.lab.claim import claims  # noqa: PLC0415

        left += claims(place.state)
    ours = [
        one
        for one in left
        if any(one.pid == holder.pid and one.since >= holder.since for holder in holders)
    ]
    for deployment in dict.fromkeys(one.deployment for one in ours):
        if lab:
            removed = leftovers.remove(deployment, home=place.home, state=place.state)
            say(f"removed {deployment}, which was left standing: {len(removed)} things")
        elif not any(
            one.deployment == deployment and Path(f"/proc/{one.pid}").exists() for one in ours
        ):
            # Whoever has that number now may be at work with a deployment of its own.
            shutil.rmtree(place.deployments / deployment)
            say(f"removed {deployment}, which was left")


def take_away_from_real_hosts(holders: Collection[Holder], hardware: Hardware, say: Say) -> None:
    """The same on real hosts, by their claims: those of a process of this machine that wrote to the
    run and was killed.

    Raises TargetError where something stayed. A host that does not answer is named: without it the
    run cannot be gone on with.
    """
    from weighbridge.topologies.ssh import leftovers  # noqa: PLC0415 - the way to real hosts is wanted only where there are some

    there = leftovers.find(hardware)
    mine = {
        one.claimed.deployment
        for one in there.stood
        if not one.elsewhere
        and any(
            one.claimed.pid == holder.pid and one.claimed.since >= holder.since
            for holder in holders
        )
    }
    if not mine:
        return
    swept = leftovers.remove(hardware, mine, silent=there.failed)
    for deployment in sorted({one.deployment for one in swept.found}):
        hosts = sorted({one.host for one in swept.found if one.deployment == deployment})
        say(f"removed {deployment}, which was left standing on {', '.join(hosts)}")
    if swept.failed:
        raise TargetError("\n".join(str(error) for error in swept.failed.values()))


def spent_s(store: RunStore) -> float:
    """Seconds that the run has taken so far: from the first to the last that was written down in
    each go.
    """
    goes = [[datetime.fromisoformat(store.manifest.created_at)]]
    for event in store.events():
        if event.kind == RESUMED:
            goes.append([])
        goes[-1].append(datetime.fromisoformat(event.at))
    return sum(
        max(0.0, (later - sooner).total_seconds()) for go in goes for sooner, later in pairwise(go)
    )


def ended_by_budget(store: RunStore) -> bool:
    """Whether all that is left of the run is what its budget held no more."""
    lost = any(not step.whole for step in store.latest().values())
    return (
        store.manifest.state == "done"
        and not lost
        and any(event.kind == BUDGET for event in store.events())
    )


def _plan(store: RunStore) -> Plan:
    path = store.folder / "plan.resolved.json"
    try:
        return Plan.model_validate_json(read_whole(path))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", advice=f"Is {store.folder} the folder of a run?"
        ) from error
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        wrote = (
            f"weighbridge {store.manifest.weighbridge_version}"
            if store.manifest.weighbridge_version
            else "another weighbridge"
        )
        raise UsageError(
            f"{path}: this plan cannot be read: {where}: {fault['msg']}".replace(": :", ":"),
            advice=f"It was written by {wrote}, and this is {version('weighbridge')}: go on with "
            "the one that wrote it.",
        ) from None


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[Unlike]:
    names = dict.fromkeys(name for name in (*before, *now) if name not in PASSING)
    found = []
    for name in names:
        then, today = (_steady(name, facts.get(name, "")) for facts in (before, now))
        if then != today:
            kind, _, rest = name.partition(" ")
            fact, of = (
                ("kernel", "")
                if name == KERNEL
                else (KINDS_OF.get(kind, name), rest if kind in KINDS_OF else "")
            )
            found.append(Unlike(fact=fact, of=of, before=then, now=today))
    return found


def _steady(name: str, text: str) -> str:
    """A fact as it is compared.

    Memory in GiB with one decimal: what a kernel keeps for itself differs from boot to boot.
    """
    found = re.fullmatch(r"(\d+) kB", text) if name == "memory" else None
    return f"{int(found[1]) / 2**20:.1f} GiB" if found else text


def _rebuilt(manifest: Manifest, planned: Sequence[Planned], place: StatePlace) -> list[Unlike]:
    """Images that were built anew since, with other packages, or that a changed recipe would
    build.
    """
    from weighbridge.topologies.images import key, packages_sum  # noqa: PLC0415 - as above

    sheets = {sheet.layout: sheet.facts for sheet in manifest.sheets if sheet.title == "deployment"}
    found = []
    for one in planned:
        image = one.gateway.releases[one.gateway.release]
        then = {
            name: text
            for name, text in sheets.get(one.layout.name, {}).items()
            if name.startswith("image ")
        }
        if not then or not image.packages:
            continue  # the layout never stood in this run
        now = f"image {key(image)}"
        text = packages_sum(place.images / key(image))
        if then != {now: text}:
            before = ", ".join(
                f"{name.removeprefix('image ')} {told}" for name, told in then.items()
            )
            found.append(
                Unlike(fact="image", of=one.layout.name, before=before, now=f"{key(image)} {text}")
            )
    return found
