from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weighbridge.cli import complete

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.results.influx.server import InfluxServer
    from weighbridge.results.record.resolved import LatencyBound
    from weighbridge.topologies.hardware import Hardware

RUN_FOLDER = complete.RunFolder()

shown = functools.partial(click.option, show_default=True)
"""An option whose default is part of its help."""


def fail_on(what: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--fail-on`, for verbs that can say that something is worse: `what` says when it is."""
    return click.option(
        "--fail-on",
        type=click.Choice(["regression"]),
        help=f"Exit with 1 if {what}, for use in CI; with 4 if that could not be judged.",
    )


def named(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of an option that takes names: refuse a value without any."""
    if value is not None and not value.replace(",", "").strip():
        raise click.BadParameter(
            "it is empty; leave the option out for its default", param=parameter
        )
    return value


def listed(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Callback of an option that takes a comma-separated list: refuse one without items."""
    return None if named(context, parameter, value) is None else split(value)


def split(text: str | None) -> tuple[str, ...]:
    """The items of a comma-separated list."""
    return tuple(item for item in map(str.strip, (text or "").split(",")) if item)


def seconds(_context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Callback of an option that takes a time above 0, such as 2h: seconds."""
    if value is None:
        return None
    from weighbridge.common.quantities import parse_seconds

    try:
        found = parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None
    if not isinstance(found, float) or found <= 0:
        raise click.BadParameter(f"{value!r} is not a time above 0", param=parameter)
    return found


def bound(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> LatencyBound | None:
    """Callback of an option that takes a bound such as p90<=50ms. Raises UsageError."""
    if value is None:
        return None
    from weighbridge.results.analysis.find.bound_text import parse_bound

    return parse_bound(value)


def influx_server(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> InfluxServer | None:
    """Callback of an option that names an InfluxDB. Raises UsageError."""
    if value is None:
        return None
    from weighbridge.results.influx.server import InfluxServer

    return InfluxServer.parse(value)


def drivers_own(verb: click.Command) -> click.Command:
    """Add the options that installed drivers declare; the verb gets them as a mapping `own`."""
    from weighbridge.drivers.kind import KINDS

    options = [option for kind in KINDS.values() for option in kind.options]
    run = verb.callback

    @functools.wraps(run or drivers_own)
    def called(**given: Any) -> Any:
        own = {option.name: given.pop(option.name or "") for option in options}
        return None if run is None else run(**given, own=own)

    verb.params += options
    verb.callback = called
    return verb


def ssh_hardware(name: str | None) -> Hardware | None:
    """The hardware if its hosts are reached by SSH. Raises UsageError or DocumentError."""
    if name is None:
        return None
    from weighbridge.selection import hardware_named

    hardware = hardware_named(name)
    return hardware if hardware.of.by_ssh else None


def introduce(hardware: Hardware, screen: Console) -> None:
    """Print what hardware is; for `auto` this says what was made of this machine."""
    if hardware.about:
        from weighbridge.screen.terminal import print_line

        print_line(screen, f"{hardware.name}: {hardware.about}", "dim")


as_json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the results as one JSON document (docs/json.md), and everything else to stderr.",
)

influx = click.option(
    "--influx",
    metavar="URL",
    callback=influx_server,
    help="Send results to an InfluxDB as they are measured: http://HOST:8086[?bucket=B&org=O]; "
    "token: $WEIGHBRIDGE_INFLUX_TOKEN.",
)

ui = click.option(
    "--ui",
    is_flag=True,
    help=(
        "Serve the report as it fills in, with progress, events and a button that stops the "
        "run. The address is printed; it works on this machine only."
    ),
)

hardware = click.option(
    "--hardware",
    metavar="FILE",
    callback=named,
    shell_complete=complete.hardware,
    help="Hardware file, or the name of one that ships (default: auto, made from this machine).",
)

pictures = shown(
    "--charts/--no-charts",
    "pictures",
    default=True,
    help="Write every chart as PNG, SVG and PDF; the report has them either way.",
)

out = shown(
    "--out",
    default="runs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder in which the run's folder is made.",
)
