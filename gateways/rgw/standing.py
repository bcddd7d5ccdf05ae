"""How a cluster meets the death of a part: its options, and what its mon says of it meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host
from weighbridge.gateways.rgw.ceph_state import CephState
from weighbridge.gateways.rgw.monitor import CephDaemon, Monitor, ask, option
from weighbridge.gateways.tolerance import Ask, Standing, Tolerance

_OSD: Final = (
    "osd_heartbeat_interval",
    "osd_heartbeat_grace",
    "osd_fast_fail_on_connection_refused",
    "osd_max_backfills",
    "osd_recovery_sleep_hdd",
    "osd_recovery_sleep_ssd",
)
_MON: Final = ("mon_osd_min_down_reporters", "mon_osd_down_out_interval")


def tolerance(state: CephState) -> Tolerance:
    """The options that decide it, as the mon and the first OSD report them.

    Raises CommandFailed.
    """
    mon = CephDaemon(state.mon_host, "mon.a")
    found: dict[str, str] = {}
    for daemon, names in ((state.osds[0], _OSD), (mon, _MON)):
        answers = ask([daemon], *({"prefix": "config get", "var": one} for one in names))[daemon]
        values = {name: option(text, name) for name, text in zip(names, answers, strict=True)}
        found |= {name: value for name, value in values.items() if value is not None}
    pools = state.cluster.settings.pools
    found["copies"] = f"{pools.replicas}, writes need {pools.min_size} (min_size)"
    front = state.cluster.front(native=state.native)
    return Tolerance(found | ({} if front is None else front.tolerance()), partial(_asking, state))


@contextmanager
def _asking(state: CephState) -> Iterator[Ask]:
    """A session on the first mon's host, and on another's when that dies."""
    hosts = [state.hosts[name] for name in state.cluster.place.mon]
    with ExitStack() as stack:

        def opened(host: Host) -> Monitor:
            # A dead daemon is what is waited for here, not why an answer is late.
            return stack.enter_context(Monitor(host, lambda: None))

        host, monitor = hosts[0], opened(hosts[0])

        def ask_now() -> Standing:
            nonlocal host, monitor
            try:
                return standing(monitor.status(), len(state.osds))
            except CommandFailed:
                others = [one for one in hosts if one is not host and one.is_up()]
                if not others:
                    raise
                host, monitor = others[0], opened(others[0])
                return standing(monitor.status(), len(state.osds))

        yield ask_now


def standing(status: dict[str, Any], osds: int) -> Standing:
    """What `ceph status` says, as of the reports that OSDs have sent the mgr.

    Raises TargetError for an answer that does not say it.
    """
    try:
        # Release 14 has it one level deeper.
        up = int(status["osdmap"].get("osdmap", status["osdmap"])["num_up_osds"])
        groups = status["pgmap"]
        total = int(groups["num_pgs"])
        clean = sum(
            int(one["count"])
            for one in groups.get("pgs_by_state", ())
            if one["state_name"].startswith("active+clean")
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TargetError(
            f"`ceph status` has no OSDs or groups: {json.dumps(status)[:200]}"
        ) from None
    words = f"{up} of {osds} OSDs up, {clean} of {total} placement groups clean"
    return Standing(whole=up == osds and clean == total, words=words)
