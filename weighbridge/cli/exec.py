from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import closing
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import ssh_hardware
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from weighbridge.topologies.hardware import Hardware


@click.command("exec", context_settings={"ignore_unknown_options": True})
@click.option(
    "--hardware",
    metavar="FILE",
    shell_complete=complete.hardware,
    help="HOST is a real host of this hardware file.",
)
@click.argument("host")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def command(hardware: str | None, host: str, argv: tuple[str, ...]) -> int:
    """Run a COMMAND on a HOST of a running deployment, such as `weighbridge exec client-1 -- curl
    -i http://...`.
    """
    hosts = ssh_hardware(hardware)
    return exec_lab(host, argv) if hosts is None else exec_real(hosts, host, argv)


def exec_real(hardware: Hardware, host: str, argv: tuple[str, ...]) -> int:
    """A command's status on a real host, with the files of its deployment. Raises UsageError."""
    from weighbridge.common.document import did_you_mean
    from weighbridge.topologies.ssh import claim, ending
    from weighbridge.topologies.ssh.connection import EventLoop, SshConnection

    if host not in hardware.hosts:
        raise UsageError(
            f"hardware {hardware.name!r} has no host "
            f"{host!r}{did_you_mean(host, list(hardware.hosts))}"
        )
    with (
        closing(EventLoop()) as loop,
        closing(SshConnection(host, hardware.hosts[host], hardware.access, loop)) as connection,
    ):
        connection.open()
        claimed = claim.read(connection, hardware.access.folder)
        if claimed is None or claimed.holder is None:
            raise UsageError(
                f"nothing is running on {host}",
                advice="`weighbridge up LAYOUT --hardware FILE` starts a deployment.",
            )
        services = ending.services_of(claimed)
        words = (*services.enter(), *services.environment("exec"), *argv)
        running = connection.start(
            words,
            stdin=os.dup(sys.stdin.fileno()),
            stdout=os.dup(sys.stdout.fileno()),
            stderr=sys.stderr.buffer,
        )
        return running.result()


def exec_lab(host: str, argv: tuple[str, ...]) -> int:
    """Replace this program by a command in a lab host. Raises UsageError if no such host runs."""
    from weighbridge.common.document import did_you_mean
    from weighbridge.environment import place
    from weighbridge.topologies.lab.bundle import PATH
    from weighbridge.topologies.lab.runc import Runc

    runc = Runc(place().state / "runc")
    containers = {container.host: container for container in runc.containers()}
    if host not in containers:
        advice = "" if containers else "`weighbridge up LAYOUT` starts a deployment."
        raise UsageError(
            f"no host {host!r} is running{did_you_mean(host, list(containers))}", advice=advice
        )
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    # Clients that this suite installed (swift, and the python that has boto3) are on the PATH of
    # hosts that see this machine's files.
    path = f"PATH={sysconfig.get_path('scripts')}:{PATH}"
    # The command replaces this program, so that status, signals and terminal are its own.
    words = runc.argv("exec", "--cwd", "/", "--env", path, *terminal, containers[host].id, *argv)
    os.execvp(words[0], words)  # noqa: S606 - an argv list, no shell
