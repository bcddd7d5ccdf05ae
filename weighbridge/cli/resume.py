"""`weighbridge resume`: go on with a run that was ended or killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import drivers_own, influx, pictures, seconds

if TYPE_CHECKING:
    from weighbridge.results.influx.server import InfluxServer


@drivers_own
@click.command("resume")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--despite",
    metavar="FACT,...",
    default="",
    help="Go on although these facts are not what they were when the run was begun (a refusal "
    "names them), or all.",
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=seconds,
    help="What the rest may take, such as 2h (default: what is left of the run's own).",
)
@influx
@pictures
def command(
    run: Path,
    despite: str,
    budget: float | None,
    influx: InfluxServer | None,
    *,
    pictures: bool,
    own: Mapping[str, object],
) -> int:
    """Go on with the RUN of a folder at the first step that is not whole, on the same machine.

    No step that is measured is measured again; one that could not be measured is tried again.
    """
    facts = tuple(word.strip() for word in despite.split(",") if word.strip())
    return resume(
        run,
        despite=facts,
        budget_s=budget,
        influx=influx,
        pictures=pictures,
        own=own,
    )


def resume(
    folder: Path,
    *,
    despite: tuple[str, ...] = (),
    budget_s: float | None = None,
    influx: InfluxServer | None = None,
    pictures: bool = True,
    own: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Go on with a run and print what it came to; returns the exit code, as compare does; also of
    one that was done already.

    Raises as `weighbridge.run.resume` does.
    """
    from weighbridge.cli import tune  # noqa: PLC0415
    from weighbridge.cli.compare import exit_code  # noqa: PLC0415
    from weighbridge.conclusion import conclude  # noqa: PLC0415
    from weighbridge.results.record.trial import TrialBook  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from weighbridge.run import Doing  # noqa: PLC0415
    from weighbridge.run import resume as go_on  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415

    screen = console()
    if TrialBook(folder).run() is not None:
        return tune.resume(
            folder, screen, despite=despite, budget_s=budget_s, pictures=pictures, own=own
        )
    doing = Doing(place(), screen, influx, pictures=pictures, own=own)
    derived, steps, _ = go_on(folder, doing, despite=despite, budget_s=budget_s)
    conclude(derived, screen, pictures=pictures)
    return exit_code(steps, comparable=derived.comparable)
