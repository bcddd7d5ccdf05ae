"""What stands, in words that can be pasted: hosts, endpoints, credentials, and how to reach
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from weighbridge.common.endpoint import Endpoint
from weighbridge.topologies.deployment import Stands, StatePlace, standing
from weighbridge.topologies.hardware import HOSTS

if TYPE_CHECKING:
    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.ssh.leftovers import ClaimedDeployment, Swept


def print_standing(place: StatePlace, console: Console) -> None:
    """Print every deployment that stands, and which of its daemons have died.

    Raises TargetError where nobody can tell.
    """
    found = standing(place)
    if not found:
        console.print("nothing stands", highlight=False)
    for stands in found:
        head, *rest = describe(stands)
        for line in (head, *lifeless(stands, place), *rest):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def lifeless(stands: Stands, place: StatePlace) -> list[str]:
    """The lines about what has died of a deployment on hosts of the lab; none where all of it runs.

    What runs on real hosts they alone can tell, and the file that says how they are reached is not
    known here.
    """
    if HOSTS[stands.kind].by_ssh:
        return ["  which of its daemons run: weighbridge status --hardware FILE"]
    if not HOSTS[stands.kind].contained:
        return []
    from weighbridge.topologies.lab.daemons import daemons  # noqa: PLC0415 - the lab is wanted only where there is one

    folder = place.deployments / stands.label
    started = daemons(folder)
    dead = [one for one in started if not one.alive]
    if started and len(dead) == len(started):
        return [_nothing()]
    return _changed(
        [
            _dead(one.service, one.host, f"{folder / 'logs' / one.host / one.service}.out")
            for one in dead
        ]
    )


def lifeless_there(
    stood: ClaimedDeployment, stands: Stands | None, there: Swept, hardware: Hardware
) -> list[str]:
    """The same of a deployment on real hosts, as they told it, and which of its hosts did not tell.

    `stands`: what this machine knows of it. Where it knows nothing, any host that did not answer
    may be one of its own.
    """
    started = [one for one in there.daemons if one.deployment == stood.claimed.deployment]
    dead = [one for one in started if not one.alive]
    silent = [name for name in there.failed if stands is None or name in stands.hosts]
    others = [
        name
        for name in (() if stands is None else stands.hosts)
        if name not in (*stood.hosts, *silent)
    ]
    silent += [
        f"{name} (no host of hardware {hardware.name})"
        for name in others
        if name not in hardware.hosts
    ]
    if started and len(dead) == len(started) and not silent:
        return [_nothing(" --hardware FILE")]
    lines = [_dead(one.service, one.host, f"{one.host}:{one.log}") for one in dead]
    lines += [
        f"  dead: all of it on {name}: it is not there any more"
        for name in others
        if name in hardware.hosts
    ]
    unknown = [f"  not known: what of it runs on {', '.join(silent)}"] if silent else []
    return [*_changed(lines, " --hardware FILE"), *unknown]


def _nothing(real: str = "") -> str:
    return f"  dead: nothing of it runs any more; `weighbridge down{real}` takes away what is left"


def _dead(service: str, host: str, log: str) -> str:
    return f"  dead: {service} on {host}; its log: {log}"


def _changed(dead: Sequence[str], real: str = "") -> list[str]:
    return (
        [*dead, f"  it is not what was stood up any more: `weighbridge down{real}`, and `up` again"]
        if dead
        else []
    )


def describe(stands: Stands) -> list[str]:
    """The lines about one deployment.

    Its network is reached from its client hosts, which see this machine's files.
    """
    client = stands.clients[0]
    anywhere = (
        client
        if len(stands.clients) == 1
        else f"{', '.join(stands.clients[:-1])} or {stands.clients[-1]}"
    )
    whose = "which has" if len(stands.clients) == 1 else "which have"
    lines = [
        (
            f"{stands.label}: layout {stands.layout} on hardware {stands.hardware}, since "
            f"{stands.since}"
        ),
        "  hosts: " + ", ".join(f"{name} {address}" for name, address in stands.hosts.items()),
    ]
    if HOSTS[stands.kind].by_ssh:
        lines.append(
            "  what it sees on a host, such as its configuration: weighbridge exec --hardware "
            f"FILE {client} -- COMMAND"
        )
    else:
        lines.append(
            f"  its network is its own: run clients on {anywhere}, {whose} this machine's files:"
        )
        lines.append(
            f"    weighbridge exec {client} -- COMMAND        (-- bash: a shell for the lines "
            "below)"
        )
    for endpoint in stands.endpoints:
        lines += [f"  {endpoint.api}: {endpoint.url}"]
        lines += [
            f"    {line}" for line in (_s3(endpoint) if endpoint.api == "s3" else _swift(endpoint))
        ]
    return lines


# What can be pasted puts no key on a command line, where every user of the machine could read it.


def _s3(endpoint: Endpoint) -> list[str]:
    key = endpoint.key.get_secret_value()
    # Older curls sign no sum of the body of their own, which S3 wants among what is signed.
    signed = f"--aws-sigv4 aws:amz:{endpoint.region}:s3 -H x-amz-content-sha256:UNSIGNED-PAYLOAD"
    return [
        f"access key {endpoint.user}   secret key {key}",
        "boto3:",
        f'  boto3.client("s3", endpoint_url="{endpoint.url}", aws_access_key_id="{endpoint.user}",',
        f'               aws_secret_access_key="{key}", region_name="{endpoint.region}")',
        "curl:",
        f"  curl {signed} -K - {endpoint.url}/ <<<'user = \"{endpoint.user}:{key}\"'",
    ]


def _swift(endpoint: Endpoint) -> list[str]:
    key = endpoint.key.get_secret_value()
    return [
        f"user {endpoint.user}   key {key}",
        "swift client:",
        f"  ST_AUTH={endpoint.url} ST_USER={endpoint.user} ST_KEY={key} swift stat",
        "curl:",
        (
            f"  curl -i -H 'X-Auth-User: {endpoint.user}' -K - {endpoint.url} <<<'header = "
            f'"X-Auth-Key: {key}"\''
        ),
    ]
