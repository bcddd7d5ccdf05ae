"""The layers of an object store: what a suite asks for, a store offers and a staircase shows."""

from __future__ import annotations

from typing import Final, Literal, get_args

StoreLayer = Literal["osd", "rados", "object-server", "gateway", "rbd", "cephfs"]
"""What can be measured below or beside a gateway. `gateway`: one daemon without its front."""

Layer = Literal["disk", "network", StoreLayer]
"""Everything below a gateway, and beside it on the same store.

Disk, network and osd (`ceph tell osd.N bench`) are measured once per deployment; at the others
steps are replayed.
"""

LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)

Level = Literal[Layer, "front"]
"""A level of a staircase: a layer, or the front that clients talk to."""
