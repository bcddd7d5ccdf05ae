"""Importing Locust patches the process it is in: right for a driver, wrong for its tests."""

from __future__ import annotations

import pytest

from tests.drivers.locust.local_driver import kept, null

__all__ = ["kept", "null"]

with pytest.MonkeyPatch.context() as without:
    # Only for the import: drivers that tests start inherit the environment, and must be patched.
    without.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")
    import locust

assert locust.__version__
