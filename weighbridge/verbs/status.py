"""`weighbridge status`: what stands here."""

from __future__ import annotations

import click


@click.command("status")
def command() -> None:
    """Show what stands, its hosts, endpoints and credentials."""
    from weighbridge.standing import print_standing  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.terminal import console  # noqa: PLC0415

    print_standing(place(), console())
