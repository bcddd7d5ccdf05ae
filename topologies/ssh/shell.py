"""The interface for examining and preparing a real host: scripts as root, outside deployments."""

from __future__ import annotations

from typing import Protocol

from weighbridge.common.host import Completed


class Shell(Protocol):
    """A real host as its administrator sees it, outside of a deployment's view and slice."""

    @property
    def name(self) -> str:
        """Its name in the hardware file."""

    @property
    def address(self) -> str:
        """Its address on the network between the hosts."""

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run `/bin/sh -ec script sh words...` as root to its end; the script has the words as $1,
        $2 ...

        Raises CommandFailed on a status other than 0 or a timeout, TargetError when the host does
        not answer. Secrets go by `stdin`.
        """

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a program of one file (Python 3.9, standard library, up to 100 KB) as root to its
        end.

        It has the words in sys.argv[1:]. Raises as `sh`.
        """
