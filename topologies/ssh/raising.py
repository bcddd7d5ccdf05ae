"""Real hosts for one deployment: reached, looked at, taken, and given back."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gateways.gateway import Image, Say
from topologies.hardware import Hardware
from topologies.hosts import Hosts


def raise_ssh(
    deployment: str,
    hardware: Hardware,
    image: Image,
    say: Say,
    *,
    folder: Path,
    names: Collection[str],
    tools: bool = False,
) -> Hosts:
    """Take the hosts `names` for a deployment. `folder` gets what is kept of them here, such as copies of their logs.

    `image` says what has to be installed on hosts that do not make the load; `tools`: what attestation wants too.
    """
    raise NotImplementedError
