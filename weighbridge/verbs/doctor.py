"""`weighbridge doctor`: what this machine has and lacks."""

from __future__ import annotations

import click

from ground.errors import EXIT_FINE, EXIT_USAGE
from weighbridge.verbs.options import hardware


@click.command("doctor")
@hardware
def command(hardware: str | None) -> int:
    """Say what is missing on this machine for hosts of the HARDWARE, and how to get it. Exit code 2 when anything is."""
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from weighbridge import selection  # noqa: PLC0415
    from weighbridge.means import means_for, welcome  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.terminal import console  # noqa: PLC0415

    screen = console()
    hosts = selection.hardware_named(hardware)
    found = means_for(hosts, place())
    drawn = Table(box=None, header_style="bold")
    for title in ("", "what", "why", "how to get it"):
        drawn.add_column(title)
    for mean in found:
        mark = "[green]✔[/]" if mean.found else "[red]✘[/]"
        drawn.add_row(mark, escape(mean.name), escape(mean.why), "" if mean.found else escape(mean.remedy))
    for mean in welcome():
        # A run does without it: it is not counted among what is missing.
        mark = "[green]✔[/]" if mean.found else "[yellow]·[/]"
        drawn.add_row(mark, f"{escape(mean.name)} (optional)", escape(mean.why), "" if mean.found else escape(mean.remedy))
    screen.print(drawn)
    lacking = sum(not mean.found for mean in found)
    screen.print(f"{lacking} of {len(found)} missing" if lacking else f"this machine can raise {hosts.name}", highlight=False)
    return EXIT_USAGE if lacking else EXIT_FINE
