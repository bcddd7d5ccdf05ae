"""The native part of the Locust driver: Rust threads that make requests and count them without the
GIL.

Import what it offers from `drivers.engine._native` (documented in `_native.pyi`); nothing of it is
needed to import this package.
"""
