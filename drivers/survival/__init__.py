"""Load for power cuts, and the inspection of what survived one.

`writing` writes objects of which each has one history, `expected_after` says what of them may be
there after a cut, and `inspect` reads and lists them all.
"""

from weighbridge.drivers.survival.judge import Expected, expected_after, unreadable
from weighbridge.drivers.survival.operation import Operation, record_operations
from weighbridge.drivers.survival.orders import Ended, InspectOrder, WriteOrder
from weighbridge.drivers.survival.programs import Inspection, Writing, inspect, writing

__all__ = [
    "Ended",
    "Expected",
    "InspectOrder",
    "Inspection",
    "Operation",
    "WriteOrder",
    "Writing",
    "expected_after",
    "inspect",
    "record_operations",
    "unreadable",
    "writing",
]
