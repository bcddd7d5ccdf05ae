"""The end of a deployment: containers, limits in the root cgroup, cgroups, loop devices; the same for close() and for leftovers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ground.errors import CommandFailed, TargetError
from topologies.lab.cgroup import TREE, Cgroups
from topologies.lab.claim import Claimed
from topologies.lab.runc import Runc

FREE_S = 5.0
"""The kernel frees cgroups and loop devices a moment after the last process has ended."""
LOOK_AGAIN_S = 0.005


def take_away(claimed: Claimed, runc: Runc, cgroups: Cgroups) -> None:
    """End all containers of a deployment, lift its limits in the root cgroup, remove its cgroups, wait for its disks.

    Goes on to the end whatever fails on the way, then raises TargetError naming what stayed. Idempotent.
    """
    faults: list[str] = []
    ours = [one for one in runc.containers() if one.deployment == claimed.deployment]

    def delete(container: str) -> None:
        try:
            runc.delete(container)
        except CommandFailed as error:
            # One that ended meanwhile is not to be found; whether one stayed is asked below.
            faults.append(f"{container}: {error.output.strip()}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(delete, (one.id for one in ours)))
    stayed = [one.id for one in runc.containers() if one.deployment == claimed.deployment]
    faults = [*faults, *(f"container {one} stays" for one in stayed)] if stayed else []
    for limit in claimed.root_limits:
        try:
            limit.lift()
        except TargetError as error:
            faults.append(str(error))
    group = f"/{TREE}/{claimed.deployment}"
    faults += [f"{path} has processes in it" for path in _until_empty(lambda: cgroups.remove(group))]
    cgroups.remove_tree_if_empty()
    if faults:
        raise TargetError(f"{claimed.deployment}: not all of it could be taken away:\n" + "\n".join(faults))


def _until_empty(look: Callable[[], tuple[Path, ...]]) -> tuple[Path, ...]:
    deadline = time.monotonic() + FREE_S
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN_S)
    return found
