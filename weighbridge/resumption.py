"""Resuming a run that was interrupted or killed: what is left to do according to its folder,
whether this is still the same machine, and what its last process left running.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from weighbridge.conductor.plan import Plan
from weighbridge.conductor.step_runner import complete_steps
from weighbridge.gateways.gateway import Say
from weighbridge.results.features.rate_search import read_searches
from weighbridge.results.run.reading import read_bounded
from weighbridge.results.run.resolved import Manifest
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import Holder, RunStore
from weighbridge.suites import Further
from weighbridge.topologies.deployment import StateFolders, deployment_owners
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import DeploymentOwner, remove_folder
from weighbridge.topologies.loader import Planned, checked_again

if TYPE_CHECKING:
    from weighbridge.topologies.lab.claim import ClaimedMachine

ALL: Final = "all"
MOST: Final = 100
"""Further repeats that a resumed run may have."""
KERNEL: Final = "sysctl kernel.osrelease"
KINDS_OF: Final[Mapping[str, str]] = MappingProxyType({"sysctl": "sysctl", "package": "packages"})
"""Facts of the machine that are accepted together, by the first word of their names."""
PASSING: Final = ("load before",)
"""Facts that change from hour to hour on the same machine."""


@dataclass(frozen=True)
class ResumableRun:
    """A run that has begun: its folder, plan, layouts ready to start, and complete steps."""

    store: RunStore
    plan: Plan
    planned: tuple[Planned, ...]
    complete: frozenset[StepKey]
    searching: frozenset[StepKey] = frozenset()
    """Complete steps after which the search of a rate is not over."""
    again: Mapping[StepKey, float] = field(default_factory=dict)
    """Steps to measure again, as of a StepRunner."""

    @property
    def done(self) -> bool:
        """Whether every step of the plan is measured, every search over, every power cut made."""
        return (
            not self.searching
            and self.complete.issuperset(
                key for visit in self.plan.visits for key in self.plan.keys(visit)
            )
            and not self.plan.cuts_missing(self.store.folder)
        )

    def with_further(self, within_s: float) -> ResumableRun:
        """The same, with further repeats in this time until every difference is clear."""
        further = Further(blocks=MOST, within=float(within_s))
        suite = self.plan.suite.model_copy(update={"further": further})
        return replace(self, plan=self.plan.model_copy(update={"suite": suite}))


class ChangedFact(Record):
    """A fact that has changed since the run began; `fact` is the name that accepts it."""

    fact: str
    of: str = ""
    before: str
    now: str

    def __str__(self) -> str:
        what = f"{self.fact} ({self.of})" if self.of else self.fact
        return f"{what}: {self.before or 'not known'} when it began, {self.now or 'not known'} now"


def load_run(folder: Path) -> ResumableRun:
    """Raises UsageError if the folder cannot be resumed, InvalidMeasurement about broken lines."""
    store = RunStore.open(folder)
    plan = _plan(store)
    faults: list[Fault] = []
    planned = []
    for layout in plan.layouts:
        try:
            planned.append(checked_again(layout, plan.hardware, str(folder / "plan.resolved.json")))
        except DocumentError as error:
            faults += error.faults
    if faults:
        raise DocumentError(faults)
    complete = frozenset(complete_steps(store.steps()))
    return ResumableRun(store, plan, tuple(planned), complete, _searching(store, plan))


def _searching(store: RunStore, plan: Plan) -> frozenset[StepKey]:
    searches = read_searches(store, plan.suite, plan.find)
    if searches is None:
        return frozenset()
    keys = (key for visit in plan.visits for key in plan.searched(visit))
    return frozenset(key for key in keys if searches.next_of(key) is not None)


def refuse_changed(
    run: ResumableRun, place: StateFolders, despite: Collection[str] = ()
) -> tuple[ChangedFact, ...]:
    """Facts that have changed, accepted by `despite`. Raises UsageError about others: results of
    two machines or versions do not belong in one table.
    """
    found = changed_facts(run, place)
    facts = list(dict.fromkeys(one.fact for one in found))
    strange = [name for name in despite if name not in (*facts, ALL)]
    if strange:
        hints = ", ".join(f"{name!r}{did_you_mean(name, facts)}" for name in strange)
        raise UsageError(f"--despite {hints}: no fact of that name has changed since the run began")
    refused = [one for one in found if ALL not in despite and one.fact not in despite]
    if refused:
        lines = "\n".join(f"  {one}" for one in refused)
        raise UsageError(
            f"{run.store.folder}: facts that decide results have changed:\n{lines}",
            advice="Resume it where it began, or make a new run. To resume it anyway: "
            f"--despite {','.join(facts)}",
        )
    return found


def changed_facts(run: ResumableRun, place: StateFolders) -> tuple[ChangedFact, ...]:
    """Facts of this machine, this program and the layouts' images that have changed."""
    manifest = run.store.manifest
    then = {
        name: text
        for sheet in manifest.sheets
        if sheet.title == "machine"
        for name, text in sheet.facts.items()
    }
    found = _differing(then, facts_of_machine(run.plan.hardware)) if then else []
    before, now = manifest.weighbridge_version, version("weighbridge")
    if before and before != now:
        found.append(ChangedFact(fact="weighbridge", before=before, now=now))
    if run.plan.hardware.of.contained:
        found += _rebuilt(manifest, run.planned, place)
    return tuple(found)


def remove_leftovers(
    holders: Collection[Holder], place: StateFolders, say: Say, *, lab: bool = True
) -> None:
    """Remove deployments that killed processes of this run left; touches nothing of others.

    `lab`: its hosts were containers; programs on other hosts have ended with it. Raises UsageError
    while that deployment's hosts are in use, TargetError if something cannot be removed.
    """
    left: list[ClaimedMachine | DeploymentOwner] = [*deployment_owners(place)]
    if lab:
        from weighbridge.topologies.lab import ending  # noqa: PLC0415 - only for lab hosts
        from weighbridge.topologies.lab.claim import claims  # noqa: PLC0415 - as above

        left += claims(place.state)
    ours = [one for one in left if _wrote(holders, one.pid, one.since)]
    for deployment in dict.fromkeys(one.deployment for one in ours):
        if lab:
            removed = ending.remove_leftovers(deployment, home=place.home, state=place.state)
            say(f"removed {deployment}, which was left running: {len(removed)} items")
        elif not any(
            one.deployment == deployment and Path(f"/proc/{one.pid}").exists() for one in ours
        ):
            # A process that has that number now may be using its own deployment.
            remove_folder(place.deployments / deployment)
            say(f"removed {deployment}, which was left")


def remove_ssh_leftovers(holders: Collection[Holder], hardware: Hardware, say: Say) -> None:
    """The same on real hosts. Raises TargetError if something stayed, or one does not answer,
    without which no run is resumed.
    """
    from weighbridge.topologies.ssh import leftovers  # noqa: PLC0415 - only for SSH hosts

    there = leftovers.find(hardware)
    mine = {
        one.claimed.deployment
        for one in there.deployments
        if not one.elsewhere and _wrote(holders, one.claimed.pid, one.claimed.since)
    }
    if not mine:
        return
    swept = leftovers.remove(hardware, mine, silent=there.failed)
    for deployment in sorted({one.deployment for one in swept.found}):
        hosts = sorted({one.host for one in swept.found if one.deployment == deployment})
        say(f"removed {deployment}, which was left running on {', '.join(hosts)}")
    if swept.failed:
        raise TargetError("\n".join(str(error) for error in swept.failed.values()))


def _wrote(holders: Collection[Holder], pid: int, since: str) -> bool:
    return any(pid == holder.pid and since >= holder.since for holder in holders)


def spent_s(store: RunStore) -> float:
    """Seconds that the run has taken so far, from the first to the last event of each session."""
    sessions = [[datetime.fromisoformat(store.manifest.created_at)]]
    for event in store.events():
        if event.kind == RESUMED:
            sessions.append([])
        sessions[-1].append(datetime.fromisoformat(event.at))
    return sum(
        max(0.0, (later - sooner).total_seconds())
        for session in sessions
        for sooner, later in pairwise(session)
    )


def uncut(plan: Plan, store: RunStore) -> tuple[str, ...]:
    """Layouts whose power was not cut as often as asked, although there was time for it."""
    if ended_by_budget(store):
        return ()
    return tuple(dict.fromkeys(name for name, _ in plan.cuts_missing(store.folder)))


def ended_by_budget(store: RunStore) -> bool:
    """Whether all that is left of the run did not fit into its budget."""
    lost = any(not step.complete for step in store.latest().values())
    return (
        store.manifest.state == "done"
        and not lost
        and any(event.kind == BUDGET for event in store.events())
    )


def _plan(store: RunStore) -> Plan:
    path = store.folder / "plan.resolved.json"
    try:
        return Plan.model_validate_json(read_bounded(path))
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
            advice=f"It was written by {wrote}, and this is {version('weighbridge')}: resume it "
            "with the version that wrote it.",
        ) from None


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[ChangedFact]:
    names = dict.fromkeys(name for name in (*before, *now) if name not in PASSING)
    found = []
    for name in names:
        then, today = (_steady(name, facts.get(name, "")) for facts in (before, now))
        if then != today:
            kind, _, rest = name.partition(" ")
            if name == KERNEL:
                fact, of = "kernel", ""
            else:
                fact, of = (KINDS_OF[kind], rest) if kind in KINDS_OF else (name, "")
            found.append(ChangedFact(fact=fact, of=of, before=then, now=today))
    return found


def _steady(name: str, text: str) -> str:
    found = re.fullmatch(r"(\d+) kB", text) if name == "memory" else None
    return f"{int(found[1]) / 2**20:.1f} GiB" if found else text


def _rebuilt(
    manifest: Manifest, planned: Sequence[Planned], place: StateFolders
) -> list[ChangedFact]:
    """Images that have been rebuilt since with other packages, or whose recipe has changed."""
    from weighbridge.topologies.images import key, packages_sum  # noqa: PLC0415 - as above

    sheets = {sheet.layout: sheet.facts for sheet in manifest.sheets if sheet.title == "deployment"}
    found = []
    for one in planned:
        image = one.gateway.image
        then = {
            name: text
            for name, text in sheets.get(one.layout.name, {}).items()
            if name.startswith("image ")
        }
        if not then or not image.packages:
            continue  # the layout was never started in this run
        now = f"image {key(image)}"
        text = packages_sum(place.images / key(image))
        if then != {now: text}:
            images = (f"{name.removeprefix('image ')} {sums}" for name, sums in then.items())
            before = ", ".join(images)
            found.append(
                ChangedFact(
                    fact="image", of=one.layout.name, before=before, now=f"{key(image)} {text}"
                )
            )
    return found
