"""Running measuring tools on hosts, one by one or all at once, under some limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Host
from weighbridge.topologies.hosts import Hosts, Limited

TIMEOUT_S: Final = 60.0
"""For one tool on one host; each is asked to run for two seconds at most."""

Result = TypeVar("Result")


@contextmanager
def limited(hosts: Hosts, what: Limited) -> Iterator[None]:
    """Put one kind of limit on the hosts while the block runs."""
    hosts.limit({what})
    try:
        yield
    finally:
        hosts.unlimit({what})


def ask(
    host: Host,
    tool: str,
    arguments: Sequence[str],
    read: Callable[[str], Result],
    *,
    times: int = 1,
    timeout_s: float = TIMEOUT_S,
) -> Result:
    """Run a tool on a host, `times` times in one command, and read what it prints.

    Raises CommandFailed, or TargetError naming the host when the output is not understood.
    """
    argv = [*host.tool(tool), *arguments]
    if times > 1:
        argv = ["sh", "-ec", f'for _ in $(seq {times}); do "$@"; done', tool, *argv]
    printed = host.run(argv, timeout_s=timeout_s).stdout
    try:
        return read(printed)
    except TargetError as error:
        raise TargetError(f"{host.name}: {error.message}") from error


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Call all of them in parallel; raises the first error when all have ended."""
    if not calls:
        return []
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]
