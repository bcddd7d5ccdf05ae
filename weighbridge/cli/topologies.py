from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import as_json
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from weighbridge.topologies.loader import Layout


def runs_at(layout: Layout, release: str) -> bool:
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

    possible = [one for one in STORES[layout.gateway].releases if runs_at(layout, one)]
    return tuple(dict.fromkeys((layout.release, *possible)))


@click.command("topologies")
@click.argument("gateway", required=False, shell_complete=complete.layouts)
@as_json
def command(gateway: str | None, *, as_json: bool) -> None:
    """List layouts, releases and parameters, of one GATEWAY (rgw, swift ...) or LAYOUT if named."""
    from rich.markup import escape

    from weighbridge.common.document import Document, did_you_mean
    from weighbridge.documents import ParameterOfGateway, ShippedLayout, TopologiesDocument
    from weighbridge.gateways.gateway import STORES
    from weighbridge.results_output import print_document
    from weighbridge.screen.terminal import console, new_table, print_line
    from weighbridge.topologies.loader import Layout, shipped_layouts
    from weighbridge.topologies.parameters import parameters

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
    table = new_table("layout", "gateway", "releases (the layout's own first)", "what it is")
    for shipped in found.layouts:
        releases = " ".join(shipped.releases)
        table.add_row(*map(escape, (shipped.name, shipped.gateway, releases, shipped.about)))
    screen.print(table)
    for kind in kinds:
        table = new_table(f"parameter of {kind}", "values", "default", "what it does")
        for setting in found.parameters:
            if setting.gateway == kind:
                cells = (setting.key, setting.kind, setting.default, setting.about)
                table.add_row(*map(escape, cells))
        if table.row_count:
            screen.print(table)
    print_line(
        screen,
        "change them in a layout file, or where a layout is named: weighbridge up "
        "rgw-beast@ceph-18:radosgw.threads=64",
    )
