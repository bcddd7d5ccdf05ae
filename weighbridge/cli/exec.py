"""`weighbridge exec HOST -- COMMAND`: run something where the gateway's network is."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weighbridge.topologies.hardware import Hardware


@click.command("exec", context_settings={"ignore_unknown_options": True})
@click.option("--hardware", metavar="FILE", help="HOST is a real host of this hardware file.")
@click.argument("host")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def command(hardware: str | None, host: str, argv: tuple[str, ...]) -> int:
    """Run a COMMAND on a HOST of what stands, such as `weighbridge exec client-1 -- curl -i
    http://...`.
    """
    from weighbridge import selection  # noqa: PLC0415 - heavy rooms are imported by what needs them

    hosts = None if hardware is None else selection.hardware_named(hardware)
    if hosts is not None and hosts.of.by_ssh:
        return exec_real(hosts, host, argv)
    return exec_lab(host, argv)


def exec_real(hardware: Hardware, host: str, argv: tuple[str, ...]) -> int:
    """Run a command as the deployment that has claimed a real host sees its files; returns its
    status. Raises UsageError.
    """
    from weighbridge.common.document import did_you_mean  # noqa: PLC0415
    from weighbridge.common.errors import UsageError  # noqa: PLC0415
    from weighbridge.topologies.ssh import claim, ending  # noqa: PLC0415
    from weighbridge.topologies.ssh.connection import SshConnection  # noqa: PLC0415
    from weighbridge.topologies.ssh.event_loop import EventLoop  # noqa: PLC0415

    if host not in hardware.hosts:
        raise UsageError(
            f"hardware {hardware.name!r} has no host "
            f"{host!r}{did_you_mean(host, list(hardware.hosts))}"
        )
    loop = EventLoop()
    try:
        connection = SshConnection(host, hardware.hosts[host], hardware.access, loop)
        try:
            connection.open()
            claimed = claim.read(connection, hardware.access.folder)
            if claimed is None or claimed.holder is None:
                raise UsageError(
                    f"nothing stands on {host}",
                    advice="`weighbridge up LAYOUT --hardware FILE` stands one up.",
                )
            services = ending.services_of(claimed, systemd=ending.has_systemd(connection))
            words = (*services.enter(), *services.environment("exec"), *argv)
            given, told = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
            running = connection.start(words, stdin=given, stdout=told, stderr=sys.stderr.buffer)
            return running.result()
        finally:
            connection.close()
    finally:
        loop.close()


def exec_lab(host: str, argv: tuple[str, ...]) -> int:
    """Have a command in a lab host take this program's place.

    Raises UsageError when no such host stands.
    """
    from weighbridge.common.document import did_you_mean  # noqa: PLC0415
    from weighbridge.common.errors import UsageError  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.lab.bundle import PATH  # noqa: PLC0415
    from weighbridge.topologies.lab.runc import Runc  # noqa: PLC0415

    runc = Runc(place().state / "runc")
    containers = {container.host: container for container in runc.containers()}
    if host not in containers:
        advice = "`weighbridge up LAYOUT` stands one up." if not containers else ""
        raise UsageError(
            f"no host {host!r} stands{did_you_mean(host, list(containers))}", advice=advice
        )
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    # On hosts that see this machine's files the clients that came with this suite are found: swift,
    # and the python that has boto3.
    path = f"PATH={sysconfig.get_path('scripts')}:{PATH}"
    # The command takes this program's place, so that its status, signals and terminal are the
    # user's own.
    words = runc.argv("exec", "--cwd", "/", "--env", path, *terminal, containers[host].id, *argv)
    os.execvp(words[0], words)  # noqa: S606 - an argv list, no shell
