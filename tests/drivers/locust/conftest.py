"""Importing Locust patches the process it is in, which is right for a driver and wrong for all the
tests of this one.
"""

from __future__ import annotations

import pytest

with pytest.MonkeyPatch.context() as without:
    # Not for longer than the import: the drivers that tests start inherit the environment, and must
    # be patched.
    without.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")
    import locust

assert locust.__version__
