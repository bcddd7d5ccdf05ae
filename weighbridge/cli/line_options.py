from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from weighbridge.cli import complete
from weighbridge.cli.options import named
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from weighbridge.selection import EndpointLine

_ENDPOINTS = (
    click.Option(
        ["--s3"],
        metavar="NAME=URL",
        multiple=True,
        help="An S3 endpoint that already runs, instead of layouts; may be repeated. Keys: "
        "$AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, else your AWS files.",
    ),
    click.Option(
        ["--swift"],
        metavar="NAME=URL",
        multiple=True,
        help="The same for Swift: its auth v1 URL, with $ST_USER and $ST_KEY (or $ST_USER_NAME and "
        "$ST_KEY_NAME); Keystone's, which ends in /v3, with the variables of an openrc file; or "
        "its storage URL, with only $OS_AUTH_TOKEN.",
    ),
    click.Option(
        ["--profile", "profiles"],
        metavar="[NAME=]PROFILE",
        multiple=True,
        help="Profile of your AWS files with the keys of all S3 endpoints, or of that NAME.",
    ),
)
_OVERRIDES = (
    click.Option(
        ["--sizes"],
        metavar="A,B",
        callback=named,
        help="Object sizes, such as 64k,8M (64 kB, 8 MB; KiB and MiB are powers of 1024): one "
        "workload for each size and operation.",
    ),
    click.Option(
        ["--mix"],
        metavar="A,B",
        shell_complete=complete.operations,
        callback=named,
        help="Operations, such as read,write: one workload for each size and operation.",
    ),
    click.Option(
        ["--workers"], metavar="N,M", callback=named, help="Worker counts of every workload: 1,16."
    ),
    click.Option(
        ["--duration"], metavar="TIME", callback=named, help="Measured window of every step: 30s."
    ),
    click.Option(
        ["--warmup"], metavar="TIME", callback=named, help="Warm-up before every window: 5s."
    ),
    click.Option(
        ["--api"],
        metavar="A,B",
        shell_complete=complete.words("s3", "swift"),
        callback=named,
        help="APIs to use: s3, swift (default: all of the endpoints, else the suite's).",
    ),
)


def endpoints(verb: click.Command) -> click.Command:
    """Add the options that name endpoints; the verb gets them as a record `line`."""

    def made(given: dict[str, Any]) -> EndpointLine:
        from weighbridge.selection import EndpointLine

        line = EndpointLine(**given)
        if line.profiles and not line.s3:
            raise UsageError(
                "--profile names an AWS profile with the keys of --s3, which is not given",
                advice="To profile a step: --perf WORKLOAD:WORKERS.",
            )
        return line

    return _bundled(verb, _ENDPOINTS, "line", made)


def overrides(verb: click.Command) -> click.Command:
    """Add the options that replace parts of a suite, as a record `overrides`."""

    def made(given: dict[str, Any]) -> object:
        from weighbridge.suites.overrides import Overrides

        return Overrides(**{one.name: given[one.name] for one in fields(Overrides)})

    return _bundled(verb, _OVERRIDES, "overrides", made)


def _bundled(
    verb: click.Command, options: Sequence[click.Option], name: str, made: Any
) -> click.Command:
    run = verb.callback

    @functools.wraps(run or _bundled)
    def called(**given: Any) -> Any:
        own = {str(one.name): given.pop(str(one.name)) for one in options}
        return None if run is None else run(**given, **{name: made(own)})

    verb.params[:0] = options
    verb.callback = called
    return verb
