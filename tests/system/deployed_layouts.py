"""A layout deployed on lab hosts, with changes to its file, for tests."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from small_lab import read
from weighbridge.common.endpoint import Endpoint
from weighbridge.environment import place
from weighbridge.topologies.deployment import Deployment, deploy, preflight
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab.runc import Runc
from weighbridge.topologies.loader import (
    Planned,
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)
from witness import ODD_NAMES

LAB_CPU = load_hardware(shipped_hardware()["lab-cpu"])
UNLIMITED = re.compile(r"(cpus|nic|bandwidth): [^,}]+,? ?")
"""What makes hosts of a hardware file slower than the machine they are on."""


def unlimited(hardware: str) -> str:
    """The text of a hardware file without limits of CPU, NIC and disks: for moving much in little
    time.
    """
    return UNLIMITED.sub("", hardware)


def kept_once(layout: str) -> str:
    """The text of a layout file with one storage host in place of three, and all data once."""
    three = r"(osd|storage): \[store-1, store-2, store-3\]"
    text, hosts = re.subn(three, r"\1: [store-1]", layout)
    text, copies = re.subn(r"replicas: 3(, min_size: )2", r"replicas: 1\g<1>1", text)
    if not copies:
        text, copies = re.subn(r"replicas: 3\b", "replicas: 1", text)
    assert (hosts, copies) == (1, 1), layout
    return text


def shipped(layout: str) -> str:
    return shipped_layouts()[layout].read_text()


def written_once(layout: str, folder: Path) -> Path:
    """A file of the shipped layout that keeps all data once."""
    path = folder / f"{layout}.yaml"
    path.write_text(kept_once(shipped(layout)))
    return path


def planned(text: str, folder: Path) -> Planned:
    path = folder / "layout.yaml"
    path.write_text(text)
    return load_layout(path, LAB_CPU)


def check(text: str, folder: Path) -> None:
    """Have the programs of a layout's release check its options. Raises UsageError."""
    preflight(planned(text, folder), LAB_CPU, place(), print)


WITNESS = Path(__file__).with_name("witness.py")
LARGE = Path(__file__).with_name("large_object.py")
SENT = Path(__file__).with_name("sent_witness.py")
VERSIONS = Path(__file__).with_name("versions_witness.py")
IGNORED: dict[str, set[str]] = {
    # That a new name is taken does not show that the condition is looked at.
    "write-if-none-match": set(),
    "rewrite-if-none-match": {"ignored-condition"},
    "read-part": {"ignored-part"},
}
"""The errors of operations that a layout answers, and does not do."""


@contextmanager
def deployed(
    layout: str,
    folder: Path,
    change: Callable[[str], str] = str,
    hardware: str = "lab-cpu",
    change_hardware: Callable[[str], str] = str,
    *,
    once: bool = False,
    tools: bool = False,
) -> Iterator[Deployment]:
    """The shipped layout `layout` deployed on the shipped hardware until the block ends; the texts
    of both may be changed.

    `once`: with all data once, on one storage host, for tests of what stands before it: that takes
    half of the CPU time.
    `tools`: with fio and the other tools on its hosts.
    """
    path = folder / f"{layout}.yaml"
    text = change(shipped(layout))
    path.write_text(kept_once(text) if once else text)
    hardware_path = folder / f"{hardware}.yaml"
    hardware_path.write_text(change_hardware(shipped_hardware()[hardware].read_text()))
    hosts = load_hardware(hardware_path)
    tested = load_layout(path, hosts)
    ensure(tested.gateway.image, print, store=place().images)
    with deploy(tested, hosts, place(), print, logs=folder / "logs", tools=tools) as deployment:
        yield deployment


def deploys(layout: str, change: Callable[[str], str] = str, **more: Any) -> Any:
    """A fixture of a module: `deployed` until its last test has ended."""

    @pytest.fixture(scope="module")
    def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
        with deployed(layout, tmp_path_factory.mktemp(layout), change, **more) as found:
            yield found

    return deployment


def on_client(deployment: Deployment, api: str, *program: str, client: int = 0, **more: Any) -> Any:
    """What a program of Python, which gets an endpoint, prints on a client host as JSON."""
    order = json.loads(endpoint(deployment, api).model_dump_json()) | more
    line = [sys.executable, *program]
    here = Path(__file__).parent
    env = {"PYTHONPATH": f"{here.parents[1]}:{here}"}
    host = deployment.clients[client]
    done = host.run(line, stdin=json.dumps(order), env=env, timeout_s=300)
    return json.loads(done.stdout)


def check_witness(deployment: Deployment, api: str) -> None:
    """An independent client reads what it wrote, under odd names too."""
    seen = witness(deployment, api)
    assert seen["same"] == ODD_NAMES
    assert sorted(seen["listed"]) == sorted(ODD_NAMES)
    assert (seen["range"], seen["length"]) == (True, 1000)
    assert seen["gone"] == ("NoSuchKey" if api == "s3" else 404)
    assert seen.get("multipart", True)


def check_large_object(deployment: Deployment, api: str, size: int = 64 << 20) -> None:
    seen = on_client(deployment, api, str(LARGE), size=size)
    assert (seen["length"], seen["got"]) == (size, size)
    assert seen["read"] == seen["sent"]
    assert seen.get("same_etag", True)


def endpoint(deployment: Deployment, api: str) -> Endpoint:
    return next(one for one in deployment.endpoints if one.api == api)


def witness(deployment: Deployment, api: str) -> dict[str, Any]:
    seen: dict[str, Any] = on_client(deployment, api, str(WITNESS))
    return seen


def logged_in(deployment: Deployment) -> tuple[str, str]:
    """The storage URL and the token that curl gets on the client host."""
    own = endpoint(deployment, "swift")
    fields = (("X-Auth-User", own.user), ("X-Auth-Key", own.key.get_secret_value()))
    config = "".join(f'header "{name}: {value}"\n' for name, value in fields)
    head = deployment.client.run(["curl", "-sSi", "-K", "-", own.url], stdin=config).stdout
    lines = re.findall(r"(?m)^([\w-]+): (\S+)", head)
    found = {name.lower(): value for name, value in lines}
    return found["x-storage-url"], found["x-auth-token"]


def status_of(deployment: Deployment, url: str, *fields: str) -> str:
    more = [word for field in fields for word in ("-H", field)]
    argv = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *more, url]
    return deployment.client.run(argv).stdout


def what_was_sent(deployment: Deployment, api: str, lacked: Mapping[str, str]) -> dict[str, Any]:
    """Have the engine do every operation of `sent_witness.py`, and an SDK look at the result.

    `lacked`: those that the layout is said not to do, and why; their errors must be those. Returns
    what was seen of each.
    """
    lacks = {
        name: {f"http-{one}" for one in re.findall(r"\b[45]\d\d\b", why)} or IGNORED[name]
        for name, why in lacked.items()
        if name != "versions"  # a key of workloads: see check_versions
    }
    seen: dict[str, Any] = on_client(deployment, api, str(SENT))
    for name, errors in lacks.items():
        assert set(seen[name]["errors"]) <= errors, name
        assert bool(seen[name]["errors"]) == bool(errors), name
    assert {name: one["last"] for name, one in seen.items() if one["errors"]}.keys() <= lacks.keys()
    for name in {"update-metadata", "tag"} & seen.keys() - lacks.keys():
        assert seen[name]["same"]
        assert all(value.isdecimal() for value in seen[name]["noted"]), seen[name]
    made = {"copy", "write-multipart", "write-if-none-match", "overwrite"}
    made |= {"presigned"} if api == "s3" else set()
    assert {name: seen[name]["same"] for name in made - lacks.keys()} == dict.fromkeys(
        made - lacks.keys(), True
    )
    assert seen["write-multipart"]["after"] == []
    assert seen["delete-many"]["left"] == 0
    by_part = seen["read-part"]
    assert (by_part["same"], by_part["second"], by_part["in_parts"]) == (True, True, True)
    assert by_part["after"] == []
    assert "read-part" in lacks or by_part["rows"]["read-part"] > 0
    assert seen["list-all"]["rows"]["list-page"] >= 3 * seen["list-all"]["rows"]["list-all"] > 0
    assert seen["write-multipart"]["rows"]["write-part"] >= 3
    return seen


def versions_seen(deployment: Deployment, api: str) -> dict[str, Any]:
    seen: dict[str, Any] = on_client(deployment, api, str(VERSIONS))
    return seen


def check_versions(deployment: Deployment, api: str) -> None:
    seen = versions_seen(deployment, api)
    prepared = {"versions": 18, "markers": 0, "numbers": [[0, 1, 2]] * 2}
    assert {name: (one["errors"], one["last"]) for name, one in seen.items()} == dict.fromkeys(
        seen, ({}, None)
    )
    assert [one["objects"] for one in seen.values()] == [18] * 3
    assert [one["prepared"] for one in seen.values()] == [prepared] * 3
    reading, writing, deleting = seen["reading"], seen["writing"], seen["deleting"]
    assert reading["after"] == prepared
    rows = reading["rows"]
    assert rows["read-version"] > 0
    assert rows["versions-page"] >= 5 * rows["list-versions"] > 0
    # The window closed before its last requests were answered, which were carried out, too.
    rows, after = writing["rows"], writing["after"]
    assert rows["versions-page"] >= 5 * rows["list-versions"] > 0
    assert after["versions"] >= 18 + rows["overwrite"] + rows["write"] > 18
    assert after["markers"] >= rows["delete"] > 0
    # What is overwritten has the latest version's content again.
    assert all(numbers[:3] == [0, 1, 2] for numbers in after["numbers"])
    assert {one for numbers in after["numbers"] for one in numbers[3:]} <= {2}
    assert writing["strays"] == [after["versions"] - 18 + after["markers"], 0]
    assert [reading["again"], writing["again"]] == [prepared] * 2
    assert [reading["deleted"], writing["deleted"]] == [[18, 0]] * 2
    assert deleting["after"] == {**prepared, "markers": 6}
    assert deleting["left"] == [24, []]
    assert deleting["cleaned"] >= 24
    assert [one["buckets"] for one in (reading, writing)] == [[], []]
    assert deleting["buckets"] == []


def left_over() -> list[str]:
    """Containers, mounts and folders of deployments of this state that are still there."""
    where = place()
    mounts = {
        line
        for path in Path("/proc").glob("[0-9]*/mounts")
        for line in read(path).decode(errors="replace").splitlines()
        if str(where.deployments) in line
    }
    return [
        *map(str, Runc(where.state / "runc").containers()),
        *mounts,
        *map(str, where.deployments.glob("*")),
    ]
