"""`weighbridge clean LAYOUT`: buckets that killed runs left on a gateway that already ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import seconds

if TYPE_CHECKING:
    from datetime import datetime

    from weighbridge.gateways.existing.made import MadeBucket


@click.command("clean")
@click.argument("layout")
@click.option(
    "--delete",
    "deleting",
    is_flag=True,
    help="Delete what is listed as made by runs of this suite alone.",
)
@click.option(
    "--older-than",
    "older_s",
    metavar="TIME",
    default="6h",
    show_default=True,
    callback=seconds,
    help="Leave buckets in which anything is younger: a run may be at work in them.",
)
def command(layout: str, older_s: float, *, deleting: bool) -> None:
    """List what runs that were killed left on the gateway of LAYOUT, which already runs; with
    --delete, delete it.
    """
    clean(layout, older_s, deleting=deleting)


def clean(layout: str, older_s: float, *, deleting: bool) -> None:
    """List or delete. Raises UsageError for a layout whose gateway goes with its deployment,
    TargetError for what fails.
    """
    import os  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415

    from weighbridge import selection  # noqa: PLC0415
    from weighbridge.common.errors import UsageError  # noqa: PLC0415
    from weighbridge.gateways.existing import credentials, made  # noqa: PLC0415
    from weighbridge.gateways.existing.existing import Existing  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415

    advice = (
        "What killed runs left of gateways that stood up with them `weighbridge down --all` "
        "takes away."
    )
    try:
        gateway = selection.layout_named(layout, selection.hardware_named("this-machine")).gateway
    except UsageError as error:
        raise UsageError(error.message, advice=advice) from None
    if not isinstance(gateway, Existing):
        raise UsageError(
            f"{layout}: a {gateway.kind} gateway is no gateway that already runs", advice=advice
        )
    youngest = datetime.now(UTC) - timedelta(seconds=older_s)
    screen, found = console(), 0
    for endpoint in credentials.endpoints(gateway.settings, os.environ):
        for one in made.left(endpoint):
            found += 1
            why = _kept(one, youngest)
            if why or not deleting:
                verdict = why or "made by runs of this suite alone: --delete deletes it"
            else:
                verdict = f"deleted, with {made.delete(endpoint, one.bucket)} objects"
            since = f"{one.newest.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            screen.print(
                f"{one.api} {one.url} {one.bucket}: {one.objects} objects, the newest of {since}: "
                f"{verdict}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
    if not found:
        screen.print("no run has left a bucket there", highlight=False)


def _kept(one: MadeBucket, youngest: datetime) -> str:
    """Why a bucket is left alone; empty: it may go."""
    if one.strange:
        return (
            "left alone: not all in it is of this suite "
            f"({', '.join(repr(name) for name in one.strange)})"
        )
    if one.newest > youngest:
        return "left alone: a run may be at work in it, by its age (--older-than)"
    return ""
