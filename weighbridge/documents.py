"""What verbs that compare runs, cut power, or look at what is there, print with `--json`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from weighbridge.common.errors import UsageError, WeighbridgeError
from weighbridge.common.record import JsonDocument, Record
from weighbridge.results.derivation import ANSWER, Derived
from weighbridge.results.features.durability import LayoutDurability, durability
from weighbridge.results.features.history import History
from weighbridge.results.features.run_guard import Guarded
from weighbridge.results.features.tuning.feature import LEDGER, TRIALS
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, NoiseFloor
from weighbridge.results.judge.leads import Lead, Standing
from weighbridge.results.judge.reasons import Reason, Remedy
from weighbridge.results.run.reading import read_bounded
from weighbridge.results.run.store import RunStore, is_locked
from weighbridge.results.show.tables import EFFECTS, rows_table
from weighbridge.suites import loader as suite_files
from weighbridge.topologies.loader import load_hardware, shipped_hardware


class ComparedRunsDocument(JsonDocument):
    """What `compare-runs` prints."""

    document: Literal["compared runs"] = "compared runs"
    a: str
    b: str
    guarded: Guarded
    """Facts that are the same in both, that are not known, and that differ."""
    comparison: Comparison
    """Each effect with its tests, as in comparison.json."""
    lost: tuple[str, ...]
    """What was comparable in A and is not in B, or has no result there."""


class HistoryDocument(JsonDocument):
    """What `history` prints."""

    document: Literal["history"] = "history"
    answer: str
    """What changed last, in one sentence, or that nothing did."""
    history: History
    """Runs, the series of their figures, the changes in them, and where runs are not compared."""
    gone: tuple[str, ...] = ()
    """Runs that are kept, and whose folders were not read."""
    left_out: tuple[str, ...] = ()
    """A sentence for each folder that could not be read."""


class DurabilityDocument(JsonDocument):
    """What `durability` prints."""

    document: Literal["durability"] = "durability"
    layouts: tuple[LayoutDurability, ...]
    failed: tuple[str, ...] = ()
    """Layouts that could not be tried to the end, and why."""


class RequirementSeen(Record):
    """Something that hosts need, and whether it is there."""

    host: str
    """A real host; empty: this machine."""
    name: str
    found: bool
    optional: bool = False
    """Whether only some options need it."""
    why: str
    remedy: str
    """How to get it."""


class DoctorDocument(JsonDocument):
    """What `doctor` prints."""

    document: Literal["doctor"] = "doctor"
    hardware: str
    requirements: tuple[RequirementSeen, ...]
    """What this machine, and real hosts, need for the hardware; exit code 2 if anything that is not
    optional is missing.
    """
    advice: tuple[str, ...] = ()
    """What is allowed in a layout that was checked, and seldom meant."""


class ShippedLayout(Record):
    """A layout that ships."""

    name: str
    about: str
    gateway: str
    releases: tuple[str, ...]
    """Its own first, then others that have its settings."""


class ParameterOfGateway(Record):
    """A setting of layouts of one gateway."""

    gateway: str
    key: str
    """Dotted, below `settings`."""
    kind: str
    default: str
    about: str


class TopologiesDocument(JsonDocument):
    """What `topologies` prints."""

    document: Literal["topologies"] = "topologies"
    layouts: tuple[ShippedLayout, ...]
    parameters: tuple[ParameterOfGateway, ...]
    """Every setting of their gateways, with its default."""


class ReachedEndpoint(Record):
    """One API of a running deployment, with what it takes to use it."""

    api: str
    urls: tuple[str, ...]
    user: str
    key: str
    """The secret key, as `status` shows it."""


class DeadDaemon(Record):
    """A daemon that was started and has died."""

    host: str
    service: str
    log: str
    """The path of its output: on this machine, or on its real host."""


class RunningDeployment(Record):
    """A deployment that is running, or was left."""

    label: str
    layout: str
    """Empty for one that this machine did not make."""
    hardware: str
    since: str
    state: Literal["running", "in use", "left running", "made on another machine"]
    """`running`: on lab hosts. On real hosts, `in use`: by a command of this machine that is at
    work; `left running`: its command has ended; or `made on another machine`."""
    addresses: dict[str, str]
    endpoints: tuple[ReachedEndpoint, ...]
    dead: tuple[DeadDaemon, ...]


class StatusDocument(JsonDocument):
    """What `status` prints."""

    document: Literal["status"] = "status"
    deployments: tuple[RunningDeployment, ...]
    silent: dict[str, str] = Field(default_factory=dict)
    """Real hosts that do not answer, and why: what runs there is not known."""


class LabImage(Record):
    """A root image of lab hosts."""

    name: str
    debian: str
    """The release of Debian or Ubuntu whose packages it has."""
    built: str
    """The day of its packages; empty: not built."""
    packages: str
    """A sum over names and versions of its packages; empty: not built."""


class ImagesDocument(JsonDocument):
    """What `images` prints."""

    document: Literal["images"] = "images"
    images: tuple[LabImage, ...]


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


MANIFEST = "manifest.json"
"""What makes a folder the folder of a run."""
REPORT = Path("derived", "report.html")


class ListedRun(Record):
    """A run, as far as its folder says without being analysed."""

    folder: str
    created_at: str
    suite: str
    layouts: tuple[str, ...]
    state: str
    """running, done, failed, interrupted, or killed: it ended without saying so."""
    answer: str
    """What came of it, in a sentence; empty if nothing was compared, or no report was made."""


class RunsDocument(JsonDocument):
    """What `runs` prints."""

    document: Literal["runs"] = "runs"
    runs: tuple[ListedRun, ...]
    """The newest first."""
    unreadable: tuple[str, ...] = ()
    """Folders of runs that cannot be read, and why."""


def runs_below(folder: Path) -> RunsDocument:
    """All runs whose folders are directly in `folder`. Raises UsageError without such a folder."""
    found, unreadable = [], []
    for one in sorted(run_folders(folder), reverse=True):
        try:
            found.append(_listed(one))
        except WeighbridgeError as error:
            unreadable.append(f"{one}: {error.message.splitlines()[0]}")
    found.sort(key=lambda one: one.created_at, reverse=True)
    return RunsDocument(runs=tuple(found), unreadable=tuple(unreadable))


def run_folders(folder: Path) -> tuple[Path, ...]:
    """Folders of runs in `folder`, or itself if it is one. Raises UsageError without any."""
    try:
        if (folder / MANIFEST).exists():
            return (folder,)
        inside = sorted(one for one in folder.iterdir() if one.is_dir())
    except OSError as error:
        raise UsageError(
            f"{folder}: {error.strerror}", advice="Name the folder that --out of `compare` named."
        ) from error
    return tuple(one for one in inside if (one / MANIFEST).exists())


def newest_below(folder: Path) -> Path:
    """The newest run directly in `folder`. Raises UsageError if there is none."""
    found = runs_below(folder).runs
    if not found:
        raise UsageError(f"{folder}: there is no run", advice="Name the folder of a run.")
    return Path(found[0].folder)


def report_of(run: Path) -> Path:
    """The report in a run's folder. Raises UsageError if it has none."""
    RunStore.open(run)
    path = run / REPORT
    if not path.is_file():
        raise UsageError(f"{run}: has no report", advice=f"Make it: weighbridge report {run}")
    return path


def _listed(folder: Path) -> ListedRun:
    store = RunStore.open(folder)
    manifest, plan = store.manifest, store.plan()
    killed = manifest.state == "running" and not is_locked(folder)
    return ListedRun(
        folder=str(folder),
        created_at=manifest.created_at,
        suite=manifest.suite,
        layouts=plan.measured,
        state="killed" if killed else manifest.state,
        answer=_answer(folder),
    )


def _answer(folder: Path) -> str:
    try:
        return read_bounded(folder / "derived" / ANSWER).decode("utf-8", "replace").strip()
    except OSError:
        return ""


# What verbs that measure, or read a run, print with `--json`.
#
# Figures are those of the exported tables and of what was derived: nothing is computed again.


JsonTable = tuple[dict[str, JsonValue], ...]


class WorkloadLead(Record):
    """Who is fastest in one workload."""

    about: str
    """`64 kB reads`."""
    standing: Standing
    """ahead: somebody leads. alike: all are equivalent. mixed: nobody leads, but a layout is ahead
    of another. open: no difference was found. not comparable: fewer than two are."""
    leaders: tuple[str, ...]
    """The fastest layouts, of which none is faster than another; empty: nobody leads."""
    others: tuple[str, ...]
    """The layouts behind them, fastest first; without leaders all that are comparable."""
    ratio: Ratio | None
    """Throughput of the slowest leader relative to the fastest of the others."""
    caveats: tuple[str, ...]
    """Why it is no claim."""
    text: str
    """The effect behind it, in a sentence."""


def _workload_lead(lead: Lead) -> WorkloadLead:
    return WorkloadLead(
        about=lead.about,
        standing=lead.standing,
        leaders=lead.leaders,
        others=lead.others,
        ratio=lead.ratio,
        caveats=tuple(dict.fromkeys(doubt.words for doubt in lead.doubts)),
        text=lead.effect.text if lead.effect is not None else "",
    )


class RunDocument(JsonDocument):
    """A run and what it came to."""

    document: Literal["run"] = "run"
    run: str
    folder: str
    suite: str
    state: str
    """running, done, failed or interrupted."""
    report: str | None
    """The report's path; null without the extra that makes reports."""
    answer: str = ""
    """Who is how many times as fast in what, in one sentence; empty if nothing was compared."""
    caveat: str = ""
    """What keeps the answer of a comparison from being a claim; empty for claims."""
    context: str
    """What was compared: releases, API, hosts, repeats."""
    leads: tuple[WorkloadLead, ...] = ()
    """Who is fastest in each workload; the table `effects` has every pair and worker count."""
    doubts: tuple[Reason, ...] = ()
    """Why figures are not ranked or provisional, and which."""
    noise: tuple[NoiseFloor, ...] = ()
    """The noise floor of this machine by metric, from A/A controls."""
    remedy: Remedy | None = None
    """What would settle what is open, and the command for it."""
    sentences: tuple[str, ...] = ()
    """What else can be said: what each feature says (rates, outages, power cuts ...), and hosts."""
    durability: tuple[LayoutDurability, ...] = ()
    gaps: tuple[str, ...] = ()
    tables: dict[str, JsonTable]
    """The tables `summary` and `effects`, of a tuning also `ledger` and `trials`, as `export --to
    json` writes them: its `--schema` describes their fields.
    """


def run_document(derived: Derived, exit_code: int) -> RunDocument:
    """The document of a run whose report was derived."""
    data = derived.data
    run = data.manifest.run_id
    tables = [rows_table(data.rows, run, data.plan.twins), EFFECTS.of_runs([data])]
    if data.tuning is not None:
        tables += [LEDGER.of_runs([data]), TRIALS.of_runs([data])]
    return RunDocument(
        exit_code=exit_code,
        run=run,
        folder=str(data.store.folder),
        suite=data.manifest.suite,
        state=data.manifest.state,
        report=None if derived.report is None else str(derived.report),
        answer=derived.answer,
        caveat=derived.answered.caveat,
        context=derived.answered.context,
        leads=tuple(_workload_lead(lead) for lead in derived.answered.leads),
        doubts=derived.reasons,
        noise=data.comparison.noise,
        remedy=derived.remedy,
        sentences=(
            *(text for section in derived.sections for text in section.sentences),
            *derived.hosts,
        ),
        durability=durability(data),
        gaps=data.gaps,
        tables={one.table.name: tuple(one.objects) for one in tables},
    )
