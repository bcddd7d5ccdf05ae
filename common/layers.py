"""The layers of an object store, each declared once: what a suite may ask for, what a store has,
what a staircase shows.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

StoreLayer = Literal["osd", "rados", "object-server", "gateway", "rbd", "cephfs"]
"""What can be measured below or beside a gateway: its daemons behind their front, and what its
store offers.
"""

Layer = Literal["disk", "network", StoreLayer]
"""What a gateway is built on, and what is beside it on the same store. `gateway`: one of its
daemons, behind its front.

Of disk, network and osd (`ceph tell osd.N bench`) the hosts are asked once a deployment; at the
others steps are replayed.
"""

LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)

Level = Literal[Layer, "front"]
"""A step of a staircase: a layer, or the front that clients talk to."""
