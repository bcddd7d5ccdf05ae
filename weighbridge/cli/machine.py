"""Verbs about this machine and the hosts of hardware files: what they lack, have, and can do.

`baseline` raises UsageError before anything is started; CommandFailed or TargetError after all is
torn down.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import OUTPUT, as_json, hardware, introduce, names_option, shown, split
from weighbridge.common.errors import EXIT_FINE, EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.gateways.gateway import RootImage
    from weighbridge.results.features.baseline import Baseline
    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.lab.requirements import HostRequirement


@click.command("baseline")
@click.argument("hardware", default="auto", shell_complete=complete.hardware)
@shown("--sizes", default="4KiB,64KB,1MB", metavar="A,B", help="Object sizes to test disks with.")
@shown(
    "--out", default="baselines", type=OUTPUT, help="Folder in which the baseline's folder is made."
)
@click.option("--json", "as_json", is_flag=True, help="Print baseline.json instead of the table.")
def baseline_verb(hardware: str, sizes: str, out: Path, as_json: bool) -> None:
    """Measure the hosts of HARDWARE (a file, the name of one that ships, or auto: made from this
    machine, the default), one by one and all at once.
    """
    from weighbridge import selection
    from weighbridge.conductor.facts import facts_of_machine
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.environment import place, require
    from weighbridge.results.features.baseline import (
        Baseline,
        HostFigure,
        baseline_chart,
        baseline_csv,
    )
    from weighbridge.results.run.reading import make_folder, write_atomically
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import draw
    from weighbridge.topologies.attestation import tools_of
    from weighbridge.topologies.baseline import bare, measure, refuse

    sizes_bytes = sizes_of(sizes)
    hosts = selection.hardware_named(hardware)
    refuse(hosts)
    where = place()
    require(hosts, where)
    screen = console(stderr=as_json)

    say = partial(print_line, screen, style="dim")
    say(f"{hosts.name}: {hosts.about}")
    started, now = time.monotonic(), datetime.now(UTC)
    machine = facts_of_machine(hosts)
    with interruptible(), bare(hosts, where, say) as running:
        figures = measure(running, hosts, sizes_bytes, say)
        facts = dict(running.facts())
        tools = tools_of(running, hosts)
    baseline = Baseline(
        hardware=hosts.name,
        about=hosts.about,
        measured_at=now.isoformat(timespec="seconds"),
        took_s=time.monotonic() - started,
        tools=tools,
        machine={**machine, **facts},
        figures=tuple(HostFigure(**dict(one)) for one in figures),
    )
    folder = out / f"{now:%Y%m%dT%H%M%SZ}-{hosts.name}-{secrets.token_hex(3)}"
    make_folder(folder)
    write_atomically(folder / "baseline.json", baseline.model_dump_json(indent=1) + "\n")
    write_atomically(folder / "baseline.csv", baseline_csv(baseline.figures))
    if as_json:
        click.echo(baseline.model_dump_json(indent=1))
    else:
        print_baseline(baseline, screen)
        print_line(screen, f"\nwritten to {folder}")
    draw([baseline_chart(baseline)], folder / "charts", partial(click.echo, err=True))


def sizes_of(text: str) -> tuple[int, ...]:
    """Sizes in bytes, each once. Raises UsageError."""
    from weighbridge.common.quantities import parse_bytes

    sizes: list[int] = []
    faults = []
    for word in split(text):
        try:
            size = parse_bytes(word)
        except ValueError as error:
            faults.append(str(error))
            continue
        if not isinstance(size, int) or size <= 0:
            faults.append(f"{word!r} is not an object size")
        else:
            sizes.append(size)
    if faults or not sizes:
        raise UsageError(
            "; ".join(faults) or "--sizes names no size", advice="Write --sizes 4KiB,64KB,1MB."
        )
    return tuple(dict.fromkeys(sizes))


def print_baseline(baseline: Baseline, screen: Console) -> None:
    """Print a table for each group, and what is unexpected."""
    from rich.markup import escape

    from weighbridge.results.features.baseline import TITLES, oddities
    from weighbridge.results.numbers import UNKNOWN
    from weighbridge.results.show.terminal import new_table, print_line

    numbers = ("promised", "found", "of it")
    for group, title in TITLES.items():
        figures = [one for one in baseline.figures if one.group == group]
        if not figures:
            continue
        table = new_table(
            *("host", "what", *numbers),
            right=numbers,
            title=title,
            title_justify="left",
            title_style="bold",
        )
        for one in figures:
            of_it = one.share_of_promised
            share = UNKNOWN if of_it is None else f"{100 * of_it:.0f} %"
            table.add_row(escape(one.host), escape(one.what), one.promise_shown, one.shown, share)
        screen.print(table)
    odd = oddities(baseline.figures)
    for sentence in odd:
        print_line(screen, f"• {sentence}", "yellow")
    if not odd:
        print_line(screen, "• every limit is reached, and equal hosts measured the same")


@click.command("images")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--refresh",
    is_flag=True,
    help="Build those NAMEs, or all that are built, again from today's packages.",
)
@as_json
def images_verb(names: tuple[str, ...], *, refresh: bool, as_json: bool) -> None:
    """List lab hosts' images with the date of their packages; NAME is, for example, trixie."""
    from weighbridge.common.document import did_you_mean
    from weighbridge.documents import ImagesDocument, LabImage
    from weighbridge.environment import place
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import print_document
    from weighbridge.topologies.images import built_on, find, packages_sum
    from weighbridge.topologies.images import refresh as rebuild

    say, store, known = partial(print_line, console(stderr=as_json)), place().images, _known()
    strange = [
        f"no image {name!r}{did_you_mean(name, list(known))}" for name in names if name not in known
    ]
    if strange:
        raise UsageError("\n".join(strange))
    listed = []
    for name in names or known:
        root = find(known[name], store)
        if refresh and (root is not None or names):
            root = rebuild(known[name], say, store=store)
        built, packages = ("", "") if root is None else (built_on(root), packages_sum(root))
        suite = known[name].suite
        listed.append(LabImage(name=name, debian=suite, built=built, packages=packages))
        if not as_json:
            state = f"packages of {built}, {packages}" if built else "not built"
            say(f"{name}: {known[name].distribution} {suite}, {state}")
    if as_json:
        print_document(ImagesDocument(images=tuple(listed)))


def _known() -> Mapping[str, RootImage]:
    from weighbridge.gateways.gateway import STORES
    from weighbridge.topologies.attestation import IMAGE as TOOLS

    made = [image for kind in STORES.values() for image in kind.releases.values() if image.packages]
    return {image.root: image for image in (*made, TOOLS)}


VARIABLE = "_WEIGHBRIDGE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_verb(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    bash, in ~/.bashrc: eval "$(weighbridge completion bash)"; zsh, in ~/.zshrc: eval "$(weighbridge
    completion zsh)"; fish: weighbridge completion fish >~/.config/fish/completions/weighbridge.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    root = context.find_root().command
    if kind is None:  # another program may have taken click's own away
        raise click.UsageError(f"no completion for {shell}")
    source = kind(root, {}, "weighbridge", VARIABLE).source()
    # click's script for fish takes no values with commas, which lists of names have.
    click.echo(source.replace('string split ","', 'string split -m 1 ","'))


@click.command("doctor")
@hardware
@names_option(
    "--layouts",
    "A,B",
    "Layouts to check real hosts for (default: those that fit).",
    complete.layouts,
)
@as_json
def doctor_verb(hardware: str | None, layouts: str | None, *, as_json: bool) -> int:
    """Report what this machine, and real hosts, lack for the HARDWARE, and how to get it.

    Exits with 2 if anything is missing.
    """
    from weighbridge import selection

    hosts = selection.hardware_named(hardware)
    if hosts.of.by_ssh:
        return check_real_hosts(hosts, split(layouts), as_json=as_json)
    if layouts:
        raise UsageError(
            f"--layouts is for real hosts, and hardware {hosts.name!r} has none "
            f"(kind: {hosts.kind})"
        )
    return check_this_machine(hosts, as_json=as_json)


def check_this_machine(hosts: Hardware, *, as_json: bool) -> int:
    """Print what this machine has and lacks; returns the exit code."""
    from weighbridge.environment import optional_tools, place, requirements
    from weighbridge.results.show.terminal import console

    screen = console(stderr=as_json)
    introduce(hosts, screen)
    found, optional = requirements(hosts, place()), optional_tools()
    _print(screen, found, optional)
    lacking = sum(not one.found for one in found)
    screen.print(
        f"{lacking} of {len(found)} missing" if lacking else f"this machine can run {hosts.name}",
        highlight=False,
    )
    code = EXIT_USAGE if lacking else EXIT_FINE
    if as_json:
        _print_document(hosts, code, [("", found, False), ("", optional, True)])
    return code


def check_real_hosts(hosts: Hardware, layouts: tuple[str, ...], *, as_json: bool) -> int:
    """What this machine and real hosts have and lack; the exit code. Raises UsageError."""
    from weighbridge import selection
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.topologies.ssh import requirements

    screen = console(stderr=as_json)
    planned = (
        [selection.layout_named(name, hosts) for name in layouts]
        if layouts
        else list(selection.fitting(hosts))
    )
    with interruptible():
        here = requirements.here(hosts)
        there = requirements.look(hosts, planned)
    screen.print("[bold]this machine[/]")
    _print(screen, here)
    for one in there:
        client = " (client)" if one.host in hosts.clients else ""
        screen.print(
            f"\n[bold]{one.host}[/] {hosts.hosts[one.host].address}{client}", highlight=False
        )
        _print(screen, one.requirements)
    everything = [*here, *(requirement for one in there for requirement in one.requirements)]
    lacking = sum(not requirement.found for requirement in everything)
    names = ", ".join(one.layout.name for one in planned) or "no layout that ships"
    verdict = f"{lacking} of {len(everything)} missing" if lacking else f"{hosts.name} is ready"
    print_line(screen, f"\n{verdict}; checked for {names}")
    advice = tuple(text for one in planned for text in one.advice)
    for text in advice:
        print_line(screen, text)
    code = EXIT_USAGE if lacking else EXIT_FINE
    if as_json:
        seen = [(one.host, one.requirements, False) for one in there]
        _print_document(hosts, code, [("", here, False), *seen], advice)
    return code


def _print_document(
    hosts: Hardware,
    code: int,
    seen: Iterable[tuple[str, Iterable[HostRequirement], bool]],
    advice: tuple[str, ...] = (),
) -> None:
    from weighbridge.documents import DoctorDocument, RequirementSeen
    from weighbridge.results_output import print_document

    requirements = tuple(
        RequirementSeen(
            host=host,
            name=one.name,
            found=one.found,
            optional=optional,
            why=one.why,
            remedy=one.remedy,
        )
        for host, some, optional in seen
        for one in some
    )
    print_document(
        DoctorDocument(
            exit_code=code, hardware=hosts.name, requirements=requirements, advice=advice
        )
    )


def _print(
    screen: Console, required: Iterable[HostRequirement], optional: Iterable[HostRequirement] = ()
) -> None:
    from rich.markup import escape
    from rich.table import Table

    from weighbridge.common.escaping import as_started

    table = Table("", "what", "why", "how to get it", box=None, header_style="bold")
    lines = [(one, "", "[red]✘[/]") for one in required]
    lines += [(one, " (optional)", "[yellow]·[/]") for one in optional]
    for one, remark, missing in lines:
        mark, remedy = ("[green]✔[/]", "") if one.found else (missing, one.remedy)
        table.add_row(
            mark, f"{escape(one.name)}{remark}", escape(one.why), escape(as_started(remedy))
        )
    screen.print(table)
