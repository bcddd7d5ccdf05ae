"""Rows in this host's databases of a container, as a program on a storage host with Swift.

stdin is JSON `{"address": a, "devices": folder, "account": a, "container": c, "names": [name, ...],
"gone": [name, ...], "now": seconds}`: `names` get rows of empty objects unless all are there, then
`gone` those of deleted ones. By Swift's own broker, as container servers do it. stdout is JSON, for
each database the number of objects that it lists.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
from typing import Any

BATCH = 10_000
"""Rows of one transaction."""
EMPTY_MD5 = "d41d8cd98f00b204e9800998ecf8427e"


def row(name: str, at: str, policy: int, deleted: int) -> dict[str, Any]:
    """A row as container servers merge it."""
    return {
        "name": name,
        "created_at": at,
        "size": 0,
        "content_type": "application/octet-stream",
        "etag": "noetag" if deleted else EMPTY_MD5,
        "deleted": deleted,
        "storage_policy_index": policy,
        "ctype_timestamp": None,
        "meta_timestamp": None,
    }


def put(broker: Any, order: dict[str, Any], first: str, then: str) -> int:
    """Merge the rows of an order; returns how many objects the database lists then."""
    policy, names = broker.storage_policy_index, order["names"]
    todo = [(names, first, 0), (order["gone"], then, 1)]
    if broker.get_info()["object_count"] > 1:  # more than the object that was written
        todo = todo[1:]
    for some, at, deleted in todo:
        for start in range(0, len(some), BATCH):
            rows = [row(name, at, policy, deleted) for name in some[start : start + BATCH]]
            broker.merge_items(rows)
    return int(broker.get_info()["object_count"])


def main() -> None:
    """See the module."""
    # Importing eventlet's resolver fails on hosts without name servers.
    os.environ["EVENTLET_NO_GREENDNS"] = "yes"
    from swift.common.ring import Ring  # type: ignore[import-not-found]  # noqa: PLC0415 - installed only on the hosts where this runs
    from swift.common.utils import (  # type: ignore[import-not-found]  # noqa: PLC0415 - likewise
        Timestamp,
        hash_path,
        storage_directory,
    )
    from swift.container.backend import (  # type: ignore[import-not-found]  # noqa: PLC0415 - likewise
        ContainerBroker,
    )

    order = json.load(sys.stdin)
    account, container = order["account"], order["container"]
    part, nodes = Ring("/etc/swift", ring_name="container").get_nodes(account, container)
    hashed = hash_path(account, container)
    # The databases, and the files beside them, belong to Swift's user.
    swift = pwd.getpwnam("swift")
    os.setgid(swift.pw_gid)
    os.setuid(swift.pw_uid)
    listed = []
    for node in nodes:
        if node["ip"] == order["address"]:
            folder = storage_directory("containers", part, hashed)
            path = os.path.join(order["devices"], node["device"], folder, f"{hashed}.db")  # noqa: PTH118 - as Swift makes it
            broker = ContainerBroker(path, account=account, container=container)
            first, then = (Timestamp(order["now"] + late).internal for late in (0, 0.001))
            listed.append(put(broker, order, first, then))
    json.dump(listed, sys.stdout)


if __name__ == "__main__":
    main()
