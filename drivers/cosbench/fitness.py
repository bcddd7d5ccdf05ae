"""What of a workload COSBench can do."""

from __future__ import annotations

from collections.abc import Iterator

from weighbridge.drivers.cosbench.selectors import (
    JAVA_INT_MAX,
    Inexpressible,
    ratios,
    sizes,
    visits_all_in_turn,
)
from weighbridge.suites import Api, Workload
from weighbridge.suites.workload import VERIFIED_SHARE, Zipf


def unfit(workload: Workload, api: Api) -> tuple[str, ...]:
    """What of a workload COSBench cannot do over this API, in words."""
    return tuple(_unfit(workload, api))


def _unfit(workload: Workload, api: Api) -> Iterator[str]:
    asked = workload.operations
    if api not in ("swift", "s3"):
        yield f"COSBench asks gateways over swift or s3, not {api}"
    if "head" in asked:
        yield "COSBench has no head"
    if "list" in asked and api == "s3":
        yield "COSBench's list does nothing over s3, and counts that as a success"
    if "delete" in asked and "read" in asked:
        yield (
            "COSBench does not know what it has deleted, so that reads beside deletes would ask "
            "for what is gone"
        )
    try:
        ratios(asked)
    except Inexpressible as error:
        yield str(error)
    try:
        sizes(workload.objects.size)
    except Inexpressible as error:
        yield str(error)
    if isinstance(workload.pick, Zipf):
        yield "COSBench picks objects by chance or one after the other, not by popularity"
    elif (
        "delete" in asked or (workload.pick == "sequential" and "read" in asked)
    ) and not visits_all_in_turn(workload):
        objects = workload.objects
        yield (
            f"COSBench takes containers and objects in turn separately: of {objects.containers} x "
            f"{objects.per_container} it would"
            " visit a part again and again; choose counts without a common divisor"
        )
    if workload.rate_per_s is not None:
        yield "COSBench's workers ask as fast as they are answered, not at a rate"
    if workload.verify > VERIFIED_SHARE:
        yield "what COSBench reads is not compared with what was written"
    for what, seconds in (("runtime", workload.runtime), ("warmup", workload.warmup)):
        if seconds != int(seconds):
            yield f"COSBench's {what} is in whole seconds, not {seconds:g}"
    if max(workload.objects.containers, workload.objects.per_container) >= JAVA_INT_MAX:
        yield "COSBench numbers no more than 2^31 - 1 containers, and as many objects in each"
