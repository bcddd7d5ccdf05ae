"""What a disk with a model should do under a load, by the program that makes its times."""

from __future__ import annotations

import json
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, PositiveFloat, PositiveInt

from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.topologies.disk_models import DiskModel

PROGRAM: Final = Path(__file__).with_name("lab") / "vdisk_server"
"""It serves disks and simulates them, so that both take the same times."""
MOST_PER_S: Final = 4000.0
"""With more requests a second, this machine's CPU and not the model may decide how many there are,
on several disks at once: nothing is expected then.
"""
SLOWEST_BYTES_S: Final = 50e6
"""A cache is taken to be full after as long as it takes at this rate."""


class DiskLoad(Record):
    """Requests to the first `span` bytes of a disk, `depth` of them in flight."""

    write: bool
    random: bool
    bytes: PositiveInt
    depth: PositiveInt
    span: PositiveInt
    flush: bool = False
    """Whether each write is followed by a flush."""
    warmup: Annotated[float, Field(ge=0)] = 0.0
    """Seconds before the figures begin, such as a cache takes to fill."""
    seconds: PositiveFloat = 10.0
    most_per_s: PositiveFloat | None = None
    """A load of which more are served a second counts as not limited; None: 20 million requests."""


class DiskFigures(Record):
    """What the disk does: requests a second, and times in seconds."""

    per_s: float
    mean_s: float
    median_s: float
    p99_s: float
    flush_s: float
    """Of a flush, on average; 0 without any."""


def simulate(model: DiskModel, size_bytes: int, load: DiskLoad) -> DiskFigures | None:
    """A disk under a load, in no time; None: the model does not limit it. Raises TargetError."""
    question = {
        "model": model.model_dump(mode="json"),
        "bytes": size_bytes,
        "load": load.model_dump(mode="json"),
    }
    try:
        done = subprocess.run(
            [str(PROGRAM), "simulate"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or "").strip()
        raise TargetError(f"{PROGRAM}: {error}: {said}", advice="Run `make setup`.") from error
    answer = json.loads(done.stdout)
    return None if "error" in answer else DiskFigures.model_validate(answer)


@lru_cache(maxsize=256)
def expected_per_s(model: DiskModel, size_bytes: int, load: DiskLoad) -> float | None:
    """Requests a second that a disk sustains, with a full cache where the load writes.

    None: more than this machine may be able to ask for (`MOST_PER_S`). Raises TargetError.
    """
    warmup = 2.0 + model.write_cache / SLOWEST_BYTES_S if load.write else 0.0
    figures = simulate(
        model, size_bytes, load.model_copy(update={"warmup": warmup, "most_per_s": MOST_PER_S})
    )
    return None if figures is None else figures.per_s
