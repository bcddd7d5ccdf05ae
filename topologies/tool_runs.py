"""Running measuring tools on hosts, one by one or all at once, under some limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final, TypeVar

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host
from weighbridge.topologies.ceilings import IPERF_PORT
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


def serve(host: Host, stack: ExitStack, port: int = IPERF_PORT) -> None:
    """Start iperf3 on a host as a server of one client at a time; the stack ends it.

    Raises CommandFailed.
    """
    log = host.log("attest-iperf3.out")
    address = ("--bind", host.address, "--port", str(port))
    argv = (*host.tool("iperf3"), "--server", "--forceflush", *address)
    server = stack.enter_context(host.spawn(argv, stderr=log))
    stack.callback(server.kill)
    if server.stdout is None:
        raise ValueError("the program was started without a pipe")
    for line in server.stdout:
        if b"listening" in line:
            return
    raise CommandFailed(
        host.name, argv, server.wait(10), "\n".join(host.log_tail("attest-iperf3.out"))
    )
