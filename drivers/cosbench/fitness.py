"""What of a workload COSBench can do."""

from __future__ import annotations

from suites import Api, Workload


def unfit(workload: Workload, api: Api) -> tuple[str, ...]:
    """What of a workload COSBench cannot do over this API, in words."""
    raise NotImplementedError
