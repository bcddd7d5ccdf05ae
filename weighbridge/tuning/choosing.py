"""Choosing a winner: the settings that are better, together if possible, and what to paste."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weighbridge.common.document import DocumentError
from weighbridge.gateways.fragments import fragments
from weighbridge.results.analysis.tuning.setting_table import SettingEntry, SettingTable
from weighbridge.results.record.trial import Fragment, Winner
from weighbridge.topologies.reference import LONGEST_NAME
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import Candidate, Choice

Refusal = Callable[[Candidate], str]
"""Why the programs of the release refuse a candidate; empty if they do not."""
TUNED = "-tuned"


def choose(
    prepared: PreparedTuning,
    candidates: Mapping[str, Candidate],
    table: SettingTable,
    refusal: Refusal,
) -> tuple[Candidate, Winner] | None:
    """The winner of a tuning with its layout; None if nothing is better.

    For a screen, the best better level of each parameter, all together: they were tried one at a
    time, and the confirmation shows whether their effects add up. For a grid or a search, the best
    candidate.
    """
    better = sorted(
        (
            entry
            for entry in table.entries
            if entry.verdict == "better"
            and entry.gain is not None
            and entry.variant.name in candidates
        ),
        key=lambda entry: entry.gain or 0.0,
        reverse=True,
    )
    if not better:
        return None
    if prepared.tuning.strategy == "screen":
        one, chosen, reason = _together(prepared, candidates, better, refusal)
    else:
        one, chosen = candidates[better[0].variant.name], better[:1]
        others = f" of the {len(better)} that were better" if len(better) > 1 else ""
        reason = f"{better[0].name}: the largest gain{others}"
    evidence = [effect.text for entry in chosen for effect in entry.effects]
    where, before, after = prepared.hardware.sites, prepared.baseline.planned, one.planned
    pasted = fragments(before.gateway.render(where), after.gateway.render(where), evidence)
    return one, Winner(
        arm=one.variant,
        reason=reason,
        fragments=tuple(Fragment(name=part.name, text=part.text) for part in pasted),
    )


def _together(
    prepared: PreparedTuning,
    candidates: Mapping[str, Candidate],
    better: Sequence[SettingEntry],
    refusal: Refusal,
) -> tuple[Candidate, list[SettingEntry], str]:
    """The best better level of each parameter, the largest gain first."""
    best: dict[int, tuple[SettingEntry, Choice]] = {}
    weaker = []
    for entry in better:
        choice = candidates[entry.variant.name].choices[0]
        if choice.parameter in best:
            weaker.append(entry.name)
        else:
            best[choice.parameter] = (entry, choice)
    entries = [entry for entry, _ in best.values()]
    others = f"; {', '.join(weaker)} gained less" if weaker else ""
    if len(best) == 1:
        return (
            candidates[entries[0].variant.name],
            entries,
            f"{entries[0].name}: the only setting that was better{others}",
        )
    why = ""
    try:
        name = f"{prepared.baseline.variant.name[: LONGEST_NAME - len(TUNED)]}{TUNED}"
        one = prepared.space.candidate([choice for _, choice in best.values()], name=name)
        why = refusal(one)
    except DocumentError as error:
        why = "; ".join(dict.fromkeys(fault.message for fault in error.faults))
    if why:
        with_ = ", ".join(entry.name for entry in entries[1:])
        text = f"{entries[0].name}: the largest gain; it cannot be combined with {with_}"
        return candidates[entries[0].variant.name], entries[:1], f"{text} ({why.splitlines()[0]})"
    names = ", ".join(entry.name for entry in entries)
    return (
        one,
        entries,
        f"{names}: each was better alone, and the best of its parameter{others}",
    )
