"""Running runc with a state folder of the lab; containers have labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.topologies.local_command import command

DEPLOYMENT = "io.weighbridge.deployment"
"""Annotation: the container's deployment."""
HOST = "io.weighbridge.host"
"""Annotation: the container's host."""


@dataclass(frozen=True)
class Container:
    """A container as runc lists it. `pid` is its first process on this machine, 0: it has ended."""

    id: str
    deployment: str
    host: str
    pid: int
    status: str
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
        listed = json.loads(command(self.argv("list", "--format", "json"))) or []
        found = [(one, one.get("annotations") or {}) for one in listed]
        return tuple(
            Container(
                one["id"],
                labels[DEPLOYMENT],
                labels.get(HOST, ""),
                one["pid"],
                one["status"],
                Path(one["bundle"]),
            )
            for one, labels in found
            if DEPLOYMENT in labels
        )

    def delete(self, container: str) -> None:
        """Kill and delete a container; one that is gone is no error. Raises CommandFailed."""
        command(self.argv("delete", "--force", container))

    def exec_argv(
        self, container: str, argv: Sequence[str], *, env: Sequence[str] = (), pid_file: Path
    ) -> list[str]:
        """The command that runs `argv` in a container; `pid_file` gets its pid on this machine."""
        variables = [word for one in env for word in ("--env", one)]
        return self.argv(
            "exec", "--cwd", "/", "--pid-file", str(pid_file), *variables, container, *argv
        )


def version() -> str:
    """The version of runc, such as `1.1.5+ds1`. Raises MissingPrerequisite or CommandFailed."""
    return command(["runc", "--version"]).splitlines()[0].removeprefix("runc version ").strip()
