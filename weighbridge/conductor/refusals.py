"""What a suite asks of layouts that they are known not to do: refused before anything starts."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.common.errors import UsageError
from weighbridge.drivers.kind import KINDS
from weighbridge.suites import VERSIONS, Suite, encryption_needs, signing_needs
from weighbridge.suites.workload import REPEATED_AFTER_BYTES
from weighbridge.topologies.loader import Planned


def refuse_what_layouts_lack(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError for what a layout is known not to do, or a driver not on it."""
    _refuse_lone_drivers(suite, planned)
    _refuse_repeated_content(suite, planned)
    _refuse_ways(suite, planned)
    _refuse_lacking(suite, planned)


def _refuse_lone_drivers(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError when clients use several endpoints of a layout and a driver cannot."""
    spread = [one.layout.name for one in planned if one.gateway.spreads()]
    lone = [name for name in suite.drivers if not KINDS.get_or_refuse(name).spreads]
    lone += ["users: sdk"] if suite.users == "sdk" else []
    if spread and lone:
        raise UsageError(
            f"{', '.join(spread)}: several endpoints, but {', '.join(lone)} would use only one",
            advice="Use Locust with the engine, or a layout with one endpoint or a front.",
        )


def _refuse_repeated_content(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError where objects would be compressed as their content repeats itself."""
    packed = [
        f"{one.layout.name} ({one.gateway.compresses})" for one in planned if one.gateway.compresses
    ]
    unsaid = [
        one.name
        for one in suite.workloads
        if one.objects.compressible is None and one.objects.largest_bytes > REPEATED_AFTER_BYTES
    ]
    if packed and unsaid:
        raise UsageError(
            f"{', '.join(packed)} compresses objects, and those of {', '.join(unsaid)} repeat "
            f"themselves after {REPEATED_AFTER_BYTES:,} bytes",
            advice="Set in the suite how well they compress, as in `objects: {compressible: 50%}`.",
        )


def _refuse_ways(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError when a layout does not take requests that are signed as a workload's, or
    does not encrypt as they ask.
    """
    faults = [
        f"{workload.name}: {one.layout.name} ({one.layout.release}): {lacked[way]}"
        for one in planned
        if "s3" in suite.api and (lacked := one.gateway.s3_lacks())
        for workload in suite.workloads
        for way in (
            *signing_needs(workload.signed, tls=one.gateway.own_ca),
            *encryption_needs(workload.encrypted),
        )
        if way in lacked
    ]
    if faults:
        raise UsageError(
            "\n".join(faults),
            advice="Leave that `signing` or `encryption` out, or choose another release; see "
            "docs/signing.md and docs/keeping.md.",
        )


def _refuse_lacking(suite: Suite, planned: Sequence[Planned]) -> None:
    """Raise UsageError when a layout is known not to do an operation of a workload."""
    faults = [
        f"{workload.name}: {one.layout.name} ({one.layout.release}) has no {operation} over {api}: "
        f"{lacked[operation]}"
        for one in planned
        for api in one.gateway.apis()
        if api in suite.api and (lacked := one.gateway.operations_lacked(api))
        for workload in suite.workloads
        for operation in (*workload.operations, *((VERSIONS,) if workload.versions else ()))
        if operation in lacked
    ]
    if faults:
        raise UsageError(
            "\n".join(faults),
            advice="Leave that operation or API out, or choose another layout or release; see "
            "docs/what-is-sent.md.",
        )
