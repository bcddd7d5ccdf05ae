"""Why a run's figures may be believed, or not: one sign for each thing that could have spoilt them.

Every sign is computed from judged results. What was not recorded is unknown, and never good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weighbridge.results.figures.doubt import SPOILT, graves
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import highest
from weighbridge.results.figures.validity import DRIVER_CPU_SHARE
from weighbridge.results.judge.comparison import Comparison
from weighbridge.results.judge.host_equality import compare, host_doubts
from weighbridge.results.numbers import counted, show_ratio, show_share
from weighbridge.results.run import Attested

SignState = Literal["good", "doubt", "bad", "unknown"]


@dataclass(frozen=True)
class TrustSign:
    """One sign: what it is about, the answer in a few words, and what that is based on."""

    title: str
    state: SignState
    words: str
    detail: str
    section: str
    """The section of the report that says more."""


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
    state, words = steadiness_words([row.steady for row in measured], blind="unknown")
    return (
        _hosts_sign(attested, layouts, unequal=unequal),
        _machine_sign(hardware_kind, measured),
        TrustSign("Steady", state, words, "results: throughput over each window", "faults"),
        _driver_sign(measured),
        _repeats_sign(measured, comparison is not None and bool(comparison.effects)),
        *_control_signs(comparison),
        _failures_sign(rows),
    )


def _hosts_sign(
    attested: Sequence[Attested], layouts: Sequence[str], *, unequal: bool
) -> TrustSign:
    compared = [figure for figure in compare(attested) if figure.decides]
    twice = sum(figure.apart is not None for figure in compared)
    beyond = sum(figure.differs for figure in compared)
    short = sum(figure.lacks for figure in compared)
    deployments = len({(figure.layout, figure.repeat) for figure in attested})
    doubts = host_doubts(attested, layouts)
    figures = counted(twice, "figure")
    state: SignState = "good"
    words, detail = "equal", f"{figures} in {counted(deployments, 'deployment')}"
    if not twice:
        state, words = "unknown", "not compared" if deployments else "not attested"
        detail = "nothing was measured twice" if deployments else "their speed is not known"
    elif graves([pair.doubt for pair in doubts]):
        state, words, detail = "bad", "differ", f"{beyond} of {figures} beyond their bound"
    elif beyond or short or doubts:
        parts = [f"{beyond} beyond their bound"] * bool(beyond)
        parts += [f"{short} below their promise"] * bool(short)
        state, words = "doubt", "equal except for some"
        detail = f"of {figures}: {', '.join(parts) or 'some not attested'}"
    elif unequal:
        state, words = "doubt", "equal, not used alike"
    return TrustSign("Hosts", state, words, detail, "hosts")


def _machine_sign(hardware_kind: str, rows: Sequence[Row]) -> TrustSign:
    busy = [[doubt for doubt in row.doubts if doubt.what == "machine busy"] for row in rows]
    touched = sum(map(bool, busy))
    blind = any(doubt.what == "machine not known" for row in rows for doubt in row.doubts)
    windows = [point.others for row in rows for point in row.used if point.others is not None]
    spoilt = sum(share >= SPOILT for share in windows)
    state: SignState = "good"
    words = "quiet"
    detail = f"others used less than {show_share(SPOILT)} of its CPUs in every window"
    if spoilt:
        words = "busy at times"
        used = f"others used {show_share(SPOILT)} or more of its CPUs"
        detail = f"{used} in {spoilt} of {len(windows)} windows; ratios are adjusted"
    if touched:
        heavy = any(graves(doubts) for doubts in busy)
        state, words = ("bad" if heavy else "doubt"), "busy"
        detail = f"other programs took its CPUs in {touched} of {counted(len(rows), 'result')}"
    elif hardware_kind != "lab" or blind:
        state, words = "unknown", "not known"
        detail = "what other programs used was not recorded"
    return TrustSign("Machine", state, words, detail, "limits")


def steadiness_words(verdicts: Sequence[bool | None], *, blind: SignState) -> tuple[SignState, str]:
    """`blind`: what it means that the steadiness of some is not known."""
    unsteady, unknown = verdicts.count(False), verdicts.count(None)
    if unsteady:
        return "bad", f"not in {unsteady} of {len(verdicts)}"
    if unknown:
        return blind, f"not known in {unknown} of {len(verdicts)}"
    return "good", "yes"


def _driver_sign(rows: Sequence[Row]) -> TrustSign:
    """By the medians over the repeats; a repeat at a bound is not valid by itself."""
    shares, nics = (
        [share for row in rows if (share := highest(row.resources, what, ("client",))) is not None]
        for what in ("CPU", "network")
    )
    most, blind = max(shares, default=0.0), len(rows) - len(shares)
    held = sum(any(point.driver_full for point in row.points) for row in rows)
    state: SignState = "good"
    words = "had room"
    if most >= DRIVER_CPU_SHARE or held:
        everywhere = any(all(point.driver_full for point in row.points) for row in rows)
        state = "bad" if most >= DRIVER_CPU_SHARE or everywhere else "doubt"
        words = f"may have limited {held} of {len(rows)}" if held else "may have limited"
    elif blind:
        state, words = "unknown", f"not known in {blind} of {len(rows)}"
    network = f" and {show_share(max(nics))} of its network" if nics else ""
    used = f"at most {show_share(most)} of its CPU{network} in the median repeat"
    detail = f"{used}, bound {show_share(DRIVER_CPU_SHARE)}" if shares else "CPU not recorded"
    return TrustSign("Load generator", state, words, detail, "limits")


def _repeats_sign(rows: Sequence[Row], compared: bool = False) -> TrustSign:
    counts = [row.repeats for row in rows]
    fewest, most = min(counts), max(counts)
    short = sum(count < REPEATS_FOR_A_CLAIM for count in counts)
    some = f": fewer in {short} of {len(rows)} results" if 0 < short < len(rows) else ""
    words = f"n = {fewest}" if fewest == most else f"n = {fewest} to {most}"
    detail = f"a claim needs {REPEATS_FOR_A_CLAIM}{some}"
    section = "certainty" if compared else "table"
    return TrustSign("Repeats", "doubt" if short else "good", words, detail, section)


def _control_signs(comparison: Comparison | None) -> tuple[TrustSign, ...]:
    """Whether a layout differs from itself; empty where nothing is compared."""
    if comparison is None or not comparison.effects:
        return ()
    if not comparison.noise:
        words = "not usable" if comparison.unused else "not measured"
        detail = "the noise floor is not known"
        return (TrustSign("A/A control", "unknown", words, detail, "certainty"),)
    shown = sum(floor.shown for floor in comparison.noise)
    figures = counted(len(comparison.noise), "figure")
    fewest = min(floor.ratio.repeats for floor in comparison.noise)
    few = fewest < REPEATS_FOR_A_CLAIM
    floors = [
        f"noise floor of throughput {show_ratio(floor.floor)} over {floor.runs} runs"
        for floor in comparison.noise
        if floor.metric == "throughput" and floor.floor is not None
    ]
    parts = [
        f"{shown} of {figures} differ, though none should" if shown else f"in {figures}",
        *(floors[:1] or ["runs differ by more: not known yet"]),
        *[f"n = {fewest}, a claim needs {REPEATS_FOR_A_CLAIM}"] * few,
    ]
    state: SignState = "doubt" if shown or few else "good"
    words = "differs" if shown else "no difference found"
    return (TrustSign("A/A control", state, words, "; ".join(parts), "certainty"),)


def _failures_sign(rows: Sequence[Row]) -> TrustSign:
    """Of all rows: one without a measurement is not valid, and a repeat left out is a doubt."""
    spoilt, out = sum(not row.valid for row in rows), rows_left_out(rows)
    known = [count for row in rows if (count := row.count("errors")) is not None]
    errors = sum(known)
    state: SignState = "good"
    words, detail = "none", "failed requests"
    if spoilt or out:
        detail = f"{errors:,} failed requests"
        state, words = "doubt", f"repeats left out in {out} of {len(rows)}"
    if spoilt:
        state, words = "bad", f"{spoilt} of {counted(len(rows), 'result')} not valid"
    elif not out and (errors or len(known) < len(rows)):
        state, words = "doubt", f"{errors:,}" if errors else "not known"
    return TrustSign("Errors", state, words, detail, "faults")


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
