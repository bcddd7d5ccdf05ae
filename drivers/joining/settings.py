"""How clients join a run, as the command line says it."""

from __future__ import annotations

import ipaddress
import re
import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import click
from pydantic import Field

from weighbridge.common.address import host_port
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import parse_seconds
from weighbridge.common.record import Record
from weighbridge.drivers.joining.token import read_token

PORT: Final = 7420
"""By default; Locust's master then listens on the next one."""
LOOPBACK: Final = "127.0.0.1"
WAIT: Final = "10m"
MOST: Final = 1000
_AT: Final = re.compile(r"(?:(\[[0-9A-Fa-f:]+\]|[0-9.]+)(?::(\d{1,5}))?=)?(\d{1,5})")
_PLACE: Final = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)(?::(\d{1,5}))?")


class JoinSettings(Record):
    """How many clients join, where, and how long to wait for them."""

    clients: Annotated[int, Field(ge=1, le=MOST)]
    address: str
    """An address of this machine, without brackets."""
    port: Annotated[int, Field(ge=1, le=65534)]
    wait_s: Annotated[float, Field(gt=0)]
    token_file: Path

    @property
    def place(self) -> str:
        """Address and port as a client gives them."""
        return host_port(self.address, self.port)

    @property
    def locusts_port(self) -> int:
        """Where worker processes of clients connect to Locust's master."""
        return self.port + 1

    def check_locusts_port(self) -> None:
        """Raises OSError if Locust's master could not listen there now; it does so minutes later,
        when gateways have started.
        """
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        socket.create_server((self.address, self.locusts_port), family=family).close()

    @property
    def line(self) -> str:
        """The command to run on each client."""
        copy = shlex.quote(self.token_file.name)
        return f"weighbridge join {self.place} --token-file {copy}"


OPTIONS: Final = (
    click.Option(
        ["--clients-join"],
        metavar="[ADDRESS[:PORT]=]N",
        help="Wait for N further clients, which run `weighbridge join`, at an address of this "
        f"machine (default: {LOOPBACK}:{PORT}; their worker processes connect to the next port).",
    ),
    click.Option(
        ["--token-file"],
        metavar="FILE",
        help="File with the token that clients need to join; made if it is missing.",
    ),
    click.Option(
        ["--join-wait"],
        metavar="TIME",
        help=f"How long to wait for clients to join (default: {WAIT}).",
    ),
)


def join_settings(given: Mapping[str, object]) -> JoinSettings | None:
    """The settings of these options; None where no client joins. Raises UsageError."""
    where, token, wait = (given.get(name) for name in ("clients_join", "token_file", "join_wait"))
    if not isinstance(where, str):
        for option, value in (("--token-file", token), ("--join-wait", wait)):
            if value is not None:
                raise UsageError(
                    f"{option} is for clients that join",
                    advice="Set their number: --clients-join N",
                )
        return None
    faults: list[str] = []
    address, port, clients = LOOPBACK, PORT, 1
    try:
        address, port, clients = _parsed(where)
    except ValueError as error:
        faults.append(f"--clients-join: {error}")
    wait_s = parse_seconds_or_none(WAIT if wait is None else wait)
    if wait_s is None:
        faults.append(f"--join-wait: {wait!r} is not a time above 0")
    path = Path(str(token))
    if token is None:
        faults.append("--clients-join needs --token-file FILE, of which each client needs a copy")
    elif path.exists():
        try:
            read_token(path)
        except UsageError as error:
            faults.append(str(error))
    if faults or wait_s is None:
        raise UsageError("\n".join(faults))
    return JoinSettings(clients=clients, address=address, port=port, wait_s=wait_s, token_file=path)


def parse_seconds_or_none(value: object) -> float | None:
    """A time above 0, such as 10m, in seconds; None if it is none."""
    try:
        found = parse_seconds(value)
    except ValueError:
        return None
    return found if isinstance(found, float) and found > 0 else None


def _parsed(text: str) -> tuple[str, int, int]:
    """Address, port and number of clients of `[ADDRESS[:PORT]=]N`. Raises ValueError."""
    found = _AT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not [ADDRESS[:PORT]=]N, such as 10.0.0.5:{PORT}=2")
    address, port = found[1] or LOOPBACK, int(found[2] or PORT)
    if not 1 <= int(found[3]) <= MOST:
        raise ValueError(f"{found[3]} clients; 1 to {MOST} can join")
    if not 1 <= port <= 65534:
        raise ValueError(f"port {port}; it is 1 to 65534, and the next one is Locust's")
    try:
        one = ipaddress.ip_address(address.strip("[]"))
    except ValueError:
        raise ValueError(f"{address!r} is not an address") from None
    if one.is_unspecified:
        raise ValueError("all addresses of this machine are too many: name one")
    return str(one), port, int(found[3])


def parse_place(text: str) -> tuple[str, int]:
    """Host and port of what a client is to join: `HOST[:PORT]`. Raises UsageError."""
    found = _PLACE.fullmatch(text)
    port = int(found[2] or PORT) if found else 0
    if found is None or not 1 <= port <= 65535:
        raise UsageError(
            f"{text!r} is not HOST[:PORT]", advice="The run prints the complete line when it waits."
        )
    return found[1].strip("[]"), port
