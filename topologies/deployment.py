"""A deployment: a layout standing on the hardware, verified, limited, and taken away again without
a trace.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from weighbridge.common import inside
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import MissingMeans, ServiceFailed, TargetError, UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.scope import Scope
from weighbridge.common.undisturbed import Endings
from weighbridge.gateways.gateway import Gateway, Say, Standing
from weighbridge.topologies.attestation import Attestation, AttestOptions
from weighbridge.topologies.attestation import attest as attestation_of
from weighbridge.topologies.conducting import Conducted, conduct, conducted_below
from weighbridge.topologies.hardware import Hardware, HostsRequest
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.kept_logs import keep
from weighbridge.topologies.loader import Planned

RECORD = "deployment.json"
"""Name of the file, in a deployment's folder, that says what stands; only root can read it, since
it holds credentials.
"""


class StatePlace(Record):
    """Where a deployment keeps what it needs on this machine."""

    home: Path
    """Images and folders of deployments."""
    state: Path
    """What must not survive a reboot: runc's state and the lock."""

    @property
    def images(self) -> Path:
        """Root images, shared by all deployments."""
        return self.home / "images"

    @property
    def deployments(self) -> Path:
        """A folder for each deployment that stands."""
        return self.home / "deployments"


class Stands(Record):
    """What `up` leaves for `status`: what stands and how to reach it."""

    label: str
    layout: str
    hardware: str
    kind: str = "lab"
    """Of the hardware."""
    since: str
    hosts: dict[str, str]
    """Addresses by name of host."""
    clients: tuple[str, ...]
    endpoints: tuple[Endpoint, ...]


class Deployment:
    """A gateway that stands on hosts; a context manager whose end takes everything away."""

    def __init__(
        self,
        planned: Planned,
        hardware: Hardware,
        *,
        hosts: Hosts,
        standing: Standing,
        attestation: Attestation | None,
        kept: Path,
        took_s: float,
        endings: Endings,
    ) -> None:
        self.label = hosts.deployment
        self.layout = planned.layout
        self.hardware = hardware
        self.hosts: Mapping[str, Host] = hosts.hosts
        self.standing = standing
        self.took_s = took_s
        """Seconds from nothing (images cached) to verified and limited, without those that
        attestation took.
        """
        self.attestation = attestation
        """What its hosts can do; None when that was not asked for, or they are none of ours."""
        self._hosts = hosts
        self._kept = kept
        self._endings = endings

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The APIs that answer."""
        return self.standing.endpoints

    @property
    def client(self) -> Host:
        """The first of the hosts that make the load: drivers run here, and have others help
        them.
        """
        return self.clients[0]

    @property
    def clients(self) -> tuple[Host, ...]:
        """All hosts that make the load."""
        return tuple(self.hosts[name] for name in self.hardware.clients)

    def facts(self) -> dict[str, str]:
        """What decides results, of hosts and gateway."""
        tuned = (
            self.layout.tuned
            or "none: settings are as shipped, but for what the layout's name says"
        )
        return {**self._hosts.facts(), **self.standing.facts, "tuned": tuned}

    def may_change(self, planned: Planned, scope: Scope) -> None:
        """Raise UsageError where `change` would refuse this; touches nothing."""
        self.standing.may_change(planned.gateway, scope)

    def change(self, planned: Planned, scope: Scope, say: Say) -> tuple[str, ...]:
        """Have the gateway run as another layout says, which differs in settings alone; returns in
        words what was done.

        Limits are off while daemons start, as they were when the deployment came up, and on again
        when this returns or fails: it can then be changed back. Raises as `Standing.change` does;
        `layout` is then what it was.
        """
        try:
            self._hosts.unlimit()
            done = self.standing.change(planned.gateway, scope, say)
        except ServiceFailed as error:
            raise _moved(error, self._hosts, self._kept) from error
        finally:
            self._hosts.limit()
        self.layout = planned.layout
        return done

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Have the limits of CPU and disks off while the block runs: what is prepared is not
        measured. Raises TargetError.
        """
        self._hosts.unlimit(("cpu", "disk"))
        try:
            yield
        finally:
            self._hosts.limit(("cpu", "disk"))

    def drop_caches(self) -> tuple[str, ...]:
        """Drop the gateway's caches and then every host's kernel caches; returns in words what was
        dropped.
        """
        dropped = list(self.standing.drop_caches())
        dropped += dict.fromkeys(host.drop_kernel_caches() for host in self.hosts.values())
        return tuple(dropped)

    def check(self) -> None:
        """Raise ServiceFailed when a service of the gateway has died; its log is named where it
        will be kept.
        """
        try:
            self.standing.check()
        except ServiceFailed as error:
            raise _moved(error, self._hosts, self._kept) from error

    def keep(self) -> None:
        """Leave it standing when this object goes (`weighbridge up`)."""
        self._endings.drop()

    def close(self) -> None:
        """Take everything away. May be called more than once."""
        self._endings.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        finally:
            self.close()  # all that a signal has kept the first from


def deploy(
    planned: Planned,
    hardware: Hardware,
    place: StatePlace,
    say: Say,
    *,
    logs: Path | None = None,
    attest: bool | AttestOptions = False,
    tools: bool = False,
) -> Deployment:
    """Stand a checked layout up and put the limits of the hardware on.

    `logs` is where its hosts' logs are kept at the end; without it they are kept, below `logs` of
    the home folder, only when a service does not come up. `attest`: measure what the hosts can do
    before the gateway has their disks (True: what deployments are compared by); it takes some 20
    seconds at five hosts, and is left out where hosts are pretended. `tools`: have the tools on
    every host also without it.

    Raises ServiceFailed, CommandFailed or VerificationFailed; everything that was started is then
    gone again.
    """
    label = f"{planned.layout.name[:20]}-{secrets.token_hex(3)}"
    folder = place.deployments / label
    names = [
        name
        for name in hardware.hosts
        if name in planned.gateway.needs() or name in hardware.clients
    ]
    endings = Endings()
    try:
        asked = attest if isinstance(attest, AttestOptions) else AttestOptions(sameness=attest)
        ours = hardware.of.measurable
        raise_hosts = _hosts_of(
            planned.gateway, hardware, place, names, say, tools=ours and (tools or bool(asked))
        )
        started = time.monotonic()
        conduct(folder)
        endings.add(partial(shutil.rmtree, folder, ignore_errors=True))
        hosts = raise_hosts(label, folder)
        kept = place.home / "logs" / label if logs is None else logs
        if logs is not None:
            endings.add(partial(_keep_logs, hosts, kept, say))
        endings.add(hosts.close)
        attestation = (
            attestation_of(hosts, hardware, planned.gateway.needs(), say, asked)
            if ours and asked
            else None
        )
        client = hosts.hosts[hardware.clients[0]]
        try:
            standing = planned.gateway.bring_up(hosts.hosts, client, say)
        except ServiceFailed as error:
            _keep_logs(hosts, kept, say)
            raise _moved(error, hosts, kept) from error
        hosts.limit()
        took_s = (
            time.monotonic() - started - (attestation.took_s if attestation is not None else 0.0)
        )
        _write(folder, planned, hardware, hosts, standing)
        # Only now is it the caller's to take away: until here any error, of the record's disk too,
        # takes everything with it.
        return Deployment(
            planned,
            hardware,
            hosts=hosts,
            standing=standing,
            attestation=attestation,
            kept=kept,
            took_s=took_s,
            endings=endings,
        )
    except BaseException:
        try:
            endings.close()
        finally:
            endings.close()
        raise


def preflight(
    planned: Planned, hardware: Hardware, place: StatePlace, say: Say, *, attest: bool = False
) -> None:
    """Have a layout's own programs check its configuration, on hosts that are raised for it and
    taken away again.

    For all layouts of a run before the first is measured: what the last of them gets wrong would
    else be found hours later. Builds the images that are lacking, with `attest` that of its tools
    too. Raises UsageError with what is wrong, CommandFailed.
    """
    refused = _refusals([planned], hardware, place, say, attest=attest)
    for error in refused.values():
        raise error


def preflight_all(
    planneds: Sequence[Planned],
    hardware: Hardware,
    place: StatePlace,
    say: Say,
    *,
    attest: bool = False,
) -> dict[str, str]:
    """What its own programs refuse of each layout's configuration, by name of layout; empty when
    they take all of them.

    Hosts are raised once for all layouts of a kind, release and placement. Otherwise as
    `preflight`; raises CommandFailed, and MissingMeans, which is about this machine and not about a
    layout.
    """
    alike: dict[str, list[Planned]] = {}
    for planned in planneds:
        layout = planned.layout
        alike.setdefault(
            json.dumps([layout.gateway, layout.release, layout.place], sort_keys=True), []
        ).append(planned)
    found: dict[str, str] = {}
    for some in alike.values():
        found |= {
            name: str(error)
            for name, error in _refusals(some, hardware, place, say, attest=attest).items()
        }
    return {
        planned.layout.name: found[planned.layout.name]
        for planned in planneds
        if planned.layout.name in found
    }


def _refusals(
    planneds: Sequence[Planned], hardware: Hardware, place: StatePlace, say: Say, *, attest: bool
) -> dict[str, UsageError]:
    """By name of layout, of layouts that differ in settings alone; their hosts are raised and taken
    away again.
    """
    first = planneds[0]
    # A gateway that already runs is on none of the hosts: what can be checked of it is checked from
    # the client.
    wanted = hardware.clients if first.gateway.already_runs else first.gateway.needs()
    names = [name for name in hardware.hosts if name in wanted]
    raise_hosts = _hosts_of(
        first.gateway, hardware, place, names, say, tools=attest and hardware.of.measurable
    )
    label = f"{first.layout.name[:20]}-{secrets.token_hex(3)}"
    folder = place.deployments / label
    found: dict[str, UsageError] = {}
    endings = Endings()
    try:
        conduct(folder)
        endings.add(partial(shutil.rmtree, folder, ignore_errors=True))
        hosts = raise_hosts(label, folder)
        endings.add(hosts.close)
        for planned in planneds:
            try:
                # Each writes all files that its programs then read: what the one before wrote there
                # is gone.
                planned.gateway.preflight(hosts.hosts, say)
            except MissingMeans:
                raise
            except UsageError as error:
                found[planned.layout.name] = error
    finally:
        try:
            endings.close()
        finally:
            endings.close()
    return found


def _hosts_of(
    gateway: Gateway,
    hardware: Hardware,
    place: StatePlace,
    names: Sequence[str],
    say: Say,
    *,
    tools: bool,
) -> Callable[[str, Path], Hosts]:
    """What brings up the hosts; images are built here, so that this is not counted as time to come
    up.
    """
    image = gateway.releases[gateway.release]
    asked = HostsRequest(
        hardware, names, image, images=place.images, state=place.state, tools=tools
    )
    return hardware.of.prepared(asked, say)


def conducted(place: StatePlace) -> tuple[Conducted, ...]:
    """The folders of deployments that are there, also of processes that are gone; one that does not
    say whose it is is left out.
    """
    return conducted_below(place.deployments)


def _write(
    folder: Path, planned: Planned, hardware: Hardware, hosts: Hosts, standing: Standing
) -> None:
    stands = Stands(
        label=hosts.deployment,
        layout=planned.layout.name,
        hardware=hardware.name,
        kind=hardware.kind,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        hosts={name: host.address for name, host in hosts.hosts.items()},
        clients=hardware.clients,
        # What opens a gateway that already ran is the user's own, and none of what this deployment
        # made.
        endpoints=() if planned.gateway.already_runs else standing.endpoints,
    )
    inside.write(folder, RECORD, stands.model_dump_json(indent=1).encode(), mode=0o600)


def standing(place: StatePlace) -> tuple[Stands, ...]:
    """What stands on this machine, as far as `up` or a run that is under way has written it down.

    Raises TargetError.
    """
    found = []
    for path in sorted(place.deployments.glob(f"*/{RECORD}")):
        with suppress(FileNotFoundError):  # it is taken away while it is looked at
            try:
                found.append(
                    Stands.model_validate_json(
                        inside.read(path.parent, RECORD, largest_bytes=2**22)
                    )
                )
            except (ValidationError, inside.Refused) as error:
                advice = f"`weighbridge down` takes away what stands; then remove {path.parent}."
                raise TargetError(
                    f"{path}: does not say what stands, as it should", advice=advice
                ) from error
    return tuple(found)


def _keep_logs(hosts: Hosts, folder: Path, say: Say) -> None:
    """Copy the hosts' logs.

    What cannot be copied is said, and is no error: it would hide the one that ended the deployment.
    """
    for name, host in hosts.hosts.items():
        source = host.log("")
        if source.is_dir():
            try:
                keep(source, folder, name)
            except TargetError as error:
                say(error.message)


def _moved(error: ServiceFailed, hosts: Hosts, kept: Path) -> ServiceFailed:
    """The error with its log named where it is kept."""
    log = Path(error.log)
    host = hosts.hosts.get(error.host)
    if host is None or not log.is_relative_to(host.log("")):
        return error
    return error.moved(str(kept / error.host / log.relative_to(host.log(""))))
