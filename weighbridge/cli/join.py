"""`weighbridge join`: be a load client of a run that cannot reach this machine.

Raises UsageError if the run refuses it, DriverError if there is none, or if it is lost.
"""

from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli.options import seconds, shown


@click.command("join")
@click.argument("place", metavar="HOST[:PORT]")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="A copy of the run's token, which only you can read.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of this client in the run (default: made from this machine's name).",
)
@shown(
    "--wait",
    "wait_s",
    metavar="TIME",
    default="10m",
    callback=seconds,
    help="How long to wait for a run to begin.",
)
def command(place: str, token_file: Path, name: str | None, wait_s: float) -> int:
    """Make load for a run that waits for clients (`weighbridge compare --clients-join`), until it
    ends. The run prints the command to enter here.
    """
    from weighbridge.common.errors import EXIT_FINE
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.drivers.joining.joined_client import Membership, Place
    from weighbridge.drivers.joining.messages import Greeting, own_name
    from weighbridge.drivers.joining.settings import parse_place
    from weighbridge.drivers.joining.token import read_token
    from weighbridge.drivers.locust.cpu_allowance import allowance
    from weighbridge.drivers.locust.kind import WORKER, LocustModule
    from weighbridge.screen.terminal import console, print_line

    host, port = parse_place(place)
    token = read_token(token_file)
    greeting = Greeting.from_here(own_name(name), allowance().cpus)
    screen = console()
    with interruptible():
        Membership(
            Place(host, port),
            token,
            greeting,
            (*LocustModule().module, WORKER),
            lambda text: print_line(screen, text),
        ).run(wait_s)
    return EXIT_FINE
