"""`weighbridge clean LAYOUT`: buckets that killed runs left on a gateway that runs without us.

Raises UsageError if the suite itself starts the layout's gateway, TargetError if a request fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import seconds

if TYPE_CHECKING:
    from datetime import datetime

    from weighbridge.gateways.existing.leftover_buckets import LeftoverBucket


@click.command("clean")
@click.argument("layout", shell_complete=complete.layouts)
@click.option(
    "--delete",
    "deleting",
    is_flag=True,
    help="Delete those that hold nothing but what runs of this suite made.",
)
@click.option(
    "--older-than",
    "older_s",
    metavar="TIME",
    default="6h",
    show_default=True,
    callback=seconds,
    help="Keep buckets that hold anything younger: a run may still be using them.",
)
def command(layout: str, older_s: float, *, deleting: bool) -> None:
    """List what killed runs left on LAYOUT's gateway, which already runs; --delete deletes it."""
    import os
    from datetime import UTC, datetime, timedelta

    from weighbridge import selection
    from weighbridge.common.errors import UsageError
    from weighbridge.gateways.existing import credentials, leftover_buckets
    from weighbridge.gateways.existing.existing import Existing
    from weighbridge.screen.terminal import console, print_line

    advice = "`weighbridge down --all` removes what killed runs left of gateways that they started."
    try:
        gateway = selection.layout_named(layout, selection.hardware_named("this-machine")).gateway
    except UsageError as error:
        raise UsageError(error.message, advice=advice) from None
    if not isinstance(gateway, Existing):
        raise UsageError(
            f"{layout}: a {gateway.kind} gateway is not one that already runs", advice=advice
        )
    youngest = datetime.now(UTC) - timedelta(seconds=older_s)
    screen, found = console(), 0
    for endpoint in credentials.endpoints(gateway.settings, os.environ):
        for one in leftover_buckets.left(endpoint):
            found += 1
            reason = _kept(one, youngest)
            if reason or not deleting:
                verdict = reason or "holds only what runs of this suite made: --delete deletes it"
            else:
                verdict = f"deleted, with {leftover_buckets.delete(endpoint, one.bucket)} objects"
            newest = f"{one.newest.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            print_line(
                screen,
                f"{one.api} {one.url} {one.bucket}: {one.objects} objects, the newest from "
                f"{newest}: {verdict}",
            )
    if not found:
        print_line(screen, "no run has left a bucket there")


def _kept(one: LeftoverBucket, youngest: datetime) -> str:
    """Why a bucket is kept; empty if it may be deleted."""
    if one.strange:
        names = ", ".join(map(repr, one.strange))
        return f"kept: it holds something that this suite did not make ({names})"
    if one.newest > youngest:
        return "kept: it is so young that a run may still be using it (--older-than)"
    return ""
