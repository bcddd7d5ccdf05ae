"""`weighbridge down`: take away what stands or was left."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

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
    help="All deployments, and whatever killed runs left; on real hosts suites too.",
)
@click.option(
    "--hardware", metavar="FILE", help="Take it away from the real hosts of this hardware file."
)
def command(label: str | None, hardware: str | None, *, everything: bool) -> None:
    """Take away the deployment LABEL; without one, the only one that stands."""
    from weighbridge import selection  # noqa: PLC0415 - heavy rooms are imported by what needs them

    hosts = None if hardware is None else selection.hardware_named(hardware)
    if hosts is not None and hosts.of.by_ssh:
        down_real(label, hosts, everything=everything)
    else:
        down(label, everything=everything)


def down(label: str | None, *, everything: bool) -> None:
    """Take a deployment away.

    Raises UsageError when it is not clear which one is meant, or, when all others are gone,
    somebody is at work with it.
    """
    from weighbridge.common.errors import UsageError  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.lab import leftovers  # noqa: PLC0415

    screen = console()
    where = place()
    found = leftovers.find(home=where.home, state=where.state)
    busy = {one.deployment: one for one in leftovers.at_work(home=where.home, state=where.state)}
    labels = {one.deployment for one in found if one.deployment}
    _refuse_unclear(label, sorted(labels | set(busy)), everything=everything)
    if not found and not busy:
        screen.print("nothing stands, and nothing was left", highlight=False)
        return
    asked = None if everything or label is None else label
    removed = () if asked in busy else leftovers.remove(asked, home=where.home, state=where.state)
    for line in _told((one.deployment, one.kind) for one in removed):
        screen.print(line, markup=False, highlight=False)
    left = [one for name, one in busy.items() if asked in (None, name)]
    if left:
        lines = [
            f"{one.deployment} was left alone: process {one.pid} is at work with it since "
            f"{one.since}"
            for one in left
        ]
        raise UsageError("\n".join(lines), advice="End that process: it takes its deployment away.")


def down_real(label: str | None, hardware: Hardware, *, everything: bool) -> None:
    """The same on real hosts, those that answer.

    Raises UsageError when it is not clear which one is meant, or somebody may be at work with it;
    TargetError naming hosts that do not answer, or on which something stayed, when the others are
    done.
    """
    import shutil  # noqa: PLC0415

    from weighbridge.common.errors import TargetError, UsageError  # noqa: PLC0415
    from weighbridge.conductor.interruption import interruptible  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.ssh import leftovers  # noqa: PLC0415

    screen = console()
    with interruptible():
        there = leftovers.find(hardware, whole=everything)
        labels = sorted({one.deployment for one in there.found if one.deployment})
        if label is None or label in labels or not there.failed:
            _refuse_unclear(label, labels, everything=everything)
        # One that was made on another machine is taken away by its name alone: whether its run goes
        # on is not known here.
        wanted = None if label is None else {label}
        swept = leftovers.remove(
            hardware, wanted, whole=everything, elsewhere=label is not None, silent=there.failed
        )
    for line in _told((one.deployment, one.kind) for one in swept.found):
        screen.print(line, markup=False, highlight=False)
    for deployment in {one.deployment for one in swept.found if one.deployment}:
        shutil.rmtree(place().deployments / deployment, ignore_errors=True)
    failed = {**there.failed, **swept.failed}
    if not swept.found and not failed and not swept.spared:
        screen.print(
            f"nothing stands on the hosts of {hardware.name}, and nothing was left",
            markup=False,
            highlight=False,
        )
    if failed:
        lines = "\n".join(error.message for error in failed.values())
        raise TargetError(
            lines, advice="What is on the other hosts was taken away. Try again when these answer."
        )
    if swept.spared:
        raise UsageError(
            "\n".join(map(spared, swept.spared)),
            advice="End that run: it takes its deployment away.",
        )


def spared(stood: ClaimedDeployment) -> str:
    """Why a deployment was left alone, and how it can be taken away all the same."""
    claimed, hosts = stood.claimed, ", ".join(stood.hosts)
    if stood.at_work:
        return f"{claimed.deployment} was left alone: {claimed.by} is at work with it on {hosts}"
    return (
        f"{claimed.deployment} was left alone: it was made on another machine ({claimed.by}) on "
        f"{hosts} at {claimed.since}, and "
        f"its run may go on. If it does not: weighbridge down {claimed.deployment} --hardware FILE"
    )


def _refuse_unclear(label: str | None, labels: list[str], *, everything: bool) -> None:
    from weighbridge.common.document import did_you_mean  # noqa: PLC0415
    from weighbridge.common.errors import UsageError  # noqa: PLC0415

    if label is not None and label not in labels:
        raise UsageError(f"no deployment {label!r} stands{did_you_mean(label, labels)}")
    if label is None and not everything and len(labels) > 1:
        raise UsageError(
            f"several deployments stand: {', '.join(labels)}",
            advice="Name one of them, or say --all.",
        )


def _told(removed: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each deployment: how many of what kind were removed."""
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
