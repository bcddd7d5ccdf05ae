"""WHAT is replayed: the model of a suite, its loader, and the suites that ship."""

from suites.suite import Api, Bounds, Every, Suite
from suites.workload import OPERATIONS, Bar, Histogram, Objects, Operation, Uniform, Workload, Zipf

__all__ = [
    "OPERATIONS",
    "Api",
    "Bar",
    "Bounds",
    "Every",
    "Histogram",
    "Objects",
    "Operation",
    "Suite",
    "Uniform",
    "Workload",
    "Zipf",
]
