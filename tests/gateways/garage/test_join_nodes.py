"""Garage's nodes are made one cluster by their admin API, here a stub."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from weighbridge.gateways.garage import join_nodes

TOKEN = "ab" * 16
NAMES = ("1" * 64, "2" * 64)


class Admin(BaseHTTPRequestHandler):
    """Answers as two nodes do, told apart by their paths."""

    def do_GET(self) -> None:
        self._answer({"success": {self.server.names[self.path[1] == "b"]: {}}})  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked: list[tuple[str, Any]] = self.server.asked  # type: ignore[attr-defined]
        asked.append((self.path, body))
        connects = self.server.connects  # type: ignore[attr-defined]
        if "ImportKey" in self.path and len(asked) == 4:
            self.send_error(503, "no quorum yet")
        elif "Connect" in self.path:
            self._answer([{"success": connects, "error": None if connects else "wrong secret"}])
        else:
            self._answer({})

    def _answer(self, body: object) -> None:
        known = self.headers["Authorization"] == f"Bearer {TOKEN}"
        text = json.dumps(body).encode()
        self.send_response(200 if known else 403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def admin() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Admin) as server:
        server.asked, server.names, server.connects = [], NAMES, True  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def order(server: ThreadingHTTPServer, folder: Path) -> dict[str, Any]:
    config = folder / "garage.toml"
    config.write_text(f'rpc_secret = "cd"\n[admin]\nadmin_token = "{TOKEN}"\n')
    url = f"http://127.0.0.1:{server.server_port}"
    nodes = [
        {"admin": f"{url}/a", "rpc": "10.0.0.2:3901", "zone": "gateway-1", "capacity": None},
        {"admin": f"{url}/b", "rpc": "10.0.0.3:3901", "zone": "store-1", "capacity": 10**12},
    ]
    return {"config": str(config), "nodes": nodes, "user": "GK1", "key": "s", "deadline_s": 30}


def test_nodes_are_connected_and_given_roles_and_a_user_that_may_create_buckets(
    admin: ThreadingHTTPServer, tmp_path: Path
) -> None:
    given = order(admin, tmp_path)
    join_nodes.join({name: given[name] for name in given if name not in {"user", "key"}})
    assert [path for path, _ in admin.asked] == ["/a/v2/ConnectClusterNodes"]  # type: ignore[attr-defined]
    join_nodes.join(given)
    asked = admin.asked  # type: ignore[attr-defined]
    assert [path.rpartition("/")[2] for path, _ in asked] == [
        "ConnectClusterNodes",
        "UpdateClusterLayout",
        "ApplyClusterLayout",
        "ImportKey",
        "ImportKey",  # there was no quorum yet
        "UpdateKey?id=GK1",
    ]
    assert asked[0][1] == [f"{NAMES[1]}@10.0.0.3:3901"]
    roles = {one["id"]: (one["zone"], one["capacity"]) for one in asked[1][1]["roles"]}
    assert roles == {NAMES[0]: ("gateway-1", None), NAMES[1]: ("store-1", 10**12)}
    assert asked[2][1] == {"version": 1}
    assert asked[5][1] == {"allow": {"createBucket": True}}


def test_nodes_that_do_not_connect_or_answer_strangely_end_it_with_what_they_said(
    admin: ThreadingHTTPServer, tmp_path: Path
) -> None:
    admin.connects = False  # type: ignore[attr-defined]
    given = order(admin, tmp_path)
    del given["user"]
    with pytest.raises(SystemExit, match="nodes do not connect: wrong secret"):
        join_nodes.join(given)
    admin.names = ("../x", NAMES[1])  # type: ignore[attr-defined]
    with pytest.raises(SystemExit, match=r"no name of a node: \.\./x"):
        join_nodes.join(order(admin, tmp_path))


def test_a_node_that_refuses_until_the_deadline_is_quoted(
    admin: ThreadingHTTPServer, tmp_path: Path
) -> None:
    wrong = order(admin, tmp_path)
    Path(wrong["config"]).write_text('admin_token = "00"\n')
    with pytest.raises(SystemExit, match="403 "):
        join_nodes.join({**wrong, "deadline_s": 0})
