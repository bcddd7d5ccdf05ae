"""Write docs/layouts.md, every layout that ships with its releases and settings, to stdout.

Run by `make reference`. Nothing in it depends on the machine or the day.
"""

from __future__ import annotations

import sys

from weighbridge.cli.files import releases_of
from weighbridge.common.document import Document
from weighbridge.topologies.loader import Layout, shipped_layouts

HEAD = """# Layouts that ship

Every layout with its file, written by `make reference`. A layout says which service runs on which
host, and names every setting that affects results. [Stores and layouts](stores.md) has what to know
about them, [Keys](reference.md) what else each kind of gateway can be set to.

The first release of each is its own; others are named where a layout is: `rgw-beast@ceph-18`.

| layout | what it is | releases |
| --- | --- | --- |
"""


def main() -> None:
    """Print the page."""
    found = {path: Document.read(path).into(Layout) for path in sorted(shipped_layouts().values())}
    out = [HEAD]
    for one in found.values():
        releases = ", ".join(f"`{name}`" for name in releases_of(one))
        out.append(f"| [`{one.name}`](#{one.name}) | {one.about} | {releases or '–'} |\n")
    for path, one in found.items():
        text = path.read_text(encoding="utf-8").strip()
        out.append(f"\n## {one.name}\n\n```yaml\n{text}\n```\n")
    sys.stdout.write("".join(out))


if __name__ == "__main__":
    main()
