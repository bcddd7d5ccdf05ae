"""`weighbridge images`: the root images of lab hosts, and renewing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weighbridge.gateways.gateway import RootImage


@click.command("images")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--refresh",
    is_flag=True,
    help="Build those NAMEs, or all that are there, anew from today's packages.",
)
def command(names: tuple[str, ...], *, refresh: bool) -> None:
    """List the images that lab hosts are made of, with the day of their packages; NAME is one such
    as ceph-16.
    """
    images(names, refresh=refresh)


def images(names: Sequence[str], *, refresh: bool) -> None:
    """List images, or renew them.

    Raises UsageError for names that are none, all at once, and where hosts stand on one.
    """
    from weighbridge.common.document import did_you_mean  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from weighbridge.common.errors import UsageError  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.images import built_on, find, packages_sum  # noqa: PLC0415
    from weighbridge.topologies.images import refresh as build_anew  # noqa: PLC0415

    screen, store, known = console(), place().images, _known()
    strange = [
        f"no image {name!r}{did_you_mean(name, list(known))}" for name in names if name not in known
    ]
    if strange:
        raise UsageError("\n".join(strange))
    for name in names or known:
        root = find(known[name], store)
        if refresh and (root is not None or names):
            root = build_anew(
                known[name],
                lambda text: screen.print(text, markup=False, highlight=False),
                store=store,
            )
        told = (
            "not built" if root is None else f"packages of {built_on(root)}, {packages_sum(root)}"
        )
        screen.print(
            f"{name}: Debian {known[name].suite}, {told}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _known() -> Mapping[str, RootImage]:
    """Every image that this suite builds, by its name: one a release, and that of the tools."""
    from weighbridge.gateways.gateway import STORES  # noqa: PLC0415 - as above
    from weighbridge.topologies.attestation import IMAGE as TOOLS  # noqa: PLC0415

    made = [image for kind in STORES.values() for image in kind.releases.values() if image.packages]
    return {image.name: image for image in (*made, TOOLS)}
