"""A store that lies in one way is caught in it: the capability is wrong or unknown, never works."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from http_stub import Between, Closed, Request, Respond, Response
from tests.gateways.capabilities.memory_store import MemoryStore, ask, memory_store
from weighbridge.common import plain_xml
from weighbridge.gateways.capabilities import asking, objects, session
from weighbridge.gateways.capabilities.asking import CAPABILITIES, Asker, AskingOrder
from weighbridge.gateways.existing.clear import BUCKET, OBJECT


@pytest.fixture(scope="module")
def shared() -> Iterator[MemoryStore]:
    with memory_store() as store:
        yield store


@pytest.fixture(scope="module")
def asker(shared: MemoryStore) -> Asker:
    return shared.asker()


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with memory_store() as store:
        yield store


@pytest.mark.parametrize("key", list(CAPABILITIES))
@pytest.mark.long
def test_everything_works_with_a_store_that_does_everything(key: str, asker: Asker) -> None:
    reply = asker.ask(CAPABILITIES[key])
    assert reply.answer.outcome == "works", reply.answer.why
    assert reply.alive


def dropping(*headers: str) -> Between:
    return lambda request, respond: respond(request.without(*headers))


def blind_to(*names: str) -> Between:
    def between(request: Request, respond: Respond) -> Response:
        if request.method != "GET":
            return respond(request)
        url = urlsplit(request.target)
        kept = [pair for pair in url.query.split("&") if pair.partition("=")[0] not in names]
        return respond(replace(request, target=url._replace(query="&".join(kept)).geturl()))

    return between


def saying(
    status: int,
    to: Callable[[Request], object] = lambda request: request.path != "/auth/v1.0",
    body: bytes | None = b"<a/>",
) -> Between:
    """The same answer to all these requests (None: what was sent)."""

    def between(request: Request, respond: Respond) -> Response:
        if not to(request):
            return respond(request)
        return Response(status, request.body if body is None else body)

    return between


def refusing_but_storing(request: Request, respond: Respond) -> Response:
    if "if-none-match" not in request.headers:
        return respond(request)
    respond(request.without("if-none-match"))
    return Response(412)


def cut_short(request: Request, respond: Respond) -> Response:
    """Listings lose their second half, and say that they are complete."""
    response = respond(request)
    if request.method != "GET":
        return response
    body = response.body
    if body.startswith(b"<ListBucketResult"):
        kept = re.findall(rb"<Contents>.*?</Contents>|<CommonPrefixes>.*?</CommonPrefixes>", body)
        half = b"".join(kept[: (len(kept) + 1) // 2])
        body = b"<ListBucketResult>" + half + b"<IsTruncated>false</IsTruncated></ListBucketResult>"
    elif "format" in request.query and "versions" not in request.query:
        rows = json.loads(body)
        body = json.dumps(rows[: (len(rows) + 1) // 2 if len(rows) > 1 else 1]).encode()
        body = b"[]" if request.query.get("marker", "") > "written-d" else body
    return replace(response, body=body)


def first_range_only(request: Request, respond: Respond) -> Response:
    first = request.headers.get("range", "").partition(",")[0]
    return respond(replace(request, headers={**request.headers, "range": first}))


def everything_for_everybody(request: Request, respond: Respond) -> Response:
    target = request.target
    if "X-Amz-Signature" in target:
        target = urlsplit(target)._replace(query="").geturl()
    credentials = {"authorization": "any", "x-auth-token": "AUTH_tk_planted"}
    return respond(replace(request, target=target, headers={**request.headers, **credentials}))


SUB_RESOURCES = frozenset(
    ("versioning", "tagging", "acl", "policy", "cors", "lifecycle", "retention", "encryption")
)


WRONG, CAUGHT = ("wrong",), ("wrong", "unknown")
LIES = (
    ("conditions ignored", dropping("if-"), r"-conditions$|if-(none-)?match$", WRONG),
    ("ranges ignored", dropping("range"), "-range", WRONG),
    ("only the first range", first_range_only, "range-many$", WRONG),
    ("wrong checksums taken", dropping("x-amz-checksum-", "content-md5", "etag", "x-amz-trailer"),
     "^s3-(sha|crc)|^s3-wrong-(crc|sha|md5|trailer)|^swift-wrong-etag", WRONG),
    ("the signed hash of the body is not verified", dropping("x-amz-content-sha256"),
     "^s3-wrong-payload-hash$", WRONG),
    ("chunks are stored with their signatures", dropping("x-amz-content-sha256", "x-amz-trailer"),
     "^s3-signed|^s3-unsigned-trailer|^s3-wrong-(chunk|trailer)", WRONG),
    # Swift's pages may be short, if clients go on until one is empty.
    ("listings are cut short", cut_short,
     "^s3-list-(?!parts|upl)|^swift-full-pages|^swift-list-(?!prefix)", WRONG),
    ("partNumber ignored", blind_to("partNumber", "part-number"), "part-number$", WRONG),
    ("attributes ignored", blind_to("attributes"), "^s3-attributes$", WRONG),
    ("SSE taken and not done", dropping("x-amz-server-side-encryption"), "^s3-sse-", WRONG),
    ("multi-delete and bulk delete do nothing",
     saying(200, lambda one: {"delete", "bulk-delete"} & one.query.keys()),
     "^s3-multi-delete|^swift-bulk-delete$", WRONG),
    ("archives are swallowed", saying(202, lambda one: "extract-archive" in one.query),
     "^swift-extract-archive$", WRONG),
    ("deletes do nothing",
     saying(204, lambda one: one.method == "DELETE" and "uploadId" not in one.target, b""),
     "^s3-(delete|delete-marker|object-tags)$|^swift-slo-delete$", WRONG),
    ("parts are not listed",
     saying(200, lambda one: one.method == "GET" and "uploadId" in one.query),
     "^s3-list-parts$", CAUGHT),
    ("writes do nothing",
     saying(200, lambda one: one.method == "PUT" and "object-" in one.target),
     "put-default|^swift-put$|^s3-copy$|unsigned-payload|presigned-put", CAUGHT),
    ("sub-resources are swallowed",
     saying(200, lambda one: one.method == "PUT" and SUB_RESOURCES & one.query.keys()),
     r"^s3-(versions|delete-marker|object-(tags|acl)|cors|lifecycle|retention|bucket-)", CAUGHT),
    ("refused but stored", refusing_but_storing, "-put-if-none-match$", WRONG),
    ("metadata is lost", dropping("x-amz-meta-", "x-object-meta-", "x-container-meta-"),
     "^s3-metadata$|^s3-copy|^swift-copy$|^swift-(post|container)-metadata$", WRONG),
    ("everybody reads and writes", everything_for_everybody,
     "-anonymous-refused$|^s3-wrong-signature$", WRONG),
    ("Swift's headers are ignored",
     dropping("x-versions", "x-history", "x-symlink", "x-object-manifest", "x-delete",
              "x-container-meta-quota"),
     "^swift-(versions|history|symlink|dlo|quota)", WRONG),
)  # fmt: skip


@pytest.mark.parametrize(
    ("between", "key", "outcomes"),
    [
        pytest.param(between, key, outcomes, id=f"{name}: {key}")
        for name, between, keys, outcomes in LIES
        for key in CAPABILITIES
        if re.search(keys, key)
    ],
)
def test_a_lie_is_caught(
    between: Between, key: str, outcomes: tuple[str, ...], shared: MemoryStore, asker: Asker
) -> None:
    store = asker.sessions[CAPABILITIES[key].api]
    assert store.bucket
    if "list" in key or "pages" in key:
        assert store.full_bucket
    shared.server.between = between
    try:
        answer = asker.ask(CAPABILITIES[key]).answer
    finally:
        shared.server.between = lambda request, respond: respond(request)
    assert answer.outcome in outcomes, answer.why


def closing(request: Request, respond: Respond) -> Response:
    raise Closed


NOT_WORKING = {"refused", "wrong", "unknown"}
DENIED = b"<Error><Code>AccessDenied</Code></Error>"
SAYING = {
    "yes": (saying(200, body=b""), NOT_WORKING),
    "garbage": (saying(200, body=b"\x00\xff<garbage" * 3), NOT_WORKING),
    "echo": (saying(200, body=None), NOT_WORKING),
    "no": (saying(403, lambda _: True, DENIED), NOT_WORKING),
    "failing": (saying(503, lambda _: True, b"slow down"), {"unknown"}),
    "closing": (closing, {"unknown"}),
}


@pytest.mark.parametrize(
    "name",
    [
        *("yes", "garbage"),
        *(pytest.param(name, marks=pytest.mark.test_all) for name in list(SAYING)[2:]),
    ],
)
@pytest.mark.long
def test_nothing_works_with_a_store_that_does_nothing(
    name: str, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LISTED_WITHIN_S", 0.1)
    monkeypatch.setattr(objects, "_GONE_WITHIN_S", 0.1)
    store.server.between, outcomes = SAYING[name]
    answers = ask(store, *CAPABILITIES)
    assert {answer.outcome for answer in answers.values()} <= outcomes


class Finalized:
    def __del__(self) -> None:
        time.sleep(1)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("silence_s", "deadline_s", "finalizer", "said"),
    [
        (0.2, 60, False, "no complete answer within 0.2 s"),
        (20, 0.5, False, "no answer within 0.5 s"),
        # What is raised in a finalizer Python drops.
        (20, 0.2, True, "no answer within 0.2 s"),
    ],
)
def test_a_store_that_hangs_is_unknown_in_time(
    silence_s: float,
    deadline_s: float,
    finalizer: bool,
    said: str,
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hanging(request: Request, respond: Respond) -> Response:
        store.server.released.wait()
        raise Closed

    def probe(asked: session.Session) -> None:
        if finalizer:
            Finalized()
        asked.put(b"body")

    asker = store.asker(deadline_s)
    assert asker.sessions["s3"].bucket
    monkeypatch.setattr(session, "SILENCE_S", silence_s)
    monkeypatch.setattr(asking, "ALIVE_WITHIN_S", 0.2)
    store.server.between = hanging
    reply = asker.ask(replace(CAPABILITIES["s3-delete"], probe=probe))
    assert (reply.answer.outcome, reply.answer.text) == ("unknown", said)
    assert not reply.alive
    assert not reply.answered


def test_a_secret_that_a_store_repeats_is_not_in_its_answer(store: MemoryStore) -> None:
    def repeating(request: Request, respond: Respond) -> Response:
        if request.method != "PUT" or "object-" not in request.target:
            return respond(request)
        told = "a-planted-secret AUTH_tk_planted \x1b[31m" + "x" * 500
        text = f"<Error><Code>{told[:16]}</Code><Message>{told}</Message></Error>"
        return Response(400, text.replace("\x1b", "&#x202e;").encode())

    store.server.between = repeating
    for answer in ask(store, "swift-put", "s3-put-default").values():
        assert answer.outcome == "refused"
        assert "***" in answer.why
        assert "planted" not in answer.why
        assert answer.why.isprintable()
        assert len(answer.text) <= 200


def test_a_bucket_is_made_in_the_region_of_its_endpoint(store: MemoryStore) -> None:
    bodies = []

    def between(request: Request, respond: Respond) -> Response:
        bodies.append(request.body)
        return respond(request)

    store.server.between = between
    endpoint = store.endpoints[0].model_copy(update={"region": "eu-1"})
    order = AskingOrder(endpoints=(endpoint,), buckets=("wb-0123abcd-capability-0",), own=True)
    assert Asker(order).ask(CAPABILITIES["s3-delete"]).answer.outcome == "works"
    assert plain_xml.parse(bodies[0]).findtext("{*}LocationConstraint") == "eu-1"
    more = Asker(order.model_copy(update={"buckets": ()})).ask(CAPABILITIES["s3-cors"]).answer
    assert more.why == "not asked: more than 60 buckets would be needed"


def test_locks_are_lifted_and_all_names_are_those_that_clean_recognises(
    shared: MemoryStore, asker: Asker
) -> None:
    for key in ("s3-retention", "s3-legal-hold", "s3-list-v2"):
        assert asker.ask(CAPABILITIES[key]).answer.outcome == "works"
    for half in (shared.s3, shared.swift):
        assert all(BUCKET.fullmatch(name) for name in half.buckets)
        names = [name for bucket in half.buckets.values() for name in bucket.objects]
        assert [name for name in names if not OBJECT.fullmatch(name) and "/" not in name] == []
        versions = [each for bucket in half.buckets.values() for each in bucket.objects.values()]
        locks = [each.sub.keys() & {"retention"} for kept in versions for each in kept]
        held = [each.sub.get("legal-hold", b"") for kept in versions for each in kept]
        assert not any(locks)
        assert not any(b"ON" in hold for hold in held)
