"""An imported suite as the YAML that people edit, with the import's remarks above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from weighbridge.suites.importer_remarks import Remark
from weighbridge.suites.importer_selectors import Size
from weighbridge.suites.importer_shapes import WorkloadShape
from weighbridge.suites.workload import Uniform

_UNITS = {
    "GB": 10**9, "MB": 10**6, "KB": 10**3, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10,
}  # fmt: skip


def workload(name: str, shape: WorkloadShape, workers: Sequence[int]) -> dict[str, object]:
    """A workload as YAML data."""
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
    """The complete file: its origin, the remarks, and the suite."""
    lines = [f"Made by `weighbridge import-cosbench` from {_one_line(origin)}."]
    for severity, title in (
        ("change", "Not in it, so it measures something other than that file:"),
        ("note", "Left out, or handled otherwise by every suite:"),
    ):
        same: dict[str, list[int]] = {}
        for remark in remarks:
            if remark.severity == severity:
                same.setdefault(remark.message, []).append(remark.place.line)
        lines += ["", title] if same else []
        for message, places in same.items():
            numbers = ", ".join(map(str, dict.fromkeys(places)))
            lines.append(f"  line{'s' if ',' in numbers else ''} {numbers}: {_one_line(message)}")
    head = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    return head + yaml.safe_dump(
        dict(suite), sort_keys=False, allow_unicode=True, default_flow_style=None, width=120
    )


def _one_line(message: str) -> str:
    """Text from a file, which must not end the comment that it is put in."""
    return "".join(one if one.isprintable() else " " for one in message)


def _size(size: Size) -> object:
    if isinstance(size, int):
        return _bytes(size)
    if isinstance(size, Uniform):
        return {"uniform": [_bytes(one) for one in size.uniform]}
    bars = []
    for bar in size.histogram:
        low, high = map(_bytes, bar.bounds)
        bars.append({"size": low if low == high else [low, high], "weight": int(bar.weight)})
    return {"histogram": bars}


def _bytes(count: int) -> str | int:
    """A number of bytes, exactly, in the largest unit that divides it."""
    return next(
        (
            f"{count // scale}{unit}"
            for unit, scale in _UNITS.items()
            if count and not count % scale
        ),
        count,
    )
