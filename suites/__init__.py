"""WHAT is replayed: the model of a suite, its loader, and the suites that ship."""

from weighbridge.common.layers import Layer
from weighbridge.suites.age import Age
from weighbridge.suites.cache_policy import CachePolicy, Every, kernel_alone
from weighbridge.suites.durability import Durability
from weighbridge.suites.encryption import PLAIN, encryption_needs
from weighbridge.suites.factors import ENCRYPTION, FACTORS, SIGNING, Factor
from weighbridge.suites.fault import Fault, FaultWay
from weighbridge.suites.listed import Listed
from weighbridge.suites.listed_workloads import continues, deleted_indexes, remaining, whole
from weighbridge.suites.operations import (
    OPERATIONS,
    PARTS,
    PLAIN_OPERATIONS,
    TRAITS,
    Operation,
    parts_of,
)
from weighbridge.suites.overload import Overload
from weighbridge.suites.signing import (
    UNSIGNED,
    WorkloadSigning,
    signing_label,
    signing_needs,
    signing_words,
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
from weighbridge.suites.versions import VERSIONS
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
    "ENCRYPTION",
    "FACTORS",
    "HOST_LAYERS",
    "OPERATIONS",
    "PARTS",
    "PLAIN",
    "PLAIN_OPERATIONS",
    "SIGNING",
    "TRAITS",
    "UNSIGNED",
    "VERSIONS",
    "Age",
    "Api",
    "Bounds",
    "CachePolicy",
    "DriverName",
    "Durability",
    "Every",
    "Factor",
    "Fault",
    "FaultWay",
    "Further",
    "Layer",
    "Listed",
    "Objects",
    "Operation",
    "Overload",
    "RadosBenchOptions",
    "SizeBar",
    "SizeHistogram",
    "Suite",
    "Uniform",
    "Workload",
    "WorkloadSigning",
    "Zipf",
    "continues",
    "deleted_indexes",
    "encryption_needs",
    "kernel_alone",
    "parts_of",
    "remaining",
    "signing_label",
    "signing_needs",
    "signing_words",
    "whole",
]
