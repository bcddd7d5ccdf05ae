"""Verbs about files: those that ship, and those that one writes, checks or converts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import OUTPUT_FILE, as_json, hardware, named
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from weighbridge.topologies.loader import Layout


def _runs_at(layout: Layout, release: str) -> bool:
    """Whether a release has the layout's settings: civetweb, for one, is not in all of them."""
    from weighbridge.gateways.gateway import STORES

    kind = STORES[layout.gateway]
    try:
        kind(
            release,
            kind.Placement.model_validate(layout.place),
            kind.Settings.model_validate(layout.settings),
        )
    except ValueError:
        return False
    return True


def releases_of(layout: Layout) -> tuple[str, ...]:
    """A layout's own release, then the others that have its settings."""
    from weighbridge.gateways.gateway import STORES

    possible = [one for one in STORES[layout.gateway].releases if _runs_at(layout, one)]
    return tuple(dict.fromkeys((layout.release, *possible)))


@click.command("topologies")
@click.argument("gateway", required=False, shell_complete=complete.layouts)
@as_json
def topologies_verb(gateway: str | None, *, as_json: bool) -> None:
    """List layouts, releases and parameters, of one GATEWAY (rgw, swift ...) or LAYOUT if named."""
    from weighbridge.common.document import Document, did_you_mean
    from weighbridge.documents import ParameterOfGateway, ShippedLayout, TopologiesDocument
    from weighbridge.gateways.gateway import STORES
    from weighbridge.results.show.terminal import console, print_line, print_table
    from weighbridge.results_output import print_document
    from weighbridge.topologies.loader import Layout, parameters, shipped_layouts

    layouts = [Document.read(path).into(Layout) for path in shipped_layouts().values()]
    named = next((layout.gateway for layout in layouts if layout.name == gateway), gateway)
    if named is not None and named not in STORES:
        known = [*STORES, *(layout.name for layout in layouts)]
        raise UsageError(f"no gateway or layout {gateway!r}{did_you_mean(named, known)}")
    kinds = [kind for kind in STORES if named in {None, kind}]
    found = TopologiesDocument(
        layouts=tuple(
            ShippedLayout(
                name=layout.name,
                about=layout.about,
                gateway=layout.gateway,
                releases=releases_of(layout),
            )
            for layout in layouts
            if layout.gateway in kinds
        ),
        parameters=tuple(
            ParameterOfGateway(
                gateway=kind, key=one.key, kind=one.kind, default=one.default, about=one.about
            )
            for kind in kinds
            for one in parameters(STORES[kind].Settings)
        ),
    )
    if as_json:
        print_document(found)
        return
    screen = console()
    head = ("layout", "gateway", "releases (the layout's own first)", "what it is")
    rows = [(one.name, one.gateway, " ".join(one.releases), one.about) for one in found.layouts]
    print_table(screen, head, rows)
    for kind in kinds:
        of_kind = [one for one in found.parameters if one.gateway == kind]
        if of_kind:
            head = (f"parameter of {kind}", "values", "default", "what it does")
            rows = [(one.key, one.kind, one.default, one.about) for one in of_kind]
            print_table(screen, head, rows)
    print_line(
        screen,
        "change them in a layout file, or where a layout is named: weighbridge up "
        "rgw-beast@ceph-18:radosgw.threads=64",
    )


@click.command("init")
@click.argument("kind", type=click.Choice(["suite", "layout", "hardware"]))
@click.argument("file", required=False, type=OUTPUT_FILE)
@click.option(
    "--of",
    "base",
    metavar="NAME",
    shell_complete=complete.bases,
    callback=named,
    help="The file that it starts from, or the name of one that ships (default: endpoints, "
    "rgw-beast, lab-cpu).",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def init_verb(kind: str, file: Path | None, base: str | None, force: bool) -> None:
    """Write a suite, layout or hardware file to FILE, or print it: valid as it is, with every key
    and what it is for.
    """
    from weighbridge.results.run.reading import make_folder, refuse_existing, write_atomically
    from weighbridge.starting_file import starting_file

    refuse_existing(() if file is None else (file,), force=force)
    text = starting_file(kind, base, file)
    if file is None:
        click.echo(text, nl=False)
        return
    make_folder(file.parent)
    write_atomically(file, text)
    click.echo(str(file))


@click.command("suites")
@as_json
def suites_verb(*, as_json: bool) -> None:
    """List the suites that ship: what each replays, over which APIs, and in how many steps."""
    from weighbridge.documents import shipped_suites
    from weighbridge.results.show.terminal import console, print_table
    from weighbridge.results_output import print_document

    found = shipped_suites()
    if as_json:
        print_document(found)
        return
    rows = []
    for one in found.suites:
        counts = (str(len(one.workloads)), str(one.repeats), str(one.steps))
        rows.append((one.name, one.about, " ".join(one.api), *counts))
    numbers = ("workloads", "repeats", "steps")
    head = ("suite", "what it replays", "api", *numbers)
    print_table(console(), head, rows, right=numbers, whole=True)


@click.command("hardware")
@as_json
def hardware_verb(*, as_json: bool) -> None:
    """List the hardware files that ship: the hosts of each, and what they are for."""
    from weighbridge.documents import shipped_hardware_files
    from weighbridge.results.show.terminal import console, print_table
    from weighbridge.results_output import print_document

    found = shipped_hardware_files()
    if as_json:
        print_document(found)
        return
    rows = [(one.name, one.kind, " ".join(one.hosts), one.about) for one in found.hardware]
    print_table(console(), ("hardware", "kind", "hosts", "what it is"), rows)


@click.command("render")
@click.argument("layout", shell_complete=complete.layouts)
@click.option("--host", metavar="HOST", help="Files of this host only.")
@hardware
def render_verb(layout: str, host: str | None, hardware: str | None) -> None:
    """Print every configuration file of LAYOUT as its hosts would get it; starts nothing.

    A file that is the same on several hosts is printed once. Settings that follow the size of the
    hosts are on stderr, each with its rule.
    """
    from weighbridge import selection
    from weighbridge.common.document import did_you_mean

    hosts = selection.hardware_named(hardware)
    planned = selection.layout_named(layout, hosts)
    names = list(planned.gateway.needs())
    if host is not None and host not in names:
        raise UsageError(
            f"{planned.layout.name} has nothing on a host {host!r}{did_you_mean(host, names)}"
        )
    same: dict[tuple[str, str], list[str]] = {}
    for one in planned.gateway.render(hosts.sites):
        if host in {None, one.host}:
            same.setdefault((one.path, one.text), []).append(one.host)
    for (path, text), on in same.items():
        click.echo(f"==> {', '.join(on)}: {path} <==")
        click.echo(text)
    release = planned.layout.release
    if (other := planned.gateway.settings_elsewhere(release)) is not None:
        click.echo(f"{release} gets the settings of {other}, checked by its programs", err=True)
    for setting in planned.sizing:
        click.echo(f"by size: {setting.key} is {setting.shown}: {setting.why}", err=True)
    if planned.sizing and (remark := selection.size_remark(hosts)):
        click.echo(remark, err=True)
    if not same:
        click.echo(f"{planned.layout.name} has no configuration files", err=True)


@click.command("import-cosbench")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=OUTPUT_FILE,
    metavar="FILE.yaml",
    help="Write the suite to this new file instead of printing it.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Make a suite even if it measures something other than the file.",
)
@click.option(
    "--size",
    metavar="SIZE",
    help="Size of objects that the file reads but does not write, such as 64KB.",
)
@click.option(
    "--runtime",
    metavar="TIME",
    help="Runtime of works that end only by totalOps or totalBytes, such as 60s.",
)
def import_cosbench_verb(
    file: Path, out: Path | None, partial: bool, size: str | None, runtime: str | None
) -> None:
    """Convert a COSBench workload file to a suite, so that Locust can replay it.

    Parts of the file that are not in the suite are named with their lines, on stderr and in the
    suite. If the suite would measure something else, it is made only with --partial.
    """
    from weighbridge.common.quantities import parse_bytes, parse_seconds
    from weighbridge.suites import importer

    try:
        size_bytes = parse_bytes(size) if size is not None else None
        runtime_s = parse_seconds(runtime) if runtime is not None else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if runtime_s is not None and (
        not isinstance(runtime_s, float) or runtime_s < 1 or runtime_s != int(runtime_s)
    ):
        raise UsageError(f"--runtime {runtime}: must be whole seconds, such as 60s")
    found = importer.from_cosbench(
        file,
        partial=partial,
        size=size_bytes if isinstance(size_bytes, int) else None,
        runtime_s=int(runtime_s) if isinstance(runtime_s, float) else None,
    )
    if out is None:
        click.echo(found.text, nl=False)
    else:
        try:
            with out.open("x", encoding="utf-8") as opened:
                opened.write(found.text)
        except FileExistsError:
            raise UsageError(
                f"{out} already exists", advice="Name another file, or delete this one first."
            ) from None
        except OSError as error:
            raise UsageError(f"{out}: {error.strerror}") from error
    for remark in found.remarks:
        click.echo(str(remark), err=True)
    if out is not None:
        click.echo(f"suite {found.suite.name} is in {out}", err=True)
