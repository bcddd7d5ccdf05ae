"""Why a run's figures may be believed, or not: one sign for each thing that could have spoilt them.

Every sign is computed from judged results. What was not recorded is unknown, and never good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.outages import OutageRow, Outages
from weighbridge.results.analysis.sameness import beyond_bound, compare, host_doubts
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import highest
from weighbridge.results.analysis.steps.validity import DRIVER_CPU_SHARE
from weighbridge.results.doubt import BUSY_MILD, graves
from weighbridge.results.figures import counted, show_ratio, show_share
from weighbridge.results.record import Attested
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

SignState = Literal["good", "doubt", "bad", "unknown"]


class TrustSign(Record):
    """One sign: what it is about, the answer in a few words, and what that is based on."""

    title: str
    state: SignState
    words: str
    detail: str
    section: str
    """The section of the report that says more."""


_OUTAGES: Final = "outages"
_WATCHED: Final = "lab"
"""Kind of hosts of whose machine all CPU time is recorded."""


def trust(
    hardware_kind: str,
    layouts: Sequence[str],
    rows: Sequence[Row],
    attested: Sequence[Attested],
    comparison: Comparison | None,
    *,
    unequal: bool = False,
) -> tuple[TrustSign, ...]:
    """The signs of a run, in the order to ask. `unequal`: layouts do not use as many hosts."""
    measured = [row for row in rows if row.points]
    if not measured:
        return ()
    return (
        _hosts(attested, layouts, unequal=unequal),
        _machine(hardware_kind, measured),
        _steady(measured),
        _driver(measured),
        _repeats(measured, comparison is not None and bool(comparison.effects)),
        *_control(comparison),
        _failures(rows),
    )


def outage_trust(
    hardware_kind: str,
    layouts: Sequence[str],
    outages: Outages,
    attested: Sequence[Attested],
    *,
    unequal: bool = False,
) -> tuple[TrustSign, ...]:
    """The same of a run in whose every step something died: its rates are judged until then."""
    broken = outages.rows
    measured = [one.row for one in broken if one.row.points]
    if not measured:
        return ()
    repeats = _repeats(measured)
    control = [one.model_copy(update={"section": _OUTAGES}) for one in _control(outages.comparison)]
    signs = (
        _hosts(attested, layouts, unequal=unequal),
        _machine(hardware_kind, measured),
        _steady_before(measured),
        _driver(measured),
        repeats.model_copy(update={"section": _OUTAGES}),
        *control,
        _failures_before(broken),
    )
    # Such a report has no section of bottlenecks.
    return tuple(
        one.model_copy(update={"section": _OUTAGES}) if one.section == "limits" else one
        for one in signs
    )


def _hosts(attested: Sequence[Attested], layouts: Sequence[str], *, unequal: bool) -> TrustSign:
    beyond, found = beyond_bound(attested)
    deployments = len({(one.layout, one.repeat) for one in attested})
    short = sum(one.lacks for one in compare(attested))
    doubts = host_doubts(attested, layouts)
    state: SignState
    if not found:
        state, words = "unknown", "not compared" if deployments else "not attested"
        detail = "nothing was measured twice" if deployments else "their speed is not known"
    elif graves([one.doubt for one in doubts]):
        state, words = "bad", "differ"
        detail = f"{beyond} of {counted(found, 'figure')} beyond their bound"
    elif beyond or short or doubts:
        state, words = "doubt", "equal except for some"
        parts = [f"{beyond} beyond their bound"] * bool(beyond)
        parts += [f"{short} below their promise"] * bool(short)
        detail = f"of {counted(found, 'figure')}: {', '.join(parts) or 'some not attested'}"
    else:
        state, words = ("doubt", "equal, not used alike") if unequal else ("good", "equal")
        detail = f"{counted(found, 'figure')} in {counted(deployments, 'deployment')}"
    return TrustSign(title="Hosts", state=state, words=words, detail=detail, section="hosts")


def _machine(hardware_kind: str, rows: Sequence[Row]) -> TrustSign:
    doubts = [one for row in rows for one in row.doubts if one.what == "machine busy"]
    blind = sum(any(one.what == "machine not known" for one in row.doubts) for row in rows)
    state: SignState
    if doubts:
        heavy = graves(doubts)
        state, words = ("bad", "busy") if heavy else ("doubt", "busy at times")
        touched = sum(any(one.what == "machine busy" for one in row.doubts) for row in rows)
        detail = f"other programs took its CPUs in {touched} of {counted(len(rows), 'result')}"
    elif hardware_kind != _WATCHED or blind:
        state, words = "unknown", "not known"
        detail = "what other programs used was not recorded"
    else:
        state, words = "good", "quiet"
        detail = f"others used less than {show_share(BUSY_MILD)} of its CPUs in the median repeat"
    return TrustSign(title="Machine", state=state, words=words, detail=detail, section="limits")


def _steady(rows: Sequence[Row]) -> TrustSign:
    state, words = _steadiness([row.steady for row in rows], blind="doubt")
    return TrustSign(
        title="Steady",
        state=state,
        words=words,
        detail="results: throughput over each window",
        section="faults",
    )


def _steady_before(rows: Sequence[Row]) -> TrustSign:
    each = [{point.steady_before for point in row.used} for row in rows]
    verdicts = [False if False in one else None if None in one else True for one in each]
    state, words = _steadiness(verdicts, blind="unknown")
    return TrustSign(
        title="Steady",
        state=state,
        words=f"{words}, until the fault" if state == "good" else words,
        detail="results: throughput before something died",
        section=_OUTAGES,
    )


def _steadiness(verdicts: Sequence[bool | None], *, blind: SignState) -> tuple[SignState, str]:
    """`blind`: what it means that the steadiness of some is not known."""
    unsteady, unknown = verdicts.count(False), verdicts.count(None)
    if unsteady:
        return "bad", f"not in {unsteady} of {len(verdicts)}"
    if unknown:
        return blind, f"not known in {unknown} of {len(verdicts)}"
    return "good", "yes"


def _driver(rows: Sequence[Row]) -> TrustSign:
    """By the medians over the repeats; a repeat at a bound is not valid by itself."""
    shares, nics = (
        [share for row in rows if (share := highest(row.resources, what, ("client",))) is not None]
        for what in ("CPU", "network")
    )
    most, blind = max(shares, default=0.0), len(rows) - len(shares)
    held = sum(any(point.driver_full for point in row.points) for row in rows)
    state: SignState
    if most >= DRIVER_CPU_SHARE or held:
        everywhere = any(all(point.driver_full for point in row.points) for row in rows)
        state = "bad" if most >= DRIVER_CPU_SHARE or everywhere else "doubt"
        words = f"may have limited {held} of {len(rows)}" if held else "may have limited"
    elif blind:
        state, words = "unknown", f"not known in {blind} of {len(rows)}"
    else:
        state, words = "good", "had room"
    network = f" and {show_share(max(nics))} of its network" if nics else ""
    used = f"at most {show_share(most)} of its CPU{network} in the median repeat"
    return TrustSign(
        title="Load generator",
        state=state,
        words=words,
        detail=f"{used}, bound {show_share(DRIVER_CPU_SHARE)}" if shares else "CPU not recorded",
        section="limits",
    )


def _repeats(rows: Sequence[Row], compared: bool = False) -> TrustSign:
    counts = [row.repeats for row in rows]
    fewest, most = min(counts), max(counts)
    short = sum(count < REPEATS_FOR_A_CLAIM for count in counts)
    some = f": fewer in {short} of {len(rows)} results" if 0 < short < len(rows) else ""
    return TrustSign(
        title="Repeats",
        state="doubt" if short else "good",
        words=f"n = {fewest}" if fewest == most else f"n = {fewest} to {most}",
        detail=f"a claim needs {REPEATS_FOR_A_CLAIM}{some}",
        section="certainty" if compared else "table",
    )


def _control(comparison: Comparison | None) -> tuple[TrustSign, ...]:
    """Whether a layout differs from itself; empty where nothing is compared."""
    if comparison is None or not comparison.effects:
        return ()
    state: SignState
    shown = sum(one.shown for one in comparison.noise)
    floor = next((one for one in comparison.noise if one.metric == "throughput"), None)
    known = "" if floor is None else f"noise floor of throughput {show_ratio(floor.ratio)}"
    if comparison.noise:
        figures = counted(sum(one.cells for one in comparison.noise), "figure")
        state, words = ("doubt", "differs") if shown else ("good", "no difference found")
        fewest = min(one.repeats for one in comparison.noise)
        if fewest < REPEATS_FOR_A_CLAIM:
            state = "doubt"
        parts = [
            f"{shown} of {figures} differ, though none should" if shown else f"in {figures}",
            known,
            f"n = {fewest}, a claim needs {REPEATS_FOR_A_CLAIM}" * (fewest < REPEATS_FOR_A_CLAIM),
        ]
        detail = "; ".join(part for part in parts if part)
    else:
        state = "unknown"
        words = "not usable" if comparison.unused else "not measured"
        detail = "the noise floor is not known"
    return (
        TrustSign(
            title="A/A control", state=state, words=words, detail=detail, section="certainty"
        ),
    )


def _failures(rows: Sequence[Row]) -> TrustSign:
    """Of all rows: one without a measurement is not valid, and a repeat left out is a doubt."""
    spoilt = sum(not row.valid for row in rows)
    out = _left_out(rows)
    known = [count for row in rows if (count := row.count("errors")) is not None]
    errors = sum(known)
    state: SignState
    if spoilt:
        state, words = "bad", f"{spoilt} of {counted(len(rows), 'result')} not valid"
    elif out:
        state, words = "doubt", f"repeats left out in {out} of {len(rows)}"
    elif errors or len(known) < len(rows):
        state, words = "doubt", f"{errors:,}" if errors else "not known"
    else:
        state, words = "good", "none"
    return TrustSign(
        title="Errors",
        state=state,
        words=words,
        detail=f"{errors:,} failed requests" if spoilt or out else "failed requests",
        section="faults",
    )


def _failures_before(broken: Sequence[OutageRow]) -> TrustSign:
    """Requests that failed before anything died; those after it are what was to be seen."""
    rows = [one.row for one in broken]
    judged = _failures(rows)
    known = [count for one in broken if (count := _errors_before(one)) is not None]
    before, after = sum(known), sum(sum(one.errors.values()) for one in broken)
    state: SignState = judged.state
    words = judged.words
    if not any(not row.valid for row in rows) and not _left_out(rows):
        if len(known) < len(rows):
            state, words = "unknown", f"not recorded in {len(rows) - len(known)} of {len(rows)}"
        else:
            state, words = ("doubt", f"{before:,}") if before else ("good", "none before")
    return TrustSign(
        title="Errors",
        state=state,
        words=words,
        detail=f"failed requests before something died; {after:,} after it",
        section=_OUTAGES,
    )


def _left_out(rows: Sequence[Row]) -> int:
    """Rows whose repeats failed, or were left out but for a full load generator: another sign."""
    return sum(
        bool(row.lost)
        or any(
            not point.valid and not (point.driver_full and point.count("errors") == 0)
            for point in row.points
        )
        for row in rows
    )


def _errors_before(one: OutageRow) -> int | None:
    """Over the repeats that count, in complete seconds; None: not recorded."""
    if not one.seconds:
        return None
    each = sum(second.errors_s for second in one.seconds if second.second + 1 <= one.fault_s)
    return round(each * len(one.row.used))
