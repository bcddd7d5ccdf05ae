"""A kind of hosts of another package: processes of this machine, of which each says that it used a
fifth of a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import ClassVar

from weighbridge.common.host import Counters
from weighbridge.topologies.fake import FakeHost, FakeHosts, FakeKind
from weighbridge.topologies.hosts import LIMITED, Limited


class ToyHost(FakeHost):
    def counters(self) -> Counters:
        return Counters(cpu_s=time.monotonic() / 5)


class ToyHosts(FakeHosts):
    make: ClassVar[type[FakeHost]] = ToyHost
    limited: frozenset[Limited] = frozenset()

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        self.limited |= {*what}

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        self.limited -= {*what}

    def facts(self) -> Mapping[str, str]:
        return {"hosts": f"toy hosts with limits of {', '.join(sorted(self.limited))}"}


class ToyKind(FakeKind):
    refuses: ClassVar[str] = "are toys: there is nothing to measure"
    passing: ClassVar[str] = "are toys and end with this command"
    made: ClassVar[type[FakeHosts]] = ToyHosts


TOYS = ToyKind()
