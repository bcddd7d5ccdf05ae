"""`weighbridge topologies`: what can be stood up, at which releases, with which parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from weighbridge.topologies.layout import Layout


@click.command("topologies")
@click.argument("gateway", required=False)
def command(gateway: str | None) -> None:
    """List layouts, releases and parameters; of one GATEWAY (rgw, swift ...) or LAYOUT only, if it
    is named.
    """
    topologies(gateway)


def stands_at(layout: Layout, release: str) -> bool:
    """Whether the layout's settings are possible at a release of its gateway: civetweb, for one, is
    not in all of them.
    """
    from weighbridge.gateways.gateway import STORES  # noqa: PLC0415 - heavy rooms are imported by what needs them

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


def topologies(only: str | None) -> None:
    """Print layouts, releases and parameters, a line each.

    Raises UsageError when `only` names no gateway and no layout.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from weighbridge.common.document import Document, did_you_mean  # noqa: PLC0415
    from weighbridge.gateways.gateway import STORES  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.topologies.layout import Layout  # noqa: PLC0415
    from weighbridge.topologies.loader import shipped_layouts  # noqa: PLC0415
    from weighbridge.topologies.parameters import parameters  # noqa: PLC0415

    screen = console()
    layouts = [Document.read(path).into(Layout) for path in shipped_layouts().values()]
    named = next((layout.gateway for layout in layouts if layout.name == only), only)
    if named is not None and named not in STORES:
        known = [*STORES, *(layout.name for layout in layouts)]
        raise UsageError(f"no gateway or layout {only!r}{did_you_mean(named, known)}")
    kinds = [kind for kind in STORES if named in {None, kind}]

    def table(*titles: str) -> Table:
        drawn = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
        for title in titles:
            drawn.add_column(title, overflow="fold")
        return drawn

    drawn = table("layout", "gateway", "releases (the layout's own first)", "what stands")
    for layout in layouts:
        if layout.gateway in kinds:
            releases = dict.fromkeys(
                (
                    layout.release,
                    *(one for one in STORES[layout.gateway].releases if stands_at(layout, one)),
                )
            )
            drawn.add_row(
                *(
                    escape(word)
                    for word in (layout.name, layout.gateway, " ".join(releases), layout.about)
                )
            )
    screen.print(drawn)
    for kind in kinds:
        drawn = table(f"parameter of {kind}", "may be", "default", "what it does")
        for one in parameters(STORES[kind].Settings):
            drawn.add_row(*(escape(word) for word in (one.key, one.kind, one.default, one.about)))
        if drawn.row_count:
            screen.print(drawn)
    screen.print(
        "change them in a layout file, or where a layout is named: weighbridge up "
        "rgw-beast@ceph-18:radosgw.threads=64",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
