"""Options that several verbs share."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from weighbridge.results.influx.server import InfluxServer

shown = functools.partial(click.option, show_default=True)
"""An option whose default is part of its help."""


def named(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The callback of an option that names things: one that is given and names none is refused, not
    taken for its default.
    """
    if value is not None and not value.replace(",", "").strip():
        raise click.BadParameter(
            "it names nothing; leave the option out for its default", param=parameter
        )
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


def influx_server(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> InfluxServer | None:
    """The callback of an option that names an InfluxDB; its token is in the environment.

    Raises UsageError.
    """
    if value is None:
        return None
    from weighbridge.results.influx.server import InfluxServer  # noqa: PLC0415 - as above

    return InfluxServer.parse(value)


def drivers_own(verb: click.Command) -> click.Command:
    """A verb with the options besides that installed drivers declare; it gets them together as
    `own`, by their names.
    """
    from weighbridge.drivers.kind import KINDS  # noqa: PLC0415 - verbs that run nothing want no driver

    options = [option for kind in KINDS.values() for option in kind.options]
    run = verb.callback

    @functools.wraps(run or drivers_own)
    def called(**given: Any) -> Any:
        own = {option.name: given.pop(option.name or "") for option in options}
        return None if run is None else run(**given, own=own)

    verb.params += options
    verb.callback = called
    return verb


influx = click.option(
    "--influx",
    metavar="URL",
    callback=influx_server,
    help="Send what is measured, as it comes, to an InfluxDB: http://HOST:8086[?bucket=B&org=O]; "
    "token: $WEIGHBRIDGE_INFLUX_TOKEN.",
)

hardware = click.option(
    "--hardware",
    metavar="FILE",
    callback=named,
    help="Hardware file, or the name of one that ships (default: lab-small).",
)

pictures = shown(
    "--charts/--no-charts",
    "pictures",
    default=True,
    help="Write every chart as PNG, SVG and PDF; the report has them either way.",
)
