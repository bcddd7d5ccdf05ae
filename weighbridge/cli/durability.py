"""`weighbridge durability LAYOUT...`: what survives when all hosts of a store lose power.

Raises UsageError before anything is started. A layout that fails is named, the others are tried,
and the exit code is 3; it is 1 if a layout lost anything that it had acknowledged, 4 if it cannot
be told of any.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import as_json, hardware, introduce, listed, seconds, shown

if TYPE_CHECKING:
    from weighbridge.common.endpoint import ObjectApi


@click.command("durability")
@click.argument(
    "layouts", nargs=-1, required=True, metavar="LAYOUT...", shell_complete=complete.layouts
)
@hardware
@shown("--cuts", type=click.IntRange(1, 1000), default=20, help="Power cuts, all from one load.")
@click.option("--load", metavar="TIME", callback=seconds, help="How long to write (default: 30s).")
@shown("--workers", type=click.IntRange(1, 256), default=8, help="Workers that write.")
@click.option(
    "--api",
    callback=listed,
    shell_complete=complete.words("s3", "swift"),
    metavar="A,B",
    help="Write over these APIs: s3, swift.",
)
@click.option(
    "--control/--no-control",
    default=True,
    help="First run a control on disks that ignore flushes: it must lose objects.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=2014,
    help="Seed of the moments, the operations and the blocks that are kept.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=(
        "Folder for durability.jsonl and logs; an incomplete one with the same settings is "
        "completed."
    ),
)
@as_json
def command(
    layouts: tuple[str, ...],
    hardware: str | None,
    cuts: int,
    load: float | None,
    workers: int,
    api: tuple[str, ...] | None,
    control: bool,
    seed: int,
    out: Path,
    as_json: bool,
) -> int:
    """Write to each LAYOUT, cut the power of all its hosts at one instant, start it again on what
    its disks have, and read every object that it had acknowledged.
    """
    from weighbridge import selection
    from weighbridge.common.errors import (
        EXIT_DIFFERENCE,
        EXIT_FINE,
        EXIT_INVALID,
        EXIT_TARGET,
        DriverError,
        TargetError,
    )
    from weighbridge.conductor.durability import (
        DurabilityOrder,
        DurabilityPass,
        missing,
        refuse_unfit,
    )
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.conductor.plan import refuse_same_names
    from weighbridge.documents import DurabilityDocument
    from weighbridge.environment import place, require
    from weighbridge.results.analysis.durability import durability_of
    from weighbridge.results.record.durability import read_cuts
    from weighbridge.results.record.store import lock_run_folder
    from weighbridge.results_output import print_document
    from weighbridge.run import alone
    from weighbridge.screen.outcome import print_durability
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.suites import Durability

    screen = console(stderr=as_json)
    hosts = selection.hardware_named(hardware)
    found_layouts = [selection.layout_named(name, hosts) for name in dict.fromkeys(layouts)]
    refuse_same_names(found_layouts)
    planned = {one.layout.name: one for one in found_layouts}
    wanted = Durability(
        cuts=cuts, load=load or 30.0, workers=workers, control=control, api=chosen(api)
    )
    refuse_unfit(wanted, list(planned.values()), hosts)
    where = place()
    require(hosts, where)

    def say(text: str) -> None:
        print_line(screen, text, "dim")

    introduce(hosts, screen)
    with interruptible():
        selection.check(list(planned.values()), hosts, where, say)
    (out / "logs").mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    order = DurabilityOrder(
        wanted=wanted,
        seed=seed,
        hardware=hosts.name,
        layouts={name: one.layout for name, one in planned.items()},
    )
    with interruptible(), lock_run_folder(out), alone(hosts, where) as register:
        register(str(out))
        order.record(out)
        for name, is_control in missing(out, planned, wanted):
            one = DurabilityPass(
                planned[name],
                hosts,
                where,
                say,
                wanted=wanted,
                seed=seed,
                folder=out,
                control=is_control,
            )
            try:
                one.run()
            except (DriverError, TargetError) as error:
                failed.append(f"{name}: {error}")
                print_line(screen, failed[-1], "red")
    found = durability_of(read_cuts(out))
    if failed:
        code = EXIT_TARGET
    elif any(one.judgement == "lost" for one in found):
        code = EXIT_DIFFERENCE
    else:
        code = EXIT_FINE if any(one.judgement == "kept" for one in found) else EXIT_INVALID
    if as_json:
        print_document(DurabilityDocument(exit_code=code, layouts=found, failed=tuple(failed)))
    else:
        print_durability(found, screen)
    return code


def chosen(given: tuple[str, ...] | None) -> tuple[ObjectApi, ...] | None:
    """The APIs of these names; None: all. Raises UsageError."""
    from typing import get_args

    from weighbridge.common.endpoint import ObjectApi
    from weighbridge.common.errors import UsageError

    known: tuple[ObjectApi, ...] = get_args(ObjectApi)
    unknown = sorted(set(given or ()) - set(known))
    if unknown:
        raise UsageError(
            f"there is no API {', '.join(unknown)}", advice=f"APIs are {', '.join(known)}."
        )
    return None if given is None else tuple(one for one in known if one in given)
