from __future__ import annotations

import click

from weighbridge.cli import complete
from weighbridge.cli.options import hardware


@click.command("render")
@click.argument("layout", shell_complete=complete.layouts)
@click.option("--host", metavar="HOST", help="Files of this host only.")
@hardware
def command(layout: str, host: str | None, hardware: str | None) -> None:
    """Print every configuration file of LAYOUT as its hosts would get it; starts nothing.

    A file that is the same on several hosts is printed once. Settings that follow the size of the
    hosts are on stderr, each with its rule.
    """
    from weighbridge import selection
    from weighbridge.common.document import did_you_mean
    from weighbridge.common.errors import UsageError

    hosts = selection.hardware_named(hardware)
    planned = selection.layout_named(layout, hosts)
    names = list(planned.gateway.needs())
    if host is not None and host not in names:
        raise UsageError(
            f"{planned.layout.name} has nothing on a host {host!r}{did_you_mean(host, names)}"
        )
    same: dict[tuple[str, str], list[str]] = {}
    for one in planned.gateway.render(hosts.sites):
        if host in {None, one.host}:
            same.setdefault((one.path, one.text), []).append(one.host)
    for (path, text), on in same.items():
        click.echo(f"==> {', '.join(on)}: {path} <==")
        click.echo(text)
    release = planned.layout.release
    if (other := planned.gateway.settings_elsewhere(release)) is not None:
        click.echo(f"{release} gets the settings of {other}, checked by its programs", err=True)
    for setting in planned.sizing:
        click.echo(f"by size: {setting.key} is {setting.shown}: {setting.why}", err=True)
    if planned.sizing and (remark := selection.size_remark(hosts)):
        click.echo(remark, err=True)
    if not same:
        click.echo(f"{planned.layout.name} has no configuration files", err=True)
