"""RADOS as it was measured in a pool that existed before a run, from one host of its cluster."""

from __future__ import annotations

from weighbridge.results.analysis.layers.staircase import LayerDoubt, LayerStep
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.record.benched_pool import BenchedPool


def in_pool(step: LayerStep, row: Row, pool: BenchedPool) -> LayerStep:
    """The step with what is known of the pool.

    No layer is a share of it unless gateways keep objects in the same way on the same devices. How
    many hosts they are on is not known: one that does more is no error.
    """
    if step.throughput_ops_s is None:
        return step
    full = [
        one.words
        for one in row.resources
        if one.what == "CPU" and one.saturated and one.host == pool.host
    ]
    notes = (step.note, f"{pool.words}; from {pool.host}", pool.remark)
    return step.model_copy(
        update={
            "note": "; ".join(note for note in notes if note),
            "held": step.held or ", ".join(full),
            "lone_host": pool.host,
            "doubt": LayerDoubt(verdict="not below", text=pool.apart) if pool.apart else step.doubt,
        }
    )
