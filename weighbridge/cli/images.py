from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import as_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weighbridge.gateways.gateway import RootImage


@click.command("images")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--refresh",
    is_flag=True,
    help="Build those NAMEs, or all that are built, again from today's packages.",
)
@as_json
def command(names: tuple[str, ...], *, refresh: bool, as_json: bool) -> None:
    """List lab hosts' images with the date of their packages; NAME is, for example, ceph-16."""
    from weighbridge.common.document import did_you_mean
    from weighbridge.common.errors import UsageError
    from weighbridge.documents import ImagesDocument, LabImage
    from weighbridge.environment import place
    from weighbridge.results_output import print_document
    from weighbridge.screen.terminal import console, print_line
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
    return {image.name: image for image in (*made, TOOLS)}
