"""Connect Garage's nodes, or give them roles and a user, as a program on one of their hosts.

Reads from stdin `{"config": PATH, "nodes": [{"admin": URL, "rpc": ADDRESS:PORT, "zone": ...,
"capacity": bytes or null}], "user": ..., "key": ..., "deadline_s": s}`; the first node is asked,
and the token of all is in the file. Without a user, nodes are connected and nothing else: those
that started at once try again after half a minute only. A node without a capacity keeps no objects.
Exits with 1 and the last answer when it cannot be done by the deadline.
"""

from __future__ import annotations

import json
import re
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from weighbridge.gateways.await_answers import answer_of

_TIMEOUT_S = 10.0
_PAUSE_S = 0.05
_TOKEN = re.compile(r'^admin_token = "([0-9a-f]+)"$', re.MULTILINE)
_NODE = re.compile(r"[0-9a-f]{64}")


class Nodes:
    """Requests to the nodes' admin API, which are made again until the deadline."""

    def __init__(self, token: str, deadline_s: float) -> None:
        self._head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._deadline = time.monotonic() + deadline_s

    def ask(self, url: str, body: object = None) -> Any:
        """The answer to a GET, or to a POST of `body`; ends this program at the deadline."""
        while True:
            try:
                status, said = answer_of(url, head=self._head, body=body, timeout_s=_TIMEOUT_S)
                if status == HTTPStatus.OK:
                    return json.loads(said)
                said = f"{status} {said}"
            except (OSError, ValueError) as error:
                said = str(error)
            if time.monotonic() > self._deadline:
                sys.exit(f"{url}: {said[:300]}")
            time.sleep(_PAUSE_S)

    def name(self, admin: str) -> str:
        """The name by which a node knows itself."""
        known = self.ask(f"{admin}/v2/GetNodeInfo?node=self")
        (name,) = known["success"]
        if not _NODE.fullmatch(name):
            sys.exit(f"{admin}: no name of a node: {name[:100]}")
        return str(name)


def join(order: dict[str, Any]) -> None:
    """Do as ordered."""
    (token,) = _TOKEN.findall(Path(order["config"]).read_text(encoding="utf-8"))
    nodes, members = Nodes(token, float(order["deadline_s"])), order["nodes"]
    names = [nodes.name(one["admin"]) for one in members]
    first = f"{members[0]['admin']}/v2"
    if "user" not in order:
        others = [f"{name}@{one['rpc']}" for name, one in zip(names, members)][1:]  # noqa: B905 - of Python 3.10
        for one in nodes.ask(f"{first}/ConnectClusterNodes", others) if others else ():
            if not one["success"]:
                sys.exit(f"{first}: nodes do not connect: {str(one.get('error'))[:300]}")
        return
    roles = [
        {"id": name, "zone": one["zone"], "capacity": one["capacity"], "tags": []}
        for name, one in zip(names, members)  # noqa: B905
    ]
    nodes.ask(f"{first}/UpdateClusterLayout", {"roles": roles})
    nodes.ask(f"{first}/ApplyClusterLayout", {"version": 1})
    user = {"accessKeyId": order["user"], "secretAccessKey": order["key"], "name": "weighbridge"}
    nodes.ask(f"{first}/ImportKey", user)
    nodes.ask(f"{first}/UpdateKey?id={order['user']}", {"allow": {"createBucket": True}})


if __name__ == "__main__":
    join(json.load(sys.stdin))
