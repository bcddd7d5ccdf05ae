from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weighbridge.results.analysis.factor_cost import FactorCost
from weighbridge.results.figures import UNKNOWN, counted, show_figure
from weighbridge.results.report.ratio_words import ratio_cell, ratio_times
from weighbridge.results.statistics import Ratio

FACTOR_NUMBERS: Final = (1, 4, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class FactorSection:
    """The section of a factor; `differs` ends a sentence about its workloads."""

    key: str
    column: str
    differs: str
    client: str
    """Why ways differ for the load generator."""
    head: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[str, ...] = ()


_SECTIONS: Final = (
    FactorSection(
        "signing",
        "Signing",
        "in how S3 requests are signed and checked",
        "which hashes and signs every request",
    ),
    FactorSection(
        "encryption",
        "Encryption",
        "in how stores are asked to encrypt S3 objects",
        "which sends the headers that ask for it",
    ),
)


def factor_sections(found: Sequence[FactorCost]) -> tuple[FactorSection, ...]:
    """A section for each factor of which several ways were measured."""
    of = {one.key: [cost for cost in found if cost.factor == one.key] for one in _SECTIONS}
    return tuple(
        replace(
            one,
            head=_head(one.column),
            lines=factor_lines(of[one.key]),
            sentences=factor_sentences(of[one.key]),
        )
        for one in _SECTIONS
        if of[one.key]
    )


def factor_lines(found: Sequence[FactorCost]) -> tuple[tuple[str, ...], ...]:
    """The cells of each way, over its repeats."""
    return tuple(
        (
            one.workload,
            str(one.workers),
            one.layout,
            one.label,
            show_figure(one.client_us),
            _beside(one, one.client),
            show_figure(one.gateway_us),
            _beside(one, one.gateway),
            show_figure(one.ops_s),
            show_figure(one.p90_ms),
            one.verdict,
        )
        for one in found
    )


def factor_sentences(found: Sequence[FactorCost]) -> tuple[str, ...]:
    """What was found of the costs, one sentence for each way and step with known ratios."""
    return tuple(
        f"{one.workload} on {one.layout}, {counted(one.workers, 'worker')}, beside {one.beside}: "
        + ", ".join(
            f"{who} CPU for an operation is {ratio_times(known)}"
            for who, known in (("client", one.client), ("gateway", one.gateway))
            if known is not None
        )
        + (f". Provisional: {'; '.join(one.doubts)}." if one.doubts else ".")
        for one in found
        if one.client is not None or one.gateway is not None
    )


def _head(column: str) -> tuple[str, ...]:
    return (
        "Workload",
        "Workers",
        "Layout",
        column,
        "Client CPU µs/op",
        "beside the first",
        "Gateway CPU µs/op",
        "beside the first",
        "op/s",
        "p90 ms",
        "Verdict",
    )


def _beside(one: FactorCost, known: Ratio | None) -> str:
    if known is None:
        return "1" if one.label == one.beside else UNKNOWN
    return ratio_cell(known)
