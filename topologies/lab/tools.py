"""Tools that every host has alike, whatever Debian its own root is of: programs of one image, by
that image's own loader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weighbridge.common.errors import MissingMeans

INSIDE: Final = "/run/weighbridge/tools"
"""Where hosts have the tools. Below /run, which is a file system of its own in every host: the
mount point can be made there also where the host's root is this machine's, read only."""


def argv(root: Path, name: str) -> tuple[str, ...]:
    """The command that runs the program `name` of the image `root` in a host that has it at
    `INSIDE`.

    The loader is named because it is what ties a program to a release of Debian: by its own, with
    libraries of its own, it asks nothing of the host but the kernel. Raises MissingMeans when the
    image has no such program.
    """
    if not (root / "usr/bin" / name).is_file():
        raise MissingMeans(
            f"{root} has no program {name}",
            advice="remove that folder: the image is built again when it is wanted",
        )
    # Where the C library puts it on every Debian: /lib/x86_64-linux-gnu/ld-linux-x86-64.so.2,
    # /lib/s390x-linux-gnu/ld64.so.1.
    loader = next(iter(sorted(root.glob("lib/*-linux-gnu*/ld*.so.[0-9]"))), None)
    if loader is None:
        raise MissingMeans(
            f"{root} has no loader",
            advice="remove that folder: the image is built again when it is wanted",
        )
    triplet = loader.parent.name
    # fio is linked with Ceph's libraries, of which one is in a folder that they name by its place
    # on a host of their own.
    folders = (f"usr/lib/{triplet}", f"lib/{triplet}", f"usr/lib/{triplet}/ceph")
    libraries = ":".join(f"{INSIDE}/{folder}" for folder in folders)
    return (
        f"{INSIDE}/{loader.relative_to(root)}",
        "--library-path",
        libraries,
        f"{INSIDE}/usr/bin/{name}",
    )
