"""`weighbridge topologies`: what can be started, at which releases, with which parameters.

Raises UsageError for an unknown gateway or layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from weighbridge.topologies.layout import Layout


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


@click.command("topologies")
@click.argument("gateway", required=False, shell_complete=complete.layouts)
def command(gateway: str | None) -> None:
    """List layouts, releases and parameters, of one GATEWAY (rgw, swift ...) or LAYOUT if named."""
    from rich.markup import escape

    from weighbridge.common.document import Document, did_you_mean
    from weighbridge.gateways.gateway import STORES
    from weighbridge.screen.terminal import console, new_table, print_line
    from weighbridge.topologies.layout import Layout
    from weighbridge.topologies.loader import shipped_layouts
    from weighbridge.topologies.parameters import parameters

    screen = console()
    layouts = [Document.read(path).into(Layout) for path in shipped_layouts().values()]
    named = next((layout.gateway for layout in layouts if layout.name == gateway), gateway)
    if named is not None and named not in STORES:
        known = [*STORES, *(layout.name for layout in layouts)]
        raise UsageError(f"no gateway or layout {gateway!r}{did_you_mean(named, known)}")
    kinds = [kind for kind in STORES if named in {None, kind}]
    table = new_table("layout", "gateway", "releases (the layout's own first)", "what it is")
    for layout in layouts:
        if layout.gateway in kinds:
            possible = [one for one in STORES[layout.gateway].releases if runs_at(layout, one)]
            releases = " ".join(dict.fromkeys((layout.release, *possible)))
            table.add_row(*map(escape, (layout.name, layout.gateway, releases, layout.about)))
    screen.print(table)
    for kind in kinds:
        table = new_table(f"parameter of {kind}", "values", "default", "what it does")
        for one in parameters(STORES[kind].Settings):
            table.add_row(*map(escape, (one.key, one.kind, one.default, one.about)))
        if table.row_count:
            screen.print(table)
    print_line(
        screen,
        "change them in a layout file, or where a layout is named: weighbridge up "
        "rgw-beast@ceph-18:radosgw.threads=64",
    )
