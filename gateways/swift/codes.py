"""Erasure codes of a release, and the storage policy that its servers read."""

from __future__ import annotations

import json
from typing import Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.host import Host
from weighbridge.gateways.swift.settings import SwiftSettings

_TRY: Final = """
import json, sys
from pyeclib import ec_iface
order, why = json.load(sys.stdin), ""
known = sorted(ec_iface.VALID_EC_TYPES)
if order["type"] in known:
    try:
        ec_iface.ECDriver(k=order["k"], m=order["m"], ec_type=order["type"])
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
print(json.dumps({"known": known, "why": why}))
"""
_POLICY: Final = """
import json
from swift.common.storage_policy import POLICIES
one = POLICIES.default
print(json.dumps({name: getattr(one, name) for name in (
    "name", "ec_type", "ec_ndata", "ec_nparity", "ec_segment_size", "quorum")}))
"""


def faults(host: Host, settings: SwiftSettings) -> list[str]:
    """Why PyECLib of the release on this host cannot code as the settings say, a line each.

    Raises CommandFailed.
    """
    ec = settings.ec
    if ec is None:
        return []
    order = json.dumps({"type": ec.type, "k": ec.k, "m": ec.m})
    found = json.loads(host.run(["python3", "-c", _TRY], stdin=order).stdout)
    known = [str(name) for name in found["known"]]
    if ec.type not in known:
        return [f"settings.ec.type: no {ec.type!r}{did_you_mean(ec.type, known)}"]
    if found["why"]:
        return [f"settings.ec: {ec.type} cannot do k {ec.k}, m {ec.m}: {found['why']}"]
    return []


def policy_facts(host: Host, settings: SwiftSettings) -> dict[str, str]:
    """What Swift itself on this host reads of the policy of new containers; nothing without
    erasure coding. Raises CommandFailed.
    """
    if settings.ec is None:
        return {}
    one = json.loads(host.run(["python3", "-c", _POLICY]).stdout)
    count = one["ec_ndata"] + one["ec_nparity"]
    apart = "a zone" if settings.ec.failure_domain == "host" else "a disk"
    return {
        "replicas": f"erasure coded, {one['ec_ndata']} data and {one['ec_nparity']} parity "
        f"fragments ({one['ec_type']}, segments of {one['ec_segment_size']} bytes), each in "
        f"{apart} of its own; accounts and containers {settings.replicas} replicas; rings of "
        f"2^{settings.part_power} partitions",
        "acknowledgement": f"a write is acknowledged when {one['quorum']} of {count} fragments "
        "have been synced to disk (quorum of the policy); the others are waited for "
        f"{settings.proxy.post_quorum_timeout:g} s",
    }
