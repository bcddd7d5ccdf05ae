"""Why a run's figures may be believed, or not: one sign for each thing that could have spoilt them.

Every sign is computed from judged results. What was not recorded is unknown, and never good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import BUSY_MILD, graves
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import highest
from weighbridge.results.figures.validity import DRIVER_CPU_SHARE
from weighbridge.results.judge.comparison import Comparison
from weighbridge.results.judge.host_equality import beyond_bound, compare, host_doubts
from weighbridge.results.numbers import counted, show_ratio, show_share
from weighbridge.results.run import Attested

SignState = Literal["good", "doubt", "bad", "unknown"]


class TrustSign(Record):
    """One sign: what it is about, the answer in a few words, and what that is based on."""

    title: str
    state: SignState
    words: str
    detail: str
    section: str
    """The section of the report that says more."""


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
        hosts_sign(attested, layouts, unequal=unequal),
        machine_sign(hardware_kind, measured),
        _steady(measured),
        driver_sign(measured),
        repeats_sign(measured, comparison is not None and bool(comparison.effects)),
        *control_signs(comparison),
        failures_sign(rows),
    )


def hosts_sign(attested: Sequence[Attested], layouts: Sequence[str], *, unequal: bool) -> TrustSign:
    """Whether hosts could do the same."""
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


def machine_sign(hardware_kind: str, rows: Sequence[Row]) -> TrustSign:
    """Whether other programs took CPU of the machine."""
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
    state, words = steadiness_words([row.steady for row in rows], blind="doubt")
    return TrustSign(
        title="Steady",
        state=state,
        words=words,
        detail="results: throughput over each window",
        section="faults",
    )


def steadiness_words(verdicts: Sequence[bool | None], *, blind: SignState) -> tuple[SignState, str]:
    """`blind`: what it means that the steadiness of some is not known."""
    unsteady, unknown = verdicts.count(False), verdicts.count(None)
    if unsteady:
        return "bad", f"not in {unsteady} of {len(verdicts)}"
    if unknown:
        return blind, f"not known in {unknown} of {len(verdicts)}"
    return "good", "yes"


def driver_sign(rows: Sequence[Row]) -> TrustSign:
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


def repeats_sign(rows: Sequence[Row], compared: bool = False) -> TrustSign:
    """Whether there are as many as a claim needs."""
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


def control_signs(comparison: Comparison | None) -> tuple[TrustSign, ...]:
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


def failures_sign(rows: Sequence[Row]) -> TrustSign:
    """Of all rows: one without a measurement is not valid, and a repeat left out is a doubt."""
    spoilt = sum(not row.valid for row in rows)
    out = rows_left_out(rows)
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


def rows_left_out(rows: Sequence[Row]) -> int:
    """Rows whose repeats failed, or were left out but for a full load generator: another sign."""
    return sum(
        bool(row.lost)
        or any(
            not point.valid and not (point.driver_full and point.count("errors") == 0)
            for point in row.points
        )
        for row in rows
    )
