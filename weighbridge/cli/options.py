"""Options that several verbs share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from weighbridge.common.errors import UsageError
from weighbridge.common.plain_url import folder_or_ssh_place, without_query

if TYPE_CHECKING:
    from weighbridge.results.influx.server import InfluxServer

Callback = Callable[[click.Context, click.Parameter, str | None], str | None]

shown = functools.partial(click.option, show_default=True)
"""An option whose default is part of its help."""


def named(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The callback of an option that names things: one that is given and names none is refused, not taken for its default."""
    if value is not None and not value.replace(",", "").strip():
        raise click.BadParameter("it names nothing; leave the option out for its default", param=parameter)
    return value


def seconds(_context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """The callback of an option that is a time, such as 2h: seconds. A time of nothing is none."""
    if value is None:
        return None
    from weighbridge.common.quantities import parse_seconds  # noqa: PLC0415 - heavy rooms are imported by what needs them

    try:
        found = parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None
    if not isinstance(found, float) or found <= 0:
        raise click.BadParameter(f"{value!r} is no time: it has to be above 0", param=parameter)
    return found


def influx_server(_context: click.Context, _parameter: click.Parameter, value: str | None) -> InfluxServer | None:
    """The callback of an option that names an InfluxDB; its token is in the environment. Raises UsageError."""
    if value is None:
        return None
    from weighbridge.results.influx.server import InfluxServer  # noqa: PLC0415 - as above

    return InfluxServer.parse(value)


def _told_everywhere(check: Callable[[str], str], head: str, advice: str) -> Callback:
    """The callback of an option that every report shows: nothing may stand in it that opens anything. `check` raises ValueError."""

    def checked(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
        try:
            return None if value is None else check(value)
        except ValueError as error:
            raise UsageError(f"{head} {error}", advice=advice) from None

    return checked


console_url = _told_everywhere(
    without_query, "--cosbench: the URL", "User and password of its console are given as $COSBENCH_USER and $COSBENCH_PASSWORD."
)
"""The callback of an option that names COSBench's controller."""

archive_place = _told_everywhere(
    folder_or_ssh_place, "--cosbench-archive:", "ssh lets this user in by a key of ~/.ssh or of its agent."
)
"""The callback of an option that names the folder of COSBench's archive."""


influx = click.option(
    "--influx",
    metavar="URL",
    callback=influx_server,
    help="Send what is measured, as it comes, to an InfluxDB: http://HOST:8086[?bucket=B&org=O]; token: $WEIGHBRIDGE_INFLUX_TOKEN.",
)

hardware = click.option(
    "--hardware", metavar="FILE", callback=named, help="Hardware file, or the name of one that ships (default: lab-small)."
)

pictures = shown(
    "--charts/--no-charts", "pictures", default=True, help="Write every chart as PNG, SVG and PDF; the report has them either way."
)
