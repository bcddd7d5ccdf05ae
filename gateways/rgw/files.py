"""The configuration files of a deployment, by host and path, with what of them is secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from weighbridge.common.host import Host
from weighbridge.gateways import ini
from weighbridge.gateways.gateway import Rendered
from weighbridge.gateways.together import together


@dataclass(frozen=True)
class HostFile:
    """One file of one host. `secrets` are the parts of its text that must not be shown."""

    host: str
    path: str
    text: str
    secrets: tuple[str, ...] = ()

    @property
    def mode(self) -> int:
        """What may be read by whom: one with secrets is for root alone."""
        return 0o600 if self.secrets else 0o644


@dataclass(frozen=True)
class Files:
    """All files of a deployment."""

    files: Sequence[HostFile]

    def write(self, hosts: Mapping[str, Host]) -> None:
        """Put them on their hosts. Raises TargetError."""

        def put(name: str) -> None:
            for file in self.files:
                if file.host == name:
                    hosts[name].put(file.path, file.text, mode=file.mode)

        together([partial(put, name) for name in dict.fromkeys(file.host for file in self.files)])

    def shown(self) -> tuple[Rendered, ...]:
        """As they may be shown, `***` for secrets."""
        return tuple(
            Rendered(host=file.host, path=file.path, text=ini.mask(file.text, file.secrets))
            for file in self.files
        )
