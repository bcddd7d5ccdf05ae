"""Running runc with a state folder of the lab; containers have labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.topologies.local_command import command

DEPLOYMENT = "io.weighbridge.deployment"
"""Annotation: the container's deployment."""
HOST = "io.weighbridge.host"
"""Annotation: the container's host."""
PRIVATE: Final = ("unshare", "--mount", "--propagation", "private")
"""Runs a program in a mount namespace of its own, whose mounts end with it."""


@dataclass(frozen=True)
class Container:
    """A container as runc lists it."""

    id: str
    deployment: str
    host: str
    bundle: Path


@dataclass(frozen=True)
class Runc:
    """runc with the state folder `root`."""

    root: Path

    def argv(self, *arguments: str) -> list[str]:
        return ["runc", "--root", str(self.root), *arguments]

    def containers(self) -> tuple[Container, ...]:
        """All labelled containers below the state folder. Raises CommandFailed."""
        if not self.root.is_dir():
            return ()
        found = []
        for one in json.loads(command(self.argv("list", "--format", "json"))) or []:
            labels = one.get("annotations") or {}
            if DEPLOYMENT in labels:
                host, bundle = labels.get(HOST, ""), Path(one["bundle"])
                found.append(Container(one["id"], labels[DEPLOYMENT], host, bundle))
        return tuple(found)

    def delete(self, container: str) -> None:
        """Kill and delete a container; one that is gone is no error. Raises CommandFailed."""
        command(self.argv("delete", "--force", container))
