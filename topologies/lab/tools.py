"""The measuring tools: programs of one image for all hosts, run by that image's loader."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Final

from weighbridge.common.errors import CommandFailed, MissingPrerequisite
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.attestation import IMAGE
from weighbridge.topologies.images import ensure

INSIDE: Final = "/run/weighbridge/tools"
"""Where hosts have the tools. Below /run, which is each host's own file system: there the mount
point can be made even if the host's root is this machine's, read only.
"""


REBUILD: Final = "remove that folder: the image is built again when it is needed"


def toolbox(images: Path, say: Say, *, ending: Event | None = None) -> Path:
    """The image of the tools, built if it is missing. Raises CommandFailed."""
    try:
        return ensure(IMAGE, say, store=images, ending=ending)
    except CommandFailed as error:
        raise CommandFailed(
            error.host,
            error.argv,
            error.code,
            error.output,
            advice="attestation, `baseline` and the layers rbd and cephfs need this image; other "
            "runs do without it (--no-attest)",
        ) from error


def argv(root: Path, name: str) -> tuple[str, ...]:
    """The command that runs program `name` of the image `root` in a host that has it at `INSIDE`.

    With the image's own loader and libraries a program depends on nothing of the host but the
    kernel. Raises MissingPrerequisite when the image has no such program.
    """
    folder = next((one for one in ("usr/bin", "usr/sbin") if (root / one / name).is_file()), None)
    if folder is None:
        raise MissingPrerequisite(f"{root} has no program {name}", advice=REBUILD)
    # The C library's place on every Debian: /lib/x86_64-linux-gnu/ld-linux-x86-64.so.2,
    # /lib/s390x-linux-gnu/ld64.so.1.
    loader = next(iter(sorted(root.glob("lib/*-linux-gnu*/ld*.so.[0-9]"))), None)
    if loader is None:
        raise MissingPrerequisite(f"{root} has no loader", advice=REBUILD)
    triplet = loader.parent.name
    # fio is linked with Ceph's libraries, of which one is in a folder outside the usual search
    # path.
    folders = (f"usr/lib/{triplet}", f"lib/{triplet}", f"usr/lib/{triplet}/ceph")
    libraries = ":".join(f"{INSIDE}/{folder}" for folder in folders)
    return (
        f"{INSIDE}/{loader.relative_to(root)}",
        "--library-path",
        libraries,
        f"{INSIDE}/{folder}/{name}",
    )
