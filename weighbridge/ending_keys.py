"""Keys of gateways that already run, which may end before a run does."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from weighbridge.common.errors import UsageError
from weighbridge.conductor.time_estimate import show_duration
from weighbridge.topologies.loader import Planned


def refuse_ending_keys(layouts: Iterable[Planned], needed_s: float) -> None:
    """Raise UsageError with all layouts whose keys nobody can renew and that end within the time
    that a run is estimated to need.
    """
    faults = []
    for one in layouts:
        end_at = one.gateway.keys_end_at()
        if end_at is None:
            continue
        left_s = (end_at - datetime.now(UTC)).total_seconds()
        if left_s < needed_s:
            faults.append(
                f"{one.layout.name}: its keys expire in {show_duration(max(0.0, left_s))}, at "
                f"{end_at:%H:%M:%S} UTC; the run needs an estimated {show_duration(needed_s)}"
            )
    if faults:
        raise UsageError(
            "\n".join(faults),
            advice="Shorten the run, or use keys that can be renewed: a profile with "
            "`credential_process` or `role_arn`.",
        )
