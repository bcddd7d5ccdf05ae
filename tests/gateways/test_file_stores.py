"""Stores that keep objects in files: what is started in which order, and what they say of it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from http_stub import Between, Request, Respond, Response, Server
from tests.gateways.capabilities.memory_store import MemoryStore, memory_store
from tests.gateways.stage import STORES as KEEPERS
from tests.gateways.stage import Stage
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError, VerificationFailed
from weighbridge.gateways import join_garage_nodes
from weighbridge.gateways.await_answers import ask
from weighbridge.gateways.gateway import STORES, Gateway, Unfit
from weighbridge.gateways.verify import OperationCheck, verify
from weighbridge.topologies.fake import FakeHost

SEAWEEDFS_PLACE = {"master": "store-1", "volume": KEEPERS, "filer": "store-1", "s3": "gateway-1"}
GARAGE_PLACE = {"gateway": "gateway-1", "storage": KEEPERS}


def planned(kind: str, place: dict[str, Any], **settings: object) -> Gateway:
    store = STORES[kind]
    (release,) = store.releases
    return store(
        release, store.Placement.model_validate(place), store.Settings.model_validate(settings)
    )


SEAWEEDFS = planned("seaweedfs", SEAWEEDFS_PLACE)
UNSYNCED = planned("seaweedfs", SEAWEEDFS_PLACE, fsync=False)
VERSITYGW = planned("versitygw", {"server": "store-1"})
MINIO = planned("minio", {"server": KEEPERS})
GARAGE = planned("garage", GARAGE_PLACE)
GARAGE_UNSYNCED = planned("garage", GARAGE_PLACE, metadata_fsync=False)
ALL = pytest.mark.parametrize("gateway", [SEAWEEDFS, VERSITYGW, MINIO, GARAGE])
DISKS = dict.fromkeys(KEEPERS, 1)


class StoreStage(Stage):
    """Stub hosts whose programs say these versions."""

    versions = "4.48 v1.8.0 2.5.0 7aac2a2c5b7c882e68c1ce017d8256be2feea27f"

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        return self.versions if "version" in argv[-1] else super().answer(argv, stdin)


@pytest.fixture
def stage(tmp_path: Path) -> StoreStage:
    return StoreStage(tmp_path)


def test_seaweedfs_starts_its_servers_in_order_and_syncs_unless_it_is_told_not_to(
    stage: Stage,
) -> None:
    SEAWEEDFS.bring_up(stage.hosts, stage.hosts["client-1"], print)
    begun = stage.started()
    assert begun[0] == "store-1 master"
    assert sorted(begun[1:4]) == [f"{name} volume" for name in KEEPERS]
    assert begun[4:] == ["store-1 filer", "gateway-1 s3"]
    assert len(stage.when("weed shell")) == 1
    volume = " ".join(stage.hosts["store-2"].services["volume"].argv)
    assert "-dir=/srv/disk0/volume,/srv/disk1/volume -max=0,0" in volume
    stage.events.clear()
    UNSYNCED.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert not stage.when("weed shell")


def test_garage_makes_a_cluster_of_its_nodes_before_it_waits_for_it(stage: Stage) -> None:
    running = GARAGE.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert sorted(stage.started()) == [f"{name} garage" for name in ("gateway-1", *KEEPERS)]
    met, joined = stage.when("gateway-1 .*join_garage_nodes")
    (ready_at,) = stage.when("gateway-1 .*/await_answers.py")
    assert met < joined < ready_at
    assert running.facts["acknowledgement"].startswith("a write is acknowledged when 2 of 3 nodes")
    assert re.fullmatch("GK[0-9a-f]{24}", running.endpoints[0].user)
    files = {rendered.host: tomllib.loads(rendered.text) for rendered in running.rendered}
    assert {file["data_fsync"] and file["metadata_fsync"] for file in files.values()} == {True}
    serving = [name for name, file in files.items() if "api_bind_addr" in file["s3_api"]]
    assert serving == ["gateway-1"]
    disks = ["/srv/disk0/data", "/srv/disk1/data"]
    assert [folder["path"] for folder in files["store-2"]["data_dir"]] == disks
    assert "metadata_fsync = false" in GARAGE_UNSYNCED.render(stage.hosts)[0].text


def test_a_node_of_garage_that_serves_clients_and_keeps_objects_does_both_on_its_disks(
    stage: Stage,
) -> None:
    place = {"gateway": "store-1", "storage": ("store-1",)}
    alone = planned("garage", place, replication_factor=1)
    (need,) = alone.needs().values()
    assert (need.disks, need.tier) == (1, "shared")
    (text,) = (tomllib.loads(rendered.text) for rendered in alone.render(stage.hosts))
    assert text["metadata_dir"] == "/srv/disk0/meta"
    assert text["s3_api"]["api_bind_addr"].endswith(":3900")


@ALL
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
    assert len(stage.when("gateway-1 .*join_garage_nodes")) == (gateway is GARAGE)


@ALL
def test_no_key_is_in_a_command_line_or_in_what_is_shown(stage: Stage, gateway: Gateway) -> None:
    running = gateway.bring_up(stage.hosts, stage.hosts["client-1"], print)
    services = [service for host in stage.hosts.values() for service in host.services.values()]
    shown = [word for service in services for word in service.argv]
    shown += [what for _, what in stage.events]
    shown += [rendered.text for rendered in running.rendered]
    key = running.endpoints[0].key.get_secret_value()
    assert not [text for text in shown if key in text]
    modes = {stage.hosts[each.host].modes[each.path] for each in running.rendered}
    assert modes <= {(0o600, "root")}


@ALL
def test_a_host_with_another_version_of_the_program_is_refused_with_where_to_get_it(
    stage: StoreStage, gateway: Gateway
) -> None:
    gateway.preflight(stage.hosts, print)
    stage.versions = "another version"
    with pytest.raises(UsageError, match="another version") as refused:
        gateway.preflight(stage.hosts, print)
    assert "/usr/local/bin" in (refused.value.advice or "")


@pytest.mark.parametrize(
    ("gateways", "answers", "words"),
    [
        ((SEAWEEDFS, MINIO, GARAGE), "data on disk", "acknowledges before the name is on disk"),
        ((UNSYNCED, VERSITYGW, GARAGE_UNSYNCED), "page cache", "acknowledges from the page cache"),
    ],
)
def test_each_declares_what_is_on_disk_when_it_acknowledges(
    stage: Stage, gateways: tuple[Gateway, ...], answers: str, words: str
) -> None:
    for gateway in gateways:
        structure = gateway.structure(DISKS)
        assert structure is not None
        assert structure.answers == answers
        running = gateway.bring_up(stage.hosts, stage.hosts["client-1"], print)
        assert running.facts["on disk"] == words


ON_TWO = {"master": "a", "volume": ("a", "b"), "filer": "a", "s3": "c"}


@pytest.mark.parametrize(
    ("kind", "place", "message"),
    [
        (
            "seaweedfs",
            ON_TWO,
            "3 copies .* need as many volume servers, not 2: add hosts, or set replicas to 2",
        ),
        ("seaweedfs", {**ON_TWO, "filer": "c"}, "filer is on c, which has no volume server"),
        (
            "garage",
            {"gateway": "c", "storage": ("a", "b")},
            "3 copies .* need as many nodes, not 2",
        ),
        ("minio", {"server": ("a", "a")}, "server names the same host twice"),
    ],
)
def test_hosts_that_do_not_suffice_are_refused(
    kind: str, place: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        planned(kind, place)


def test_more_parity_than_half_of_the_disks_is_refused() -> None:
    (unfit,) = planned("minio", {"server": KEEPERS}, parity=2).lacks(DISKS)
    assert isinstance(unfit, Unfit)
    assert "parity 2 needs 4 disks, and the servers have 3" in str(unfit)
    assert MINIO.lacks(DISKS) == ()


def test_a_url_is_ready_when_it_says_so_often_enough(capsys: pytest.CaptureFixture[str]) -> None:
    urls = b'"Url"'
    answers = [Response(503, urls * 3), Response(200, urls * 2), Response(200, urls * 3)]
    server = Server(lambda _: answers.pop(0) if answers else Response(503, b"no quorum"))
    with server.serving():
        wanted = {"url": f"{server.url}/dir/status", "text": '"Url"', "times": 3}
        assert list(ask([wanted], 30, lambda: False)) == [0]
        assert answers == []
        assert list(ask([wanted, {**wanted, "below": 504, "text": ""}], 0, lambda: False)) == [1]
    assert capsys.readouterr().err == f"{server.url}/dir/status is not ready: 503 no quorum\n"


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with memory_store() as store:
        yield store


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FakeHost]:
    host = FakeHost("client-1", "127.0.0.1", tmp_path)
    yield host
    host.close()


def wrong(method: str, change: Callable[[Response], Response]) -> Between:
    """Change successful answers of a method about the object."""

    def between(request: Request, respond: Respond) -> Response:
        response = respond(request)
        concerned = request.path.endswith("/check") and response.status == 200
        return change(response) if concerned and request.method == method else response

    return between


def with_headers(between: Between, **headers: str) -> Between:
    return lambda request, respond: wrong_headers(between(request, respond), headers)


def wrong_headers(response: Response, headers: dict[str, str]) -> Response:
    return replace(response, headers={**response.headers, **headers})


def other_byte(response: Response) -> Response:
    return replace(response, body=response.body[:-1] + bytes([response.body[-1] ^ 1]))


def short(response: Response) -> Response:
    return replace(response, body=response.body[:100])


def unlisted(request: Request, respond: Respond) -> Response:
    if not request.query:
        return respond(request)
    return Response(200, b"[]" if "format" in request.query else b"<ListBucketResult/>")


def crowded(request: Request, respond: Respond) -> Response:
    if not request.query:
        return respond(request)
    if "format" in request.query:
        return Response(200, json.dumps([{"name": f"check-{n:099}"} for n in range(5000)]).encode())
    keys = "".join(f"<Contents><Key>check-{n:099}</Key></Contents>" for n in range(5000))
    return Response(200, f"<ListBucketResult>{keys}</ListBucketResult>".encode())


def undead(request: Request, respond: Respond) -> Response:
    about = request.method == "DELETE" and request.path.endswith("/check")
    return Response(204) if about else respond(request)


def of_api(store: MemoryStore, api: str) -> Endpoint:
    (endpoint,) = (endpoint for endpoint in store.endpoints if endpoint.api == api)
    return endpoint


def verified(store: MemoryStore, client: FakeHost, api: str) -> tuple[OperationCheck, ...]:
    return verify(client, [of_api(store, api)], listed_within_s=0.2)


KMS = {"x-amz-server-side-encryption": "aws:kms"}
OTHER_ETAG = {"ETag": f'"{"0" * 32}"'}
BOTH = pytest.mark.parametrize("api", ["s3", "swift"])
CONTENT = "content differs from what was written, first at byte 65535"


@pytest.mark.parametrize("headers", [{**KMS, **OTHER_ETAG}, {"ETag": f'"{"0" * 32}-1"'}])
def test_an_etag_that_is_no_md5_is_not_compared(
    store: MemoryStore, client: FakeHost, headers: dict[str, str]
) -> None:
    store.server.between = with_headers(store.server.between, **headers)
    assert len(verified(store, client, "s3")) == 8


@BOTH
@pytest.mark.parametrize(
    ("between", "operation", "what"),
    [
        (wrong("GET", other_byte), "GET", CONTENT),
        (with_headers(wrong("GET", other_byte), **KMS), "GET", CONTENT),
        (wrong("HEAD", lambda response: wrong_headers(response, OTHER_ETAG)), "HEAD", "ETag"),
        (wrong("GET", short), "GET", "100 bytes, but 65536 were written"),
        (unlisted, "LIST", "the names []"),
        (crowded, "LIST", "one object named 'check' was written (status 200)"),
        (undead, "GET after DELETE", "404 was expected (status 200)"),
        (wrong("HEAD", lambda _: Response(503)), "HEAD", "200 was expected (status 503)"),
    ],
)
@pytest.mark.long
def test_wrong_answers_are_found(
    store: MemoryStore, client: FakeHost, between: Between, api: str, operation: str, what: str
) -> None:
    store.server.between = between
    with pytest.raises(VerificationFailed) as failure:
        verified(store, client, api)
    assert f" {operation} at {store.server.url}" in failure.value.message
    assert what in failure.value.message
    assert len(failure.value.message) < 1000


def test_only_the_start_of_a_wrong_body_is_shown(store: MemoryStore, client: FakeHost) -> None:
    store.server.between = lambda request, respond: Response(401, b"wrong key")
    url = of_api(store, "swift").url
    with pytest.raises(VerificationFailed) as failure:
        verified(store, client, "swift")
    assert failure.value.message == (
        f"swift auth at {url}: 200 or 204 was expected (status 401)\nwrong key"
    )
    store.server.between = undead
    with pytest.raises(VerificationFailed) as failure:
        verified(store, client, "s3")
    assert len(failure.value.message.split("\n", 1)[1]) <= 300


def test_a_null_target_is_checked_only_by_length(store: MemoryStore, client: FakeHost) -> None:
    store.server.between = wrong("GET", other_byte)
    verify(client, store.endpoints, stores_bodies=False)
    store.server.between = wrong("GET", short)
    with pytest.raises(VerificationFailed, match="100 bytes"):
        verify(client, store.endpoints, stores_bodies=False)


@BOTH
def test_a_list_that_lags_behind_is_asked_again_and_so_is_the_deletion_of_its_bucket(
    store: MemoryStore, client: FakeHost, api: str
) -> None:
    busy, late = [Response(409, b"not empty yet")] * 3, [unlisted] * 2

    def between(request: Request, respond: Respond) -> Response:
        if request.method == "DELETE" and not request.path.endswith("/check") and busy:
            return busy.pop()
        return late.pop()(request, respond) if request.query and late else respond(request)

    store.server.between = between
    checks = verify(client, [of_api(store, api)])
    assert [check.operation for check in checks].count("LIST") == 1
    assert (busy, late) == ([], [])


def test_a_configured_storage_url_replaces_the_one_from_auth(
    store: MemoryStore, client: FakeHost
) -> None:
    elsewhere = {"X-Storage-Url": "http://store.invalid/v1/AUTH_u"}
    store.server.between = with_headers(store.server.between, **elsewhere)
    with pytest.raises(VerificationFailed, match="its name does not resolve"):
        verified(store, client, "swift")
    configured = {"storage_url": f"{store.server.url}/v1/AUTH_u"}
    assert verify(client, [of_api(store, "swift").model_copy(update=configured)])


def test_a_bucket_is_created_in_the_region_of_its_endpoint(
    store: MemoryStore, client: FakeHost
) -> None:
    created = []

    def between(request: Request, respond: Respond) -> Response:
        if (request.method, request.path) == ("PUT", "/mine"):
            created.append(request.body)
        return respond(request)

    store.server.between = between
    there = of_api(store, "s3").model_copy(update={"region": "eu-west-1"})
    verify(client, [there], bucket="mine")
    assert b"<LocationConstraint>eu-west-1</LocationConstraint>" in created[0]


TOKEN = "ab" * 16
NAMES = ("1" * 64, "2" * 64)


class Nodes:
    """Two of Garage's nodes, told apart by their paths."""

    def __init__(self, folder: Path) -> None:
        self.names = NAMES
        self.refusals = [Response(503, b"no quorum yet")]
        self.asked: list[tuple[str, Any]] = []
        self.refused: str | None = None
        self.server = Server(self.respond)
        self.config = folder / "garage.toml"
        self.config.write_text(f'rpc_secret = "cd"\n[admin]\nadmin_token = "{TOKEN}"\n')

    def respond(self, request: Request) -> Response:
        if request.headers["authorization"] != f"Bearer {TOKEN}":
            return Response(403)
        node, _, what = request.path.removeprefix("/").partition("/v2/")
        if request.method == "GET":
            return said({"success": {self.names["ab".index(node)]: {}}})
        self.asked.append((request.target.rpartition("/")[2], json.loads(request.body)))
        if what == "ImportKey" and self.refusals:
            return self.refusals.pop()
        connected = [{"success": self.refused is None, "error": self.refused}]
        return said(connected if what == "ConnectClusterNodes" else {})

    def order(self, **user: str) -> dict[str, Any]:
        url = self.server.url
        nodes = [
            {"admin": f"{url}/a", "rpc": "10.0.0.2:3901", "zone": "gateway-1", "capacity": None},
            {"admin": f"{url}/b", "rpc": "10.0.0.3:3901", "zone": "store-1", "capacity": 10**12},
        ]
        return {"config": str(self.config), "nodes": nodes, "deadline_s": 30, **user}


def said(body: object) -> Response:
    return Response(200, json.dumps(body).encode())


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    with nodes.server.serving():
        yield nodes


def test_nodes_are_connected_and_given_roles_and_a_user_that_may_create_buckets(
    nodes: Nodes,
) -> None:
    join_garage_nodes.join(nodes.order())
    assert nodes.asked == [("ConnectClusterNodes", [f"{NAMES[1]}@10.0.0.3:3901"])]
    nodes.asked.clear()
    join_garage_nodes.join(nodes.order(user="GK1", key="s"))
    asked = dict(nodes.asked)
    assert list(asked) == [
        *("UpdateClusterLayout", "ApplyClusterLayout", "ImportKey", "UpdateKey?id=GK1")
    ]
    assert nodes.refusals == []  # there was no quorum yet: it asked again
    rows = asked["UpdateClusterLayout"]["roles"]
    roles = {row["id"]: (row["zone"], row["capacity"]) for row in rows}
    assert roles == {NAMES[0]: ("gateway-1", None), NAMES[1]: ("store-1", 10**12)}
    assert asked["ApplyClusterLayout"] == {"version": 1}
    assert asked["UpdateKey?id=GK1"] == {"allow": {"createBucket": True}}


def test_nodes_that_do_not_connect_or_answer_strangely_end_it_with_what_they_said(
    nodes: Nodes,
) -> None:
    nodes.refused = "wrong secret"
    with pytest.raises(SystemExit, match="nodes do not connect: wrong secret"):
        join_garage_nodes.join(nodes.order())
    nodes.names = ("../x", NAMES[1])
    with pytest.raises(SystemExit, match=r"no name of a node: \.\./x"):
        join_garage_nodes.join(nodes.order(user="GK1", key="s"))
    nodes.config.write_text('admin_token = "00"\n')
    with pytest.raises(SystemExit, match="403 "):
        join_garage_nodes.join({**nodes.order(user="GK1", key="s"), "deadline_s": 0})
