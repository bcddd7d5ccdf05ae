"""`weighbridge up LAYOUT`: a verified gateway of your own, to try things on.

Raises UsageError or TargetError after all is torn down.
"""

from __future__ import annotations

from functools import partial

import click

from weighbridge.cli import complete
from weighbridge.cli.options import hardware, introduce


@click.command("up")
@click.argument("layout", shell_complete=complete.layouts)
@hardware
def command(layout: str, hardware: str | None) -> None:
    """Start LAYOUT (a file, or NAME[@RELEASE][:KEY=VALUE]... of one that ships), verify it, and
    leave it running.
    """
    from weighbridge import selection
    from weighbridge.common.errors import UsageError
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.environment import place, require
    from weighbridge.screen.deployments import print_running
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.topologies.deployment import deploy

    hosts = selection.hardware_named(hardware)
    if hosts.of.passing:
        raise UsageError(
            f"the hosts of {hosts.name!r} {hosts.of.passing}", advice="Choose hardware of kind lab."
        )
    planned = selection.layout_named(layout, hosts)
    where = place()
    require(hosts, where)
    screen = console()
    introduce(hosts, screen)
    say = partial(print_line, screen)
    with interruptible():
        hosts, (planned,) = selection.on_sized_hosts([planned], hosts)
        selection.check([planned], hosts, where, say)
    with interruptible(), deploy(planned, hosts, where, say) as deployment:
        deployment.keep()
    real = f" --hardware {hardware}" if hosts.of.by_ssh else ""
    say(
        f"{deployment.label} is running after {deployment.took_s:.1f} s; "
        f"`weighbridge down{real}` tears it down"
    )
    print_running(where, screen)
