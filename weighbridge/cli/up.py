"""`weighbridge up LAYOUT`: a gateway of one's own, verified, to play with."""

from __future__ import annotations

import click

from weighbridge.cli.options import hardware


@click.command("up")
@click.argument("layout")
@hardware
def command(layout: str, hardware: str | None) -> None:
    """Stand LAYOUT up (a file, or NAME[@RELEASE][:KEY=VALUE]... of one that ships), verify it, and
    leave it standing.
    """
    up(layout, hardware)


def up(layout: str, hardware: str | None) -> None:
    """Stand a layout up and say how to reach it.

    Raises UsageError or TargetError, nothing then being left.
    """
    from weighbridge import selection  # noqa: PLC0415
    from weighbridge.common.errors import UsageError  # noqa: PLC0415
    from weighbridge.conductor.interruption import interruptible  # noqa: PLC0415
    from weighbridge.means import require  # noqa: PLC0415
    from weighbridge.screen.deployments import print_standing  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.deployment import deploy  # noqa: PLC0415

    hosts = selection.hardware_named(hardware)
    if hosts.of.passing:
        raise UsageError(
            f"the hosts of {hosts.name!r} {hosts.of.passing}", advice="Choose hardware of kind lab."
        )
    planned = selection.layout_named(layout, hosts)
    where = place()
    require(hosts, where)
    screen = console()

    def say(text: str) -> None:
        screen.print(text, markup=False, highlight=False)

    with interruptible():
        selection.check([planned], hosts, where, say)
    with interruptible(), deploy(planned, hosts, where, say) as deployment:
        deployment.keep()
    real = f" --hardware {hardware}" if hosts.of.by_ssh else ""
    say(
        f"{deployment.label} stands after {deployment.took_s:.1f} s; `weighbridge down{real}` "
        "takes it away"
    )
    print_standing(where, screen)
