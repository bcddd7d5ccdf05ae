"""What the parts that look at, take and give back a real host ask of the way to it: scripts as
root, outside of any deployment.
"""

from __future__ import annotations

from typing import Protocol

from weighbridge.common.host import Completed


class Shell(Protocol):
    """A real host as its administrator sees it: nothing that runs here is in a deployment's view or
    slice.
    """

    @property
    def name(self) -> str:
        """Its name in the hardware file."""

    @property
    def address(self) -> str:
        """Its address on the network between the hosts."""

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run `/bin/sh -ec script sh words...` as root to its end; the script finds the words as
        $1, $2 ...

        Raises CommandFailed on another status than 0 or when it takes too long, TargetError when
        the host does not answer. What is secret goes by `stdin`.
        """

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        """Run a program of one file (Python 3.9, standard library only, up to 100 KB) as root by
        the host's Python to its end.

        It finds the words in sys.argv[1:]. Raises as `sh`.
        """
