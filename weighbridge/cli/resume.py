"""`weighbridge resume`: go on with a run that was ended or killed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import archive_place, console_url, influx, pictures, seconds

if TYPE_CHECKING:
    from weighbridge.results.influx.server import InfluxServer


@click.command("resume")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--despite",
    metavar="FACT,...",
    default="",
    help="Go on although these facts are not what they were when the run was begun (a refusal names them), or all.",
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=seconds,
    help="What the rest may take, such as 2h (default: what is left of the run's own).",
)
@click.option(
    "--cosbench",
    metavar="URL",
    callback=console_url,
    help="As for compare, where the run is by COSBench (default: $COSBENCH_HOME).",
)
@click.option("--cosbench-archive", metavar="DIR", callback=archive_place, help="As for compare.")
@influx
@pictures
def command(
    run: Path,
    despite: str,
    budget: float | None,
    cosbench: str | None,
    cosbench_archive: str | None,
    influx: InfluxServer | None,
    *,
    pictures: bool,
) -> int:
    """Go on with the RUN of a folder at the first step that is not whole, on the same machine.

    No step that is measured is measured again; one that could not be measured is tried again.
    """
    facts = tuple(word.strip() for word in despite.split(",") if word.strip())
    return resume(
        run,
        despite=facts,
        budget_s=budget,
        cosbench=cosbench,
        cosbench_archive=cosbench_archive,
        influx=influx,
        pictures=pictures,
    )


def resume(
    folder: Path,
    *,
    despite: tuple[str, ...] = (),
    budget_s: float | None = None,
    cosbench: str | None = None,
    cosbench_archive: str | None = None,
    influx: InfluxServer | None = None,
    pictures: bool = True,
) -> int:
    """Go on with a run and print what it came to; returns the exit code, as compare does; also of one that was done already.

    Raises as `weighbridge.run.resume` does.
    """
    from weighbridge.cli import tune  # noqa: PLC0415
    from weighbridge.cli.compare import cosbench_site, exit_code  # noqa: PLC0415
    from weighbridge.conclusion import conclude  # noqa: PLC0415
    from weighbridge.results.record.store import RunStore  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from weighbridge.results.record.trial_book import TrialBook  # noqa: PLC0415
    from weighbridge.run import Doing  # noqa: PLC0415
    from weighbridge.run import resume as go_on  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.hardware import HOSTS  # noqa: PLC0415

    screen = console()
    if TrialBook(folder).run() is not None:
        return tune.resume(folder, screen, despite=despite, budget_s=budget_s, pictures=pictures)
    plan = RunStore.open(folder).plan()
    kind = HOSTS.get(plan.hardware.kind)  # of a run of before, or of a package that is not there, it may be none that is known
    lab = kind is not None and kind.contained
    site = cosbench_site(cosbench, cosbench_archive, lab=lab) if plan.suite.driver != "locust" else None
    doing = Doing(place(), screen, site, influx, pictures=pictures)
    derived, steps, _ = go_on(folder, doing, despite=despite, budget_s=budget_s)
    conclude(derived, screen, pictures=pictures)
    return exit_code(steps, comparable=derived.comparable)
