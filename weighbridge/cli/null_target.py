from __future__ import annotations

import json

import click

from weighbridge.cli.options import shown

_MS = click.FloatRange(0, 600_000)
_SHARE = click.FloatRange(0, 1)
_SECONDS = click.FloatRange(0)


@click.command("null-target")
@shown("--host", default="127.0.0.1", help="Address to listen on.")
@shown(
    "--port",
    default=8080,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0: any free one.",
)
@shown("--threads", default=1, type=click.IntRange(1, 64), help="Server threads.")
@shown("--delay-ms", default=0.0, type=_MS, help="Wait before each answer, in ms.")
@shown(
    "--delay-spread",
    default=0.0,
    type=_SHARE,
    help="Vary each wait at random by up to this share below and above.",
)
@shown("--fail-share", default=0.0, type=_SHARE, help="Share of requests answered with an error.")
@shown("--fail-status", default=503, type=click.IntRange(400, 599), help="Status of those errors.")
@shown(
    "--stall-after",
    "stall_after_s",
    type=_SECONDS,
    help="Stall once, this many seconds after the first request.",
)
@shown("--stall", "stall_s", default=1.0, type=_SECONDS, help="Length of that stall, in seconds.")
@shown(
    "--seed",
    default=2014,
    type=click.IntRange(0),
    help="Seed of errors, random waits and contents.",
)
@shown("--user", default="null:user", help="S3 access key and Swift user.")
@shown("--key", default="nullkey", envvar="WEIGHBRIDGE_NULL_KEY", help="S3 secret and Swift key.")
def command(**options: str | float | None) -> None:
    """Serve the S3 and Swift APIs from memory without storing bodies, until interrupted."""
    from weighbridge.drivers.engine._native import null_target

    null_target(json.dumps(options))
