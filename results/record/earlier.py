"""What runs of earlier versions do not say of themselves. Nothing is added here: a run says it now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weighbridge.common.layers import StoreLayer

STORE_LAYERS: Final[Mapping[str, StoreLayer]] = {"rgw": "rados", "swift": "object-server"}
"""The layer that is the store itself, by kind of gateway: now `Structure.layer`."""
