"""WHAT is replayed: the model of a suite, its loader, and the suites that ship."""

from weighbridge.common.layers import Layer
from weighbridge.suites.age import Age
from weighbridge.suites.cache_policy import CachePolicy, Every, kernel_alone
from weighbridge.suites.operations import (
    OLD_OPERATIONS,
    OPERATIONS,
    PARTS,
    TRAITS,
    Operation,
    parts_of,
)
from weighbridge.suites.suite import (
    DEFAULT_DRIVER,
    HOST_LAYERS,
    Api,
    Bounds,
    DriverName,
    Further,
    RadosBenchOptions,
    Suite,
)
from weighbridge.suites.workload import (
    Objects,
    SizeBar,
    SizeHistogram,
    Uniform,
    Workload,
    Zipf,
)

__all__ = [
    "DEFAULT_DRIVER",
    "HOST_LAYERS",
    "OLD_OPERATIONS",
    "OPERATIONS",
    "PARTS",
    "TRAITS",
    "Age",
    "Api",
    "Bounds",
    "CachePolicy",
    "DriverName",
    "Every",
    "Further",
    "Layer",
    "Objects",
    "Operation",
    "RadosBenchOptions",
    "SizeBar",
    "SizeHistogram",
    "Suite",
    "Uniform",
    "Workload",
    "Zipf",
    "kernel_alone",
    "parts_of",
]
