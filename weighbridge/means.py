"""What this machine has to have before a run is started, and how to get what it lacks."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from weighbridge.common.errors import MissingMeans, UsageError
from weighbridge.topologies.deployment import StatePlace
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.means import Mean, means


def means_for(hardware: Hardware, place: StatePlace) -> tuple[Mean, ...]:
    """What hosts of this hardware want of the machine; nothing for pretended hosts."""
    if hardware.of.by_ssh:
        from weighbridge.topologies.ssh.means import here  # noqa: PLC0415 - the way to real hosts is wanted only where there are some

        return here(hardware)
    return means(hardware, home=place.home) if hardware.of.contained else ()


def welcome() -> tuple[Mean, ...]:
    """What a run does without, but not all that may be asked of it."""
    found = shutil.which("perf") is not None
    return (
        Mean(
            "perf",
            found,
            "--profile: flame graphs, and what a disk was asked",
            "apt install linux-perf",
        ),
    )


def require(hardware: Hardware, place: StatePlace) -> None:
    """Raise MissingMeans, in the words of `weighbridge doctor`, when something is missing that a
    run cannot do without; UsageError where this command cannot keep what it needs in its folders.
    """
    # Images are read by users that have fewer rights (apt's, while one is built); locks and claims
    # are nobody else's.
    for folder, variable, mode in (
        (place.home, "WEIGHBRIDGE_HOME", 0o755),
        (place.state, "WEIGHBRIDGE_STATE", 0o700),
    ):
        _writable(folder, variable, mode)
    lacking = [mean for mean in means_for(hardware, place) if not mean.found]
    if lacking:
        lines = [f"  {mean.name}: {mean.why}\n    {mean.remedy}" for mean in lacking]
        raise MissingMeans(
            "this machine lacks:\n" + "\n".join(lines),
            advice="`weighbridge doctor` shows everything that is wanted.",
        )


def _writable(folder: Path, variable: str, mode: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"{folder}, where hosts and images are kept, cannot be written: {error.strerror}",
            advice=f"Set {variable} to a folder that this user can write.",
        ) from error
