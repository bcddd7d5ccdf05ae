"""Where this suite's own files are, in a checkout as in an installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import weighbridge

PACKAGE: Final = Path(weighbridge.__file__).resolve().parent
"""The folder of the package.

Its rooms are below it: in a checkout by links, so that paths below it must not be resolved.
"""
IMPORTED_FROM: Final = PACKAGE.parent
"""What has to be on a Python's path to import this suite: the checkout, or site-packages."""
ROOMS: Final = ("common", "drivers", "gateways", "results", "suites", "topologies")
"""The packages that are folders of their own in the repository.

Globs of the package do not descend into them there.
"""
