"""Running deployments: hosts, endpoints, credentials, and commands that can be pasted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from weighbridge.common.endpoint import Endpoint
from weighbridge.results.show.terminal import print_line
from weighbridge.topologies.deployment import DeploymentRecord, StateFolders, running_deployments
from weighbridge.topologies.hardware import HOSTS

if TYPE_CHECKING:
    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.hosts import Daemon
    from weighbridge.topologies.ssh.leftovers import ClaimedDeployment, LeftoverReport


def print_running(place: StateFolders, console: Console) -> None:
    """Print running deployments and their dead daemons. Raises TargetError if unknown."""
    found = running_deployments(place)
    if not found:
        print_line(console, "nothing is running")
    for record in found:
        head, *rest = describe(record)
        for line in (head, *dead_here(record, place), *rest):
            print_line(console, line)


def dead_here(record: DeploymentRecord, place: StateFolders) -> list[str]:
    """Lines about dead daemons on lab hosts; how to ask real ones is not known here."""
    if HOSTS[record.kind].by_ssh:
        return ["  for its daemons: weighbridge status --hardware FILE"]
    started = lab_daemons(record, place)
    dead = [one for one in started if not one.alive]
    if dead and len(dead) == len(started):
        return [_nothing()]
    return _with_remedy([_dead(one.service, one.host, one.log) for one in dead])


def lab_daemons(record: DeploymentRecord, place: StateFolders) -> tuple[Daemon, ...]:
    """Daemons that were started on lab hosts; none of hosts of another kind. Raises TargetError."""
    if not HOSTS[record.kind].contained:
        return ()
    from weighbridge.topologies.lab.host import daemons  # noqa: PLC0415 - only for lab hosts

    return daemons(place.deployments / record.label)


def dead_there(
    found: ClaimedDeployment,
    record: DeploymentRecord | None,
    there: LeftoverReport,
    hardware: Hardware,
) -> list[str]:
    """The same on real hosts, by their answers, with hosts that did not answer; without a `record`
    any of those may be part of it.
    """
    started = [one for one in there.daemons if one.deployment == found.claimed.deployment]
    dead = [one for one in started if not one.alive]
    hosts = () if record is None else tuple(record.hosts)
    silent = [name for name in there.failed if record is None or name in hosts]
    others = [name for name in hosts if name not in (*found.hosts, *silent)]
    silent += [
        f"{name} (no host of hardware {hardware.name})"
        for name in others
        if name not in hardware.hosts
    ]
    if started and len(dead) == len(started) and not silent:
        return [_nothing(" --hardware FILE")]
    lines = [_dead(one.service, one.host, f"{one.host}:{one.log}") for one in dead]
    lines += [
        f"  dead: all of it on {name}, where nothing of it is left"
        for name in others
        if name in hardware.hosts
    ]
    unknown = [f"  not known: what is running on {', '.join(silent)}"] if silent else []
    return [*_with_remedy(lines, " --hardware FILE"), *unknown]


def _nothing(real: str = "") -> str:
    return f"  dead: none of it is running; `weighbridge down{real}` removes what is left"


def _dead(service: str, host: str, log: str) -> str:
    return f"  dead: {service} on {host}; its log: {log}"


def _with_remedy(dead: Sequence[str], real: str = "") -> list[str]:
    if not dead:
        return []
    return [*dead, f"  it is incomplete: `weighbridge down{real}`, and `up` again"]


def describe(record: DeploymentRecord) -> list[str]:
    """The lines about a deployment; its client hosts, which see this machine's files, reach it."""
    client, *others = record.clients
    what = f"layout {record.layout} on hardware {record.hardware}"
    addresses = (f"{name} {address}" for name, address in record.hosts.items())
    lines = [f"{record.label}: {what}, since {record.since}", f"  hosts: {', '.join(addresses)}"]
    if HOSTS[record.kind].by_ssh:
        lines.append(
            "  to see its files on a host, such as its configuration: weighbridge exec --hardware "
            f"FILE {client} -- COMMAND"
        )
    else:
        clients = " or ".join(filter(None, (", ".join(record.clients[:-1]), record.clients[-1])))
        has = "have" if others else "has"
        lines.append(
            f"  it has its own network: run clients on {clients}, which {has} this machine's files:"
        )
        lines.append(
            f"    weighbridge exec {client} -- COMMAND        (-- bash: a shell for the lines "
            "below)"
        )
    for endpoint in record.endpoints:
        commands = _s3(endpoint) if endpoint.api == "s3" else _swift(endpoint)
        urls = ", ".join(one.url for one in endpoint.each())
        lines += [f"  {endpoint.api}: {urls}", *(f"    {line}" for line in commands)]
    return lines


# The commands put no key on a command line, where every user of the machine could read it.


def _s3(endpoint: Endpoint) -> list[str]:
    key = endpoint.key.get_secret_value()
    # Older versions of curl do not sign the body's checksum, which S3 requires.
    signed = f"--aws-sigv4 aws:amz:{endpoint.region}:s3 -H x-amz-content-sha256:UNSIGNED-PAYLOAD"
    call = [
        f'boto3.client("s3", endpoint_url="{endpoint.url}", aws_access_key_id="{endpoint.user}",',
        f'             aws_secret_access_key="{key}", region_name="{endpoint.region}"',
    ]
    if endpoint.ca_file is not None:
        # Only over https does boto3 send checksums in trailers, which older gateways refuse.
        config = 'boto3.session.Config(request_checksum_calculation="when_required")'
        call[-1] += ","
        call.append(f'             verify="{endpoint.ca_file}", config={config}')
    return [
        f"access key {endpoint.user}   secret key {key}",
        "boto3:",
        *(f"  {line}" for line in call[:-1]),
        f"  {call[-1]})",
        "curl:",
        (
            f"  curl {_cacert(endpoint)}{signed} -K - {endpoint.url}/ "
            f"<<<'user = \"{endpoint.user}:{key}\"'"
        ),
    ]


def _cacert(endpoint: Endpoint) -> str:
    return "" if endpoint.ca_file is None else f"--cacert {endpoint.ca_file} "


def _swift(endpoint: Endpoint) -> list[str]:
    key = endpoint.key.get_secret_value()
    trusted = "" if endpoint.ca_file is None else f"OS_CACERT={endpoint.ca_file} "
    return [
        f"user {endpoint.user}   key {key}",
        "swift client:",
        f"  {trusted}ST_AUTH={endpoint.url} ST_USER={endpoint.user} ST_KEY={key} swift stat",
        "curl:",
        (
            f"  curl {_cacert(endpoint)}-i -H 'X-Auth-User: {endpoint.user}' -K - {endpoint.url} "
            f"<<<'header = \"X-Auth-Key: {key}\"'"
        ),
    ]
