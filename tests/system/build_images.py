"""Builds the root images that system tests want, one after the other: run beside the checks of
the code, before any test.

    python tests/system/build_images.py [--all]

Those of other releases than the shipped layouts', which only `make test-all` starts, with `--all`.
What is in the store already is left. A build that fails is told here and again by the test that
wants the image.
"""

from __future__ import annotations

import sys

from keystone_host import IMAGE as KEYSTONE
from machines import IMAGE as MACHINE
from weighbridge.common.errors import WeighbridgeError
from weighbridge.environment import place
from weighbridge.gateways.gateway import STORES, RootImage
from weighbridge.topologies.attestation import IMAGE as TOOLS
from weighbridge.topologies.images import ensure

RELEASES = (("rgw", "ceph-18"), ("rgw", "ceph-16"), ("seaweedfs", "seaweedfs-4.48"))
OTHERS = (("rgw", "ceph-14"), ("swift", "swift-2.26"))
"""The oldest of each."""


def main(releases: tuple[tuple[str, str], ...]) -> int:
    wanted: list[RootImage] = [
        TOOLS,
        *(STORES[kind].releases[release] for kind, release in releases),
        MACHINE,
        KEYSTONE,
    ]
    failed = 0
    for image in wanted:
        try:
            ensure(image, print, store=place().images)
        except WeighbridgeError as error:
            sys.stderr.write(f"image {image.name}: {error}\n")
            failed += 1
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main((*RELEASES, *(OTHERS if "--all" in sys.argv else ()))))
