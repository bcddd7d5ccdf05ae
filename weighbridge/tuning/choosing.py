"""Choosing a winner: the settings that were shown to be better, together where that can be, and
what to paste to have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weighbridge.common.document import DocumentError
from weighbridge.results.analysis.tuning.ledger import Ledger, LedgerEntry
from weighbridge.results.record.trial import Fragment, Winner
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.reference import LONGEST_NAME
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.space import Candidate, Choice

Refusal = Callable[[Candidate], str]
"""Why the programs of the release do not take an arm; empty where they do."""
TUNED = "-tuned"


def choose(
    ready: PreparedTuning, candidates: Mapping[str, Candidate], ledger: Ledger, refusal: Refusal
) -> tuple[Candidate, Winner] | None:
    """The winner of a tuning with its layout; None where nothing was shown to be better.

    Of a screen each parameter's best level that is better, all together: they were tried one at a
    time, and that they do together what they do alone is what the confirmation is for. Of a grid
    and a search the best arm.
    """
    better = sorted(
        (
            entry
            for entry in ledger.entries
            if entry.verdict == "better" and entry.gain is not None and entry.arm.name in candidates
        ),
        key=lambda entry: entry.gain or 0.0,
        reverse=True,
    )
    if not better:
        return None
    if ready.tuning.strategy == "screen":
        one, chosen, reason = _together(ready, candidates, better, refusal)
    else:
        one, chosen = candidates[better[0].arm.name], better[:1]
        others = f" of the {len(better)} that were better" if len(better) > 1 else ""
        reason = f"{better[0].name}: the largest gain{others}"
    evidence = [effect.text for entry in chosen for effect in entry.effects]
    return one, Winner(
        arm=one.arm, reason=reason, fragments=pasted(ready.baseline, one, ready.hardware, evidence)
    )


def pasted(
    before: Candidate, after: Candidate, hardware: Hardware, evidence: Sequence[str]
) -> tuple[Fragment, ...]:
    """What has to be pasted into which file to have an arm instead of another; none of gateways
    that have no files.
    """
    from weighbridge.gateways.fragments import fragments  # noqa: PLC0415 - wanted once, at the end

    where = hardware.sites
    found = fragments(
        before.planned.gateway.render(where), after.planned.gateway.render(where), evidence
    )
    return tuple(Fragment(name=one.name, text=one.text) for one in found)


def _together(
    ready: PreparedTuning,
    candidates: Mapping[str, Candidate],
    better: Sequence[LedgerEntry],
    refusal: Refusal,
) -> tuple[Candidate, list[LedgerEntry], str]:
    """The best level of each parameter that is better, the largest gain first."""
    best: dict[int, tuple[LedgerEntry, Choice]] = {}
    passed = []
    for entry in better:
        choice = candidates[entry.arm.name].choices[0]
        if choice.parameter in best:
            passed.append(entry.name)
        else:
            best[choice.parameter] = (entry, choice)
    entries = [entry for entry, _ in best.values()]
    beaten = f"; {', '.join(passed)} gained less" if passed else ""
    if len(best) == 1:
        return (
            candidates[entries[0].arm.name],
            entries,
            f"{entries[0].name}: the only setting that was better{beaten}",
        )
    why = ""
    try:
        name = f"{ready.baseline.arm.name[: LONGEST_NAME - len(TUNED)]}{TUNED}"
        one = ready.space.candidate([choice for _, choice in best.values()], name=name)
        why = refusal(one)
    except DocumentError as error:
        why = "; ".join(dict.fromkeys(fault.message for fault in error.faults))
    if why:
        text = (
            f"{entries[0].name}: the largest gain; it cannot be set together with "
            f"{', '.join(entry.name for entry in entries[1:])}"
        )
        return candidates[entries[0].arm.name], entries[:1], f"{text} ({why.partition(chr(10))[0]})"
    names = ", ".join(entry.name for entry in entries)
    return (
        one,
        entries,
        f"{names}: each was better by itself, and the best of its parameter{beaten}",
    )
