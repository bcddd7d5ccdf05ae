"""`weighbridge exec HOST -- COMMAND`: run something where the gateway's network is."""

from __future__ import annotations

import os
import sys

import click


@click.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("host")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def command(host: str, argv: tuple[str, ...]) -> None:
    """Run a COMMAND on a HOST of what stands, such as `weighbridge exec client-1 -- curl -i http://...`."""
    from ground.document import did_you_mean  # noqa: PLC0415
    from ground.errors import UsageError  # noqa: PLC0415
    from topologies.lab.runc import Runc  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415

    runc = Runc(place().state / "runc")
    containers = {container.host: container for container in runc.containers()}
    if host not in containers:
        advice = "`weighbridge up LAYOUT` stands one up." if not containers else ""
        raise UsageError(f"no host {host!r} stands{did_you_mean(host, list(containers))}", advice=advice)
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    # The command takes this program's place, so that its status, signals and terminal are the user's own.
    words = runc.argv("exec", "--cwd", "/", *terminal, containers[host].id, *argv)
    os.execvp(words[0], words)  # noqa: S606 - an argv list, no shell
