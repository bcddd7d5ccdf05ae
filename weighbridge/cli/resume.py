from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import (
    RUN_FOLDER,
    as_json,
    drivers_own,
    influx,
    named,
    pictures,
    seconds,
    split,
    ui,
)

if TYPE_CHECKING:
    from weighbridge.results.influx.server import InfluxServer


@drivers_own
@click.command("resume")
@click.argument("run", type=RUN_FOLDER)
@click.option(
    "--despite",
    metavar="FACT,...",
    callback=named,
    help="Continue although these facts have changed since the run began (a refusal names them); "
    "`all`: any of them.",
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=seconds,
    help="Time for the rest, such as 2h (default: what is left of the run's own).",
)
@influx
@ui
@pictures
@as_json
def command(
    run: Path,
    despite: str | None,
    budget: float | None,
    influx: InfluxServer | None,
    *,
    ui: bool,
    pictures: bool,
    as_json: bool,
    own: Mapping[str, object],
) -> int:
    """Continue the run in the folder RUN at the first step that is missing, on the same machine.

    Measured steps are not repeated; steps that could not be measured are tried again.
    """
    from weighbridge.cli import tune
    from weighbridge.cli.compare import exit_code
    from weighbridge.common.errors import UsageError
    from weighbridge.environment import place
    from weighbridge.results.record.trial import TuningStore
    from weighbridge.results_output import show_results
    from weighbridge.run import Doing
    from weighbridge.run import resume as resume_run
    from weighbridge.screen.terminal import console

    doing = Doing(place(), console(stderr=as_json), pictures=pictures, own=own)
    if TuningStore(run).run() is not None:
        if ui:
            raise UsageError(f"{run} is a tuning: `--ui` shows comparisons and studies")
        return tune.resume(run, doing, despite=split(despite), budget_s=budget, as_json=as_json)
    doing = replace(doing, influx=influx, ui=ui)
    ran = resume_run(run, doing, despite=split(despite), budget_s=budget)
    return show_results(
        ran.derived, doing.screen, exit_code(ran), pictures=pictures, as_json=as_json
    )
