"""`weighbridge down`: take away what stands or was left."""

from __future__ import annotations

from collections import Counter

import click


@click.command("down")
@click.argument("label", required=False)
@click.option("--all", "everything", is_flag=True, help="All deployments, and whatever killed runs left.")
def command(label: str | None, everything: bool) -> None:
    """Take away the deployment LABEL; without one, the only one that stands."""
    down(label, everything=everything)


def down(label: str | None, *, everything: bool) -> None:
    """Take a deployment away. Raises UsageError when it is not clear which one is meant."""
    from ground.document import did_you_mean  # noqa: PLC0415
    from ground.errors import UsageError  # noqa: PLC0415
    from topologies.lab import leftovers  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.terminal import console  # noqa: PLC0415

    screen = console()
    where = place()
    found = leftovers.find(home=where.home, state=where.state)
    labels = sorted({one.deployment for one in found if one.deployment})
    if label is not None and label not in labels:
        raise UsageError(f"no deployment {label!r} stands{did_you_mean(label, labels)}")
    if label is None and not everything and len(labels) > 1:
        raise UsageError(f"several deployments stand: {', '.join(labels)}", advice="Name one of them, or say --all.")
    if not found:
        screen.print("nothing stands, and nothing was left", highlight=False)
        return
    removed = leftovers.remove(None if everything or label is None else label, home=where.home, state=where.state)
    for deployment in sorted({one.deployment for one in removed}):
        kinds = Counter(one.kind for one in removed if one.deployment == deployment)
        what = ", ".join(f"{count} {kind}" + ("s" if count > 1 else "") for kind, count in kinds.items())
        screen.print(f"removed {deployment or 'of no deployment'}: {what}", markup=False, highlight=False)
