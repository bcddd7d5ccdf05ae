"""A suite as the YAML that people edit, with what an import has to say above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from weighbridge.suites.importer_remarks import Remark
from weighbridge.suites.importer_selectors import Size
from weighbridge.suites.importer_shapes import WorkloadShape
from weighbridge.suites.workload import Uniform

_UNITS = (
    ("GB", 10**9),
    ("MB", 10**6),
    ("KB", 10**3),
    ("GiB", 2**30),
    ("MiB", 2**20),
    ("KiB", 2**10),
)


def workload(name: str, shape: WorkloadShape, workers: Sequence[int]) -> dict[str, object]:
    """A workload as it stands in YAML."""
    return {
        "name": name,
        "objects": {
            "size": _size(shape.size),
            "containers": shape.containers,
            "per_container": shape.per_container,
        },
        "operations": dict(shape.operations),
        **({} if shape.pick == "uniform" else {"pick": shape.pick}),
        "workers": list(workers),
        "runtime": f"{shape.runtime_s}s",
        "warmup": f"{shape.warmup_s}s",
        **({"verify": True} if shape.verify else {}),
    }


def text(suite: Mapping[str, object], origin: str, remarks: Sequence[Remark]) -> str:
    """The whole file: where it comes from, what is not in it, and the suite."""
    lines = [f"Made by `weighbridge import-cosbench` of {_one_line(origin)}."]
    for weight, title in (
        ("changes", "Not in it, so that it measures something else than that file:"),
        ("told", "Left out, or done otherwise by every suite:"),
    ):
        some = [remark for remark in remarks if remark.weight == weight]
        lines += ["", title] if some else []
        same: dict[str, list[int]] = {}
        for remark in some:
            same.setdefault(remark.message, []).append(remark.place.line)
        for message, places in same.items():
            numbers = ", ".join(map(str, dict.fromkeys(places)))
            lines.append(f"  line{'s' if ',' in numbers else ''} {numbers}: {_one_line(message)}")
    head = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return head + yaml.safe_dump(
        dict(suite), sort_keys=False, allow_unicode=True, default_flow_style=None, width=120
    )


def _one_line(message: str) -> str:
    """Words of a file that came from anywhere must not end the comment that they stand in."""
    return "".join(one if one.isprintable() else " " for one in message)


def _size(size: Size) -> object:
    if isinstance(size, int):
        return _bytes(size)
    if isinstance(size, Uniform):
        return {"uniform": [_bytes(one) for one in size.uniform]}
    bars = []
    for bar in size.histogram:
        low, high = bar.bounds
        bars.append(
            {
                "size": _bytes(low) if low == high else [_bytes(low), _bytes(high)],
                "weight": int(bar.weight),
            }
        )
    return {"histogram": bars}


def _bytes(count: int) -> str | int:
    """A number of bytes exactly, in the largest unit that it is a whole number of."""
    return next(
        (f"{count // scale}{unit}" for unit, scale in _UNITS if count and count % scale == 0), count
    )
