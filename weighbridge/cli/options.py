"""Options that several verbs have, and what they make of what is given.

Options that belong together are added to a verb as a bundle, which the verb gets as one record.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weighbridge.cli import complete
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.gateways.gateway import Say
    from weighbridge.results.run.resolved import LatencyBound
    from weighbridge.results.show.influx import InfluxServer
    from weighbridge.selection import EndpointLine
    from weighbridge.topologies.deployment import StateFolders
    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.loader import Planned

RUN_FOLDER = complete.RunFolder()


class OutputPath(click.Path):
    """Where a command writes: not among the records of a run, but for its folder `derived`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        place = path.absolute().parent.resolve() / path.name
        for run in (place, *place.parents):
            if (run / "plan.resolved.json").exists() and not place.is_relative_to(run / "derived"):
                raise UsageError(
                    f"{path}: is in the folder of the run {run.name}",
                    advice="Its records stay as they are: choose a place outside, or in `derived`.",
                )
        return path


FOLDER = click.Path(file_okay=False, path_type=Path)
OUTPUT = OutputPath(file_okay=False)
OUTPUT_FILE = OutputPath(dir_okay=False)

shown = functools.partial(click.option, show_default=True)
"""An option whose default is part of its help."""


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
    from weighbridge.results.features.rate_search import parse_bound

    return parse_bound(value)


def influx_server(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> InfluxServer | None:
    """Callback of an option that names an InfluxDB. Raises UsageError."""
    if value is None:
        return None
    from weighbridge.results.show.influx import InfluxServer

    return InfluxServer.parse(value)


def fail_on(what: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--fail-on`, for verbs that can say that something is worse: `what` says when it is."""
    return click.option(
        "--fail-on",
        type=click.Choice(["regression"]),
        help=f"Exit with 1 if {what}, for use in CI; with 4 if that could not be judged.",
    )


def dry_run(words: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--dry-run`; `words` are its help."""
    return click.option("--dry-run", is_flag=True, help=words)


def names_option(
    name: str, metavar: str, words: str, completer: complete.Completer | None = None
) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """An option that takes a name, or several with commas; `words` are its help."""
    return click.option(name, metavar=metavar, callback=named, shell_complete=completer, help=words)


def time_option(name: str, words: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """An option that takes a time above 0, of which the verb gets seconds."""
    return click.option(name, metavar="TIME", callback=seconds, help=words)


def hardware_file(words: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--hardware`; `words` are its help."""
    return names_option("--hardware", "FILE", words, complete.hardware)


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
        from weighbridge.results.show.terminal import print_line

        print_line(screen, f"{hardware.name}: {hardware.about}", "dim")


def checked(
    planned: Sequence[Planned], hardware: Hardware, screen: Console, say: Say
) -> tuple[Hardware, tuple[Planned, ...], StateFolders]:
    """Introduce hardware, and have the programs of layouts check them, after real hosts were asked
    for their sizes: hardware and layouts with those, and the folders of this user. Raises
    UsageError, TargetError.
    """
    from weighbridge import selection
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.environment import place, require

    where = place()
    require(hardware, where)
    introduce(hardware, screen)
    with interruptible():
        hosts, layouts = selection.on_sized_hosts(planned, hardware)
        selection.check(layouts, hosts, where, say)
    return hosts, layouts, where


def api_option(words: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """`--api` of a verb that names its layouts; `words` are its help."""
    return click.option(
        "--api",
        callback=listed,
        shell_complete=complete.words("s3", "swift"),
        metavar="A,B",
        help=words,
    )


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

hardware = hardware_file(
    "Hardware file, or the name of one that ships (default: auto, made from this machine)."
)

pictures = shown(
    "--charts/--no-charts",
    "pictures",
    default=True,
    help="Write every chart as PNG, SVG and PDF; the report has them either way.",
)

out = shown("--out", default="runs", type=OUTPUT, help="Folder in which the run's folder is made.")

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


def drivers_own(verb: click.Command) -> click.Command:
    """Add the options that installed drivers declare; the verb gets them as a mapping `own`."""
    from weighbridge.drivers.kind import KINDS

    options = [option for kind in KINDS.values() for option in kind.options]
    return _bundled(verb, options, "own", dict, at=len(verb.params))


def endpoints(verb: click.Command) -> click.Command:
    """Add the options that name endpoints; the verb gets them as a record `line`."""

    def endpoint_line(given: dict[str, Any]) -> EndpointLine:
        from weighbridge.selection import EndpointLine

        line = EndpointLine(**given)
        if line.profiles and not line.s3:
            raise UsageError(
                "--profile names an AWS profile with the keys of --s3, which is not given",
                advice="To profile a step: --perf WORKLOAD:WORKERS.",
            )
        return line

    return _bundled(verb, _ENDPOINTS, "line", endpoint_line)


def overrides(verb: click.Command) -> click.Command:
    """Add the options that replace parts of a suite, as a record `overrides`."""

    def suite_overrides(given: dict[str, Any]) -> object:
        from weighbridge.suites.overrides import Overrides

        return Overrides(**{one.name: given[one.name] for one in fields(Overrides)})

    return _bundled(verb, _OVERRIDES, "overrides", suite_overrides)


def _bundled(
    verb: click.Command,
    options: Sequence[click.Option],
    name: str,
    record: Callable[[dict[str, Any]], object],
    *,
    at: int = 0,
) -> click.Command:
    """Add options before the one with the number `at`; the verb gets a `record` of them."""
    run = verb.callback

    @functools.wraps(run or _bundled)
    def called(**given: Any) -> Any:
        own = {str(one.name): given.pop(str(one.name)) for one in options}
        return None if run is None else run(**given, **{name: record(own)})

    verb.params[at:at] = options
    verb.callback = called
    return verb
