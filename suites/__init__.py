"""WHAT is replayed: the model of a suite, its loader, and the suites that ship."""

from weighbridge.suites.age import Age
from weighbridge.suites.suite import ASKED_OF_HOSTS, Api, Bounds, DriverName, Every, Further, Layer, RadosBench, Suite
from weighbridge.suites.workload import OPERATIONS, Bar, Histogram, Objects, Operation, Uniform, Workload, Zipf

__all__ = [
    "ASKED_OF_HOSTS",
    "OPERATIONS",
    "Age",
    "Api",
    "Bar",
    "Bounds",
    "DriverName",
    "Every",
    "Further",
    "Histogram",
    "Layer",
    "Objects",
    "Operation",
    "RadosBench",
    "Suite",
    "Uniform",
    "Workload",
    "Zipf",
]
