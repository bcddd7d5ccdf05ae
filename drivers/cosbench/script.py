"""COSBench's workload XML, one document for each command."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from weighbridge.common.credential import HIDDEN, redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account
from weighbridge.suites import PLAIN_OPERATIONS, Api, Operation, Workload
from weighbridge.suites.workload import VERIFIED_SHARE, SizeHistogram, Uniform, Zipf

# COSBench's selectors and ratios for sizes, numbers and shares, and what it cannot express.
#
# A selector is read into Java's int: no number may be above 2^31 - 1, and none below 1 but for a
# constant. Units are decimal: KB is 1000 bytes; there is no KiB.


JAVA_INT_MAX: Final = 2**31 - 1
UNITS: Final = (("B", 1), ("KB", 1000), ("MB", 1000**2), ("GB", 1000**3))
HISTOGRAM_WEIGHT: Final = 1_000_000
"""Sum of the weights of h(): it gives its first bar one too many and its last one too few, which is
negligible then.
"""
ENDLESS: Final = 2_000_000_000
"""Objects that writes may number before they start again: more than any step writes."""


class Inexpressible(Exception):
    """COSBench cannot express it; the message says what."""


def sizes(size: int | Uniform | SizeHistogram) -> str:
    """The selector of these sizes, in bytes if possible. Raises Inexpressible."""
    if isinstance(size, int):
        for unit, factor in UNITS:
            if size % factor == 0 and size // factor <= JAVA_INT_MAX:
                return f"c({size // factor}){unit}"
        raise Inexpressible(
            f"an object of {size} bytes is more than COSBench can express; beyond 2 GiB it "
            "needs whole KB"
        )
    bounds = [size.uniform] if isinstance(size, Uniform) else [bar.bounds for bar in size.histogram]
    if any(low < 1 or high >= JAVA_INT_MAX for low, high in bounds):
        raise Inexpressible("a range of sizes reaches from 1 byte to 2 GiB at most in COSBench")
    if isinstance(size, Uniform):
        return "u({},{})B".format(*size.uniform)
    total = sum(bar.weight for bar in size.histogram)
    bars = [
        (*bar.bounds, max(1, round(bar.weight / total * HISTOGRAM_WEIGHT)))
        for bar in size.histogram
    ]
    return f"h({','.join(f'{low}|{high}|{weight}' for low, high, weight in bars)})B"


def ratios(operations: Mapping[Operation, float]) -> dict[Operation, int]:
    """Shares in whole per cent that sum to 100. Raises Inexpressible for other weights."""
    total = sum(operations.values())
    shares = {operation: weight * 100 / total for operation, weight in operations.items()}
    rounded = {operation: round(share) for operation, share in shares.items()}
    if any(
        abs(share - rounded[operation]) > 1e-6 or rounded[operation] < 1
        for operation, share in shares.items()
    ):
        text = ", ".join(f"{operation} {share:.4g} %" for operation, share in shares.items())
        raise Inexpressible(f"COSBench mixes operations by whole per cent, and these are {text}")
    return rounded


def by_chance(count: int) -> str:
    """A random number from 1 on, all equally likely."""
    return f"u(1,{count})"


def in_turn(count: int) -> str:
    """The numbers from 1 on in turn, shared by all workers of a COSBench driver."""
    return f"s(1,{count})"


def all_of(count: int) -> str:
    """Each number from 1 on once: for init, prepare, cleanup and dispose."""
    return f"r(1,{count})"


def visits_all_in_turn(workload: Workload) -> bool:
    """Whether taking both in turn gives every pair: if their counts have no common divisor."""
    return math.gcd(workload.objects.containers, workload.objects.per_container) == 1


def unfit(workload: Workload, api: Api) -> tuple[str, ...]:
    """What of a workload COSBench cannot do over this API, in words."""
    return tuple(_unfit(workload, api))


def _unfit(workload: Workload, api: Api) -> Iterator[str]:
    asked = workload.operations
    if api not in ("swift", "s3"):
        yield f"COSBench loads gateways over swift or s3, not {api}"
    if workload.objects.compressible is not None:
        yield "COSBench chooses the content of objects itself: leave out `compressible`"
    if workload.listed is not None:
        yield "COSBench does not delete a share of the objects first: leave out `listed`"
    if unknown := [one for one in asked if one == "head" or one not in PLAIN_OPERATIONS]:
        yield f"COSBench has no {', '.join(unknown)}"
    if "list" in asked and api == "s3":
        yield "COSBench's list does nothing over s3, and counts that as a success"
    if "delete" in asked and "read" in asked:
        yield (
            "COSBench does not know what it has deleted, so reads beside deletes would request "
            "missing objects"
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
        yield "COSBench picks objects at random or in turn, not by popularity"
    elif (
        "delete" in asked or (workload.pick == "sequential" and "read" in asked)
    ) and not visits_all_in_turn(workload):
        objects = workload.objects
        yield (
            f"COSBench takes containers and objects in turn separately: of {objects.containers} x "
            f"{objects.per_container} it would visit a part repeatedly; choose counts without a "
            "common divisor"
        )
    if workload.rate_per_s is not None:
        yield "COSBench's workers send as fast as they are answered, not at a rate"
    if workload.connections != "keep-alive":
        yield "COSBench manages its connections itself: leave `connections` out"
    if workload.verify > VERIFIED_SHARE:
        yield "COSBench does not verify what it reads"
    for what, seconds in (("runtime", workload.runtime), ("warmup", workload.warmup)):
        if seconds != int(seconds):
            yield f"COSBench's {what} is in whole seconds, not {seconds:g}"
    if max(workload.objects.containers, workload.objects.per_container) >= JAVA_INT_MAX:
        yield "COSBench numbers no more than 2^31 - 1 containers, and as many objects in each"


_SECRET_KEYS: Final = re.compile(r"\b(token|password|secretkey|accesskey)=[^;\"'\s]*")


@dataclass(frozen=True)
class StorageAccess:
    """Type and configuration of COSBench's auth and storage; `secrets` are to be redacted."""

    auth: str
    auth_config: str
    storage: str
    storage_config: str
    secrets: tuple[str, ...]

    def redacted(self, text: str) -> str:
        """A text without the secrets, in any of their notations."""
        return _SECRET_KEYS.sub(rf"\1={HIDDEN}", redacted(text, self.secrets))


def access(target: Endpoint, account: Account, auth: str, timeout_s: float) -> StorageAccess:
    """The access to a target, to Swift by a new token or by swauth. Raises DriverError."""
    if target.ca_file is not None:
        raise DriverError(
            f"{target.url}: COSBench trusts only its Java's authorities, and cannot use "
            f"{target.ca_file}",
            advice="Benchmark it over http, or put the authority into that Java's trust store and "
            "leave `ca_file` out.",
        )
    # Without "logging" it logs each request.
    common = {"timeout": str(round(timeout_s * 1000)), "logging": "false"}
    key = target.key.get_secret_value()
    if target.api == "s3":
        if target.token is not None:
            raise DriverError(
                "COSBench's S3 client does not support session tokens: use keys without one"
            )
        style = "true" if target.addressing == "path" else "false"
        own = {
            "accesskey": target.user,
            "secretkey": key,
            "endpoint": target.url,
            "path_style_access": style,
        }
        return StorageAccess("none", "", "s3", config({**own, **common}), (key,))
    if auth == "swauth" and target.token is None:
        if target.keystone is not None:
            raise DriverError(
                "COSBench's swauth is auth v1, which Keystone does not speak",
                advice="Leave COSBENCH_AUTH out: COSBench then gets the token and storage URL.",
            )
        if target.storage_url is not None:
            raise DriverError(
                "COSBench's swauth uses the storage URL that auth returns, not a given one",
                advice="Leave COSBENCH_AUTH out: COSBench then gets the token and storage URL.",
            )
        own = {
            "username": target.user,
            "password": key,
            "auth_url": target.url,
            "timeout": common["timeout"],
        }
        return StorageAccess("swauth", config(own), "swift", config(common), (key,))
    account.renew()
    own = {"token": account.token, "storage_url": account.url}
    return StorageAccess("none", "", "swift", config({**own, **common}), (account.token, key))


def config(values: dict[str, str]) -> str:
    """COSBench's `key=value;key=value`, in which no semicolon may be. Raises DriverError."""
    for name, value in values.items():
        if ";" in value or not value.isprintable():
            raise DriverError(
                f"{name}: its value has a semicolon or an unprintable character, which COSBench's "
                "configuration cannot contain",
                advice="Give the user another key.",
            )
    return ";".join(f"{name}={value}" for name, value in values.items())


INTERVAL_S: Final = 1
"""How often COSBench's controller polls its drivers: stages last longer by about this and 2.5 s."""
PREPARED: Final = "object-"
"""Prefix of the names of prepared objects; COSBench appends a number from 1 on."""
MAIN: Final = "main"
"""The stage, and its work, that a step measures."""
ANY_FAILURES: Final = 1_000_000
"""Failures in a million that a completed stage may have: the suite's bounds judge a step."""


@dataclass(frozen=True)
class Script:
    """An XML document for COSBench. `name` is unique: ids are reused when a controller restarts."""

    name: str
    text: str
    stages: tuple[str, ...]


def prepare_script(
    name: str, workload: Workload, containers: str, access: StorageAccess, parallel: int
) -> Script:
    """Make containers (`containers` and a number from 1 on) and the objects the workload needs."""
    objects = workload.objects
    where = {"cprefix": containers, "containers": all_of(objects.containers)}
    root, flow = _workload(name, workload, access)
    _work(flow, "init", {"type": "init", "workers": "1", "config": config(where)})
    if workload.needs_objects:
        what = {
            "oprefix": PREPARED,
            "objects": all_of(objects.per_container),
            "sizes": sizes(objects.size),
        }
        workers = str(min(parallel, objects.count))
        _work(
            flow,
            "prepare",
            {"type": "prepare", "workers": workers, "config": config({**where, **what})},
        )
    return _script(name, root)


def step_script(
    name: str,
    workload: Workload,
    containers: str,
    access: StorageAccess,
    workers: int,
    written: str,
) -> Script:
    """Replay a workload; what it writes begins with `written`, apart from what is read."""
    root, flow = _workload(name, workload, access)
    work = _work(
        flow,
        MAIN,
        {
            "type": "normal",
            "workers": str(workers),
            "runtime": str(int(workload.runtime)),
            "rampup": str(int(workload.warmup)),
            "afr": str(ANY_FAILURES),
        },
    )
    for operation, ratio in ratios(workload.operations).items():
        what = {"cprefix": containers, **_picked(operation, workload, written)}
        ET.SubElement(
            work, "operation", {"type": operation, "ratio": str(ratio), "config": config(what)}
        )
    return _script(name, root)


def _picked(operation: Operation, workload: Workload, written: str) -> dict[str, str]:
    objects = workload.objects
    if operation == "list":
        # By chance, workers would divide the containers, and fail where there are fewer; with
        # `objects` it would be a HEAD.
        return {"containers": in_turn(objects.containers)}
    if operation == "write":
        into = {"containers": by_chance(objects.containers), "oprefix": written}
        return {**into, "objects": in_turn(ENDLESS), "sizes": sizes(objects.size)}
    pick = in_turn if operation == "delete" or workload.pick == "sequential" else by_chance
    return {
        "containers": pick(objects.containers),
        "oprefix": PREPARED,
        "objects": pick(objects.per_container),
    }


def _workload(
    name: str, workload: Workload, access: StorageAccess
) -> tuple[ET.Element, ET.Element]:
    root = ET.Element("workload", {"name": name, "description": f"Weighbridge: {workload.name}"})
    ET.SubElement(root, "auth", {"type": access.auth, "config": access.auth_config})
    ET.SubElement(root, "storage", {"type": access.storage, "config": access.storage_config})
    return root, ET.SubElement(root, "workflow")


def _work(flow: ET.Element, name: str, attributes: dict[str, str]) -> ET.Element:
    stage = ET.SubElement(flow, "workstage", {"name": name})
    return ET.SubElement(stage, "work", {"name": name, "interval": str(INTERVAL_S), **attributes})


def _script(name: str, root: ET.Element) -> Script:
    stages = tuple(
        f"s{number}-{stage.get('name')}"
        for number, stage in enumerate(root.iterfind(".//workstage"), 1)
    )
    ET.indent(root)
    text = '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
    return Script(name, text, stages)
