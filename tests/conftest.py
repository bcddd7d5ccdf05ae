from pathlib import Path

import pytest

from weighbridge.testing import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)
