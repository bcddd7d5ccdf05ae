"""Stores that keep objects in files: what is started in which order, and what they say of it."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import SecretStr

from tests.gateways.stage import STORES, Stage
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError, VerificationFailed
from weighbridge.gateways import ready
from weighbridge.gateways.garage import join_nodes
from weighbridge.gateways.garage.garage import Garage, GaragePlacement, GarageSettings
from weighbridge.gateways.gateway import Gateway, Unfit
from weighbridge.gateways.minio.minio import Minio, MinioPlacement, MinioSettings
from weighbridge.gateways.seaweedfs.seaweedfs import (
    Seaweedfs,
    SeaweedfsPlacement,
    SeaweedfsSettings,
)
from weighbridge.gateways.verify import verify
from weighbridge.gateways.versitygw.versitygw import (
    Versitygw,
    VersitygwPlacement,
    VersitygwSettings,
)
from weighbridge.topologies.fake import FakeHost

PLACE = SeaweedfsPlacement(master="store-1", volume=STORES, filer="store-1", s3="gateway-1")
SEAWEEDFS = Seaweedfs("seaweedfs-4.48", PLACE, SeaweedfsSettings())
UNSYNCED = Seaweedfs("seaweedfs-4.48", PLACE, SeaweedfsSettings(fsync=False))
VERSITYGW = Versitygw("versitygw-1.8.0", VersitygwPlacement(server="store-1"), VersitygwSettings())
MINIO = Minio("minio-2026-02", MinioPlacement(server=STORES), MinioSettings())
GARAGE_PLACE = GaragePlacement(gateway="gateway-1", storage=STORES)
GARAGE = Garage("garage-2.5.0", GARAGE_PLACE, GarageSettings())
GARAGE_UNSYNCED = Garage("garage-2.5.0", GARAGE_PLACE, GarageSettings(metadata_fsync=False))
ALL = [SEAWEEDFS, VERSITYGW, MINIO, GARAGE]
DISKS = dict.fromkeys(STORES, 1)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path)
    known, versions = stage.answer, "4.48 v1.8.0 2.5.0 7aac2a2c5b7c882e68c1ce017d8256be2feea27f"
    for host in stage.hosts.values():
        monkeypatch.setattr(
            host,
            "_answer",
            lambda argv, stdin: versions if "version" in argv[-1] else known(argv, stdin),
        )
    return stage


def test_seaweedfs_starts_its_servers_in_order_and_syncs_unless_it_is_told_not_to(
    stage: Stage,
) -> None:
    running = SEAWEEDFS.bring_up(stage.hosts, stage.hosts["client-1"], print)
    begun = stage.started()
    assert begun[0] == "store-1 master"
    assert sorted(begun[1:4]) == [f"{name} volume" for name in STORES]
    assert begun[4:] == ["store-1 filer", "gateway-1 s3"]
    assert len(stage.when("weed shell")) == 1
    assert running.facts["on disk"].endswith("before the name is on disk")
    volume = " ".join(stage.hosts["store-2"].services["volume"].argv)
    assert "-dir=/srv/disk0/volume,/srv/disk1/volume -max=0,0" in volume
    stage.events.clear()
    running = UNSYNCED.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert not stage.when("weed shell")
    assert running.facts["on disk"] == "acknowledges from the page cache"


def test_garage_makes_a_cluster_of_its_nodes_before_it_waits_for_it_and_syncs_unless_told_not_to(
    stage: Stage,
) -> None:
    running = GARAGE.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert sorted(stage.started()) == [f"{name} garage" for name in ("gateway-1", *STORES)]
    (met, joined), (ready_at,) = (
        stage.when("gateway-1 .*join_nodes"),
        stage.when("gateway-1 .*/ready"),
    )
    assert met < joined < ready_at
    assert running.facts["acknowledgement"].startswith("a write is acknowledged when 2 of 3 nodes")
    (endpoint,) = running.endpoints
    assert re.fullmatch("GK[0-9a-f]{24}", endpoint.user)
    texts = {one.host: one.text for one in running.rendered}
    parsed = {name: tomllib.loads(text) for name, text in texts.items()}
    assert {one["data_fsync"] and one["metadata_fsync"] for one in parsed.values()} == {True}
    assert [name for name, one in parsed.items() if "api_bind_addr" in one["s3_api"]] == [
        "gateway-1"
    ]
    disks = ["/srv/disk0/data", "/srv/disk1/data"]
    assert [one["path"] for one in parsed["store-2"]["data_dir"]] == disks
    running = GARAGE_UNSYNCED.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert running.facts["on disk"] == "acknowledges from the page cache"
    assert "metadata_fsync = false" in running.rendered[0].text


def test_a_node_of_garage_that_serves_clients_and_keeps_objects_does_both_on_its_disks(
    stage: Stage,
) -> None:
    place = GaragePlacement(gateway="store-1", storage=("store-1",))
    alone = Garage("garage-2.5.0", place, GarageSettings(replication_factor=1))
    (need,) = alone.needs().values()
    assert (need.disks, need.tier) == (1, "shared")
    (text,) = (tomllib.loads(one.text) for one in alone.render(stage.hosts))
    assert text["metadata_dir"] == "/srv/disk0/meta"
    assert text["s3_api"]["api_bind_addr"].endswith(":3900")


@pytest.mark.parametrize("gateway", ALL)
def test_a_store_that_lost_power_starts_again_on_what_its_disks_have(
    stage: Stage, gateway: Gateway
) -> None:
    running = gateway.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert stage.when("mkfs")
    before = stage.started()
    stage.events.clear()
    running.start_again(stage.hosts, print)
    assert sorted(stage.started()) == sorted(before)
    assert stage.when("mount -t xfs")
    assert not stage.when("mkfs")
    # Nodes that start at once would find each other after half a minute.
    assert len(stage.when("gateway-1 .*join_nodes")) == (gateway is GARAGE)


@pytest.mark.parametrize("gateway", ALL)
def test_no_key_is_in_a_command_line_or_in_what_is_shown(stage: Stage, gateway: Gateway) -> None:
    running = gateway.bring_up(stage.hosts, stage.hosts["client-1"], print)
    (endpoint,) = running.endpoints
    key = endpoint.key.get_secret_value()
    lines = [
        *(
            word
            for host in stage.hosts.values()
            for one in host.services.values()
            for word in one.argv
        ),
        *(what for _, what in stage.events),
        *(one.text for one in running.rendered),
    ]
    assert not [one for one in lines if key in one]


@pytest.mark.parametrize("gateway", ALL)
def test_a_host_with_another_version_of_the_program_is_refused_with_where_to_get_it(
    stage: Stage, gateway: Gateway
) -> None:
    gateway.preflight(stage.hosts, print)
    for host in stage.hosts.values():
        host._answer = lambda argv, stdin: "another version"
    with pytest.raises(UsageError, match="another version") as refused:
        gateway.preflight(stage.hosts, print)
    assert "/usr/local/bin" in (refused.value.advice or "")


def test_each_declares_what_is_on_disk_when_it_acknowledges() -> None:
    found = {
        "data on disk": (SEAWEEDFS, MINIO, GARAGE),
        "page cache": (UNSYNCED, VERSITYGW, GARAGE_UNSYNCED),
    }
    for answers, gateways in found.items():
        assert {one.structure(DISKS).answers for one in gateways} == {answers}


def test_more_copies_or_parity_than_there_are_hosts_or_disks_are_refused() -> None:
    place = SeaweedfsPlacement(master="a", volume=("a", "b"), filer="a", s3="c")
    with pytest.raises(Unfit, match="3 copies on separate hosts need as many volume servers"):
        Seaweedfs("seaweedfs-4.48", place, SeaweedfsSettings())
    nodes = GaragePlacement(gateway="c", storage=("a", "b"))
    with pytest.raises(Unfit, match="3 copies on separate hosts need as many nodes, not 2"):
        Garage("garage-2.5.0", nodes, GarageSettings())
    parity = Minio("minio-2026-02", MinioPlacement(server=STORES), MinioSettings(parity=2))
    (unfit,) = parity.lacks(DISKS)
    assert "parity 2 needs 4 disks, and the servers have 3" in str(unfit)
    assert MINIO.lacks(DISKS) == ()


def test_a_master_or_filer_without_a_disk_is_refused() -> None:
    with pytest.raises(ValueError, match="filer is on c, which has no volume server"):
        SeaweedfsPlacement(master="a", volume=("a", "b"), filer="c", s3="c")


def test_a_url_is_ready_when_it_says_so_often_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(0, "refused"), (503, ""), (200, '"Url" "Url"'), (200, '"Url"' * 3)]
    monkeypatch.setattr(ready, "answer_of", lambda url: answers.pop(0))
    order = {"url": "http://a", "text": '"Url"', "times": 3, "deadline_s": 30}
    assert ready.run_order(order) == ""
    assert answers == []
    monkeypatch.setattr(ready, "answer_of", lambda url: (503, "no quorum"))
    assert ready.run_order({**order, "deadline_s": 0}) == "http://a is not ready: 503 no quorum"


class Store(http.server.BaseHTTPRequestHandler):
    """An in-memory store whose answers can be made wrong."""

    protocol_version = "HTTP/1.1"
    objects: ClassVar[dict[str, bytes]] = {}
    lie: ClassVar[str] = ""
    busy: ClassVar[int] = 0
    late: ClassVar[int] = 0
    seen: ClassVar[list[str]] = []

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        pass

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.seen.append(f"{self.command} {status}")
        self.send_response(status)
        own = {"x-amz-server-side-encryption": "aws:kms"} if self.lie.startswith("kms") else {}
        for name, value in {"Content-Length": str(len(body)), **own, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/auth/v1.0":
            right = (self.headers["X-Auth-User"], self.headers["X-Auth-Key"]) == ("u:v", "k")
            host = "store.invalid" if self.lie == "elsewhere" else self.headers["Host"]
            url = f"http://{host}/v1/AUTH_u"
            if right:
                self.answer(200, b"", {"X-Storage-Url": url, "X-Auth-Token": "t"})
            else:
                self.answer(401, b"wrong key")
        elif "/v1/" in self.path and self.headers["X-Auth-Token"] != "t":
            self.answer(401)
        elif "?" in self.path:
            self.list()
        elif self.path not in self.objects:
            self.answer(404, b"no such object")
        else:
            body = self.objects[self.path]
            etag = hashlib.md5(b"other" if self.lie in ("etag", "kms") else body).hexdigest()
            etag += "-1" * (self.lie == "opaque")
            if self.lie in ("content", "kms content") and self.command == "GET":
                body = body[:-1] + bytes([body[-1] ^ 1])
            if self.lie == "short" and self.command == "GET":
                body = body[:100]
            if self.lie == "unavailable":
                self.answer(503, b"slow down " * 100)
            else:
                self.answer(200, body, {"ETag": f'"{etag}"'})

    def list(self) -> None:
        bucket, _, query = self.path.partition("?")
        names = [
            path.removeprefix(f"{bucket}/")
            for path in self.objects
            if path.startswith(f"{bucket}/")
        ]
        if self.lie == "unlisted" or type(self).late > 0:
            type(self).late -= 1
            names = []
        if "list-type" in query:
            keys = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in names)
            space = "http://s3.amazonaws.com/doc/2006-03-01/"
            self.answer(
                200, f"<ListBucketResult xmlns='{space}'>{keys}</ListBucketResult>".encode()
            )
        else:
            self.answer(200, json.dumps([{"name": name} for name in names]).encode())

    do_HEAD = do_GET  # noqa: N815 - the name is the base class's

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.objects[self.path] = body
        self.answer(200, b"", {"ETag": hashlib.md5(body).hexdigest()})

    def do_DELETE(self) -> None:
        if self.path.count("/") == (3 if "/v1/" in self.path else 1) and type(self).busy > 0:
            type(self).busy -= 1
            self.answer(409, b"not empty yet")
            return
        if self.lie != "undead":
            self.objects.pop(self.path, None)
        self.answer(204)


@pytest.fixture
def store() -> Iterator[str]:
    Store.objects, Store.lie, Store.busy, Store.late, Store.seen = {}, "", 0, 0, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FakeHost]:
    host = FakeHost("client-1", "127.0.0.1", tmp_path)
    yield host
    host.close()


def swift(url: str, key: str = "k") -> Endpoint:
    return Endpoint(api="swift", url=f"{url}/auth/v1.0", user="u:v", key=SecretStr(key))


def s3(url: str) -> Endpoint:
    return Endpoint(api="s3", url=url, user="u", key=SecretStr("k"))


@pytest.mark.parametrize("lie", ["kms", "opaque"])
def test_an_etag_that_is_no_md5_is_not_compared(store: str, client: FakeHost, lie: str) -> None:
    Store.lie = lie
    assert len(verify(client, [s3(store)])) == 8


@pytest.mark.parametrize(
    ("lie", "operation", "what"),
    [
        ("content", "GET", "content differs from what was written, first at byte 65535"),
        ("kms content", "GET", "content differs from what was written, first at byte 65535"),
        ("etag", "HEAD", "ETag"),
        ("short", "GET", "100 bytes, but 65536 were written"),
        ("unlisted", "LIST", "the names []"),
        ("undead", "GET after DELETE", "404 was expected (status 200)"),
        ("unavailable", "HEAD", "200 was expected (status 503)"),
    ],
)
@pytest.mark.parametrize("endpoint", [swift, s3])
def test_wrong_answers_are_found(
    store: str,
    client: FakeHost,
    endpoint: Callable[[str], Endpoint],
    lie: str,
    operation: str,
    what: str,
) -> None:
    Store.lie = lie
    with pytest.raises(VerificationFailed) as failure:
        verify(client, [endpoint(store)], listed_within_s=0.2)
    assert f" {operation} at {store}" in failure.value.message
    assert what in failure.value.message


def test_only_the_start_of_a_wrong_body_is_shown(store: str, client: FakeHost) -> None:
    with pytest.raises(VerificationFailed) as failure:
        verify(client, [swift(store, key="another")])
    assert (
        failure.value.message
        == f"swift auth at {store}/auth/v1.0: 200 or 204 was expected (status 401)\nwrong key"
    )
    Store.lie = "undead"
    with pytest.raises(VerificationFailed) as failure:
        verify(client, [s3(store)])
    assert len(failure.value.message.split("\n", 1)[1]) <= 300


def test_a_null_target_is_checked_only_by_length(store: str, client: FakeHost) -> None:
    Store.lie = "content"
    verify(client, [s3(store)], stores_bodies=False)
    Store.lie = "short"
    with pytest.raises(VerificationFailed, match="100 bytes"):
        verify(client, [s3(store)], stores_bodies=False)


def test_deleting_a_bucket_is_retried_while_it_still_lists_a_deleted_object(
    store: str, client: FakeHost
) -> None:
    Store.busy = 3
    verify(client, [swift(store)])
    assert Store.seen.count("DELETE 409") == 3


@pytest.mark.parametrize("endpoint", [swift, s3])
def test_listing_is_retried_until_a_new_object_appears(
    store: str, client: FakeHost, endpoint: Callable[[str], Endpoint]
) -> None:
    Store.late = 2
    checks = verify(client, [endpoint(store)])
    assert [check.operation for check in checks].count("LIST") == 1
    assert Store.late == 0


def test_a_configured_storage_url_replaces_the_one_from_auth(store: str, client: FakeHost) -> None:
    Store.lie = "elsewhere"
    with pytest.raises(VerificationFailed, match="its name does not resolve"):
        verify(client, [swift(store)])
    assert verify(client, [swift(store).model_copy(update={"storage_url": f"{store}/v1/AUTH_u"})])


def test_a_bucket_is_created_in_the_region_of_its_endpoint(store: str, client: FakeHost) -> None:
    Store.lie = "unlisted"
    with pytest.raises(VerificationFailed, match="LIST"):
        verify(
            client,
            [s3(store).model_copy(update={"region": "eu-west-1"})],
            bucket="mine",
            listed_within_s=0,
        )
    assert b"<LocationConstraint>eu-west-1</LocationConstraint>" in Store.objects["/mine"]


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
