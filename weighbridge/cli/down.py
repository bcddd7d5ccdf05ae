from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import ssh_hardware
from weighbridge.common.errors import TargetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.ssh.leftovers import ClaimedDeployment


@click.command("down")
@click.argument("label", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All deployments, and all that killed runs left; on real hosts the suite's files, too.",
)
@click.option(
    "--hardware",
    metavar="FILE",
    shell_complete=complete.hardware,
    help="Tear down on the real hosts of this hardware file.",
)
def command(label: str | None, hardware: str | None, *, everything: bool) -> None:
    """Tear down the deployment LABEL; without one, the only one that is running."""
    hosts = ssh_hardware(hardware)
    if hosts is not None:
        down_real(label, hosts, everything=everything)
    else:
        down(label, everything=everything)


def down(label: str | None, *, everything: bool) -> None:
    """Tear down a deployment here. Raises UsageError if it is not clear which, or, after all
    others, if one is in use.
    """
    from weighbridge.environment import place
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.topologies.lab import ending

    screen = console()
    where = place()
    found = ending.find_leftovers(home=where.home, state=where.state)
    busy = {one.deployment: one for one in ending.lab_at_work(home=where.home, state=where.state)}
    labels = {one.deployment for one in found if one.deployment}
    _refuse_unclear(label, sorted(labels | set(busy)), everything=everything)
    if not found and not busy:
        print_line(screen, "nothing is running, and nothing was left")
        return
    wanted = None if everything else label
    removed = (
        ()
        if wanted in busy
        else ending.remove_leftovers(wanted, home=where.home, state=where.state)
    )
    for line in _removed((one.deployment, one.kind) for one in removed):
        print_line(screen, line)
    left = [one for name, one in busy.items() if wanted in (None, name)]
    if left:
        lines = [
            f"{one.deployment} was left alone: process {one.pid} has been using it since "
            f"{one.since}"
            for one in left
        ]
        raise UsageError("\n".join(lines), advice="End that process: it tears its deployment down.")


def down_real(label: str | None, hardware: Hardware, *, everything: bool) -> None:
    """Tear down on real hosts. Raises UsageError if it is not clear which deployment, or if it may
    be in use; after the others TargetError naming what did not answer or stayed.
    """
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.environment import place
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.topologies.hosts import remove_folder
    from weighbridge.topologies.ssh import leftovers

    screen = console()
    with interruptible():
        there = leftovers.find(hardware, include_suites=everything)
        labels = sorted({one.deployment for one in there.found if one.deployment})
        if label is None or label in labels or not there.failed:
            _refuse_unclear(label, labels, everything=everything)
        # A deployment made on another machine is removed only by its name: whether its run is
        # still going is not known here.
        wanted = None if label is None else {label}
        swept = leftovers.remove(
            hardware,
            wanted,
            include_suites=everything,
            elsewhere=label is not None,
            silent=there.failed,
        )
    for line in _removed((one.deployment, one.kind) for one in swept.found):
        print_line(screen, line)
    for deployment in {one.deployment for one in swept.found if one.deployment}:
        remove_folder(place().deployments / deployment)
    failed = {**there.failed, **swept.failed}
    if not swept.found and not failed and not swept.spared:
        print_line(
            screen, f"nothing is running on the hosts of {hardware.name}, and nothing was left"
        )
    if failed:
        raise TargetError(
            "\n".join(error.message for error in failed.values()),
            advice="The other hosts are clean. Try again when these answer.",
        )
    if swept.spared:
        raise UsageError(
            "\n".join(map(spared, swept.spared)),
            advice="End that run: it tears its deployment down.",
        )


def spared(found: ClaimedDeployment) -> str:
    """Why a deployment was left alone, and how to remove it all the same."""
    claimed, hosts = found.claimed, ", ".join(found.hosts)
    if found.at_work:
        return f"{claimed.deployment} was left alone: {claimed.by} is using it on {hosts}"
    return (
        f"{claimed.deployment} was left alone: it was made on another machine ({claimed.by}) on "
        f"{hosts} at {claimed.since}, and its run may still be active. If it is not: "
        f"weighbridge down {claimed.deployment} --hardware FILE"
    )


def _refuse_unclear(label: str | None, labels: list[str], *, everything: bool) -> None:
    from weighbridge.common.document import did_you_mean

    if label is not None and label not in labels:
        raise UsageError(f"no deployment {label!r} is running{did_you_mean(label, labels)}")
    if label is None and not everything and len(labels) > 1:
        raise UsageError(
            f"several deployments are running: {', '.join(labels)}",
            advice="Name one of them, or use --all.",
        )


def _removed(removed: Iterable[tuple[str, str]]) -> list[str]:
    kinds: dict[str, Counter[str]] = {}
    for deployment, kind in removed:
        kinds.setdefault(deployment, Counter())[kind] += 1
    return [
        f"removed {deployment or 'of no deployment'}: {counted(some)}"
        for deployment, some in sorted(kinds.items())
    ]


def counted(kinds: Mapping[str, int]) -> str:
    """As `3 disks, 2 processes, 1 claim`."""
    many = {kind: f"{kind}es" if kind.endswith("s") else f"{kind}s" for kind in kinds}
    return ", ".join(
        f"{count} {many[kind] if count > 1 else kind}" for kind, count in kinds.items()
    )
