"""Options that several verbs share."""

from __future__ import annotations

import functools

import click

shown = functools.partial(click.option, show_default=True)
"""An option whose default is part of its help."""


def seconds(_context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """The callback of an option that is a time, such as 2h: seconds. A time of nothing is none."""
    if value is None:
        return None
    from ground.quantities import parse_seconds  # noqa: PLC0415 - heavy rooms are imported by what needs them

    try:
        found = parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None
    if not isinstance(found, float) or found <= 0:
        raise click.BadParameter(f"{value!r} is no time: it has to be above 0", param=parameter)
    return found


hardware = click.option("--hardware", metavar="FILE", help="Hardware file, or the name of one that ships (default: lab-small).")
