"""What readers of a step must know of its endpoints: where requests failed, which were left out."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.results.record.measurement import EndpointTally


def endpoint_notes(endpoints: Sequence[EndpointTally]) -> tuple[str, ...]:
    """A sentence for each endpoint that was left out, or at which requests failed."""
    return tuple(_note(one) for one in endpoints if one.failed or one.left_out)


def _note(one: EndpointTally) -> str:
    failed = (
        f"{one.failed} of {one.count + one.failed} requests to it failed ({one.words})"
        if one.failed
        else "it got no request in the window"
    )
    if one.left_out:
        return (
            f"endpoint {one.name} was left out after failed connections in a row, and its workers "
            f"went on with the others: {failed}"
        )
    return f"endpoint {one.name}: {failed}"
