"""A store that lies in one way is caught in it: the capability is wrong or unknown, never works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from http_stub import Between, Closed, Request, Respond, Response
from tests.gateways.capabilities.memory_store import MemoryStore, ask, memory_store
from weighbridge.gateways.capabilities import ask_store, session, swift_session
from weighbridge.gateways.capabilities.ask_store import Asker
from weighbridge.gateways.capabilities.capability import Outcome
from weighbridge.gateways.capabilities.registry import CAPABILITIES


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
def test_everything_works_with_a_store_that_does_everything(key: str, asker: Asker) -> None:
    reply = asker.ask(CAPABILITIES[key])
    assert (reply.answer.outcome, reply.answer.why) == ("works", reply.answer.why)
    assert reply.alive
    assert not reply.left


def dropping(*headers: str) -> Between:
    """Ignore request headers."""
    return lambda request, respond: respond(request.without(*headers))


def blind_to(*names: str) -> Between:
    """Ignore words of the query of a GET."""

    def between(request: Request, respond: Respond) -> Response:
        if request.method != "GET":
            return respond(request)
        url = urlsplit(request.target)
        kept = [pair for pair in url.query.split("&") if pair.partition("=")[0] not in names]
        return respond(replace(request, target=url._replace(query="&".join(kept)).geturl()))

    return between


def only_saying(matches: Callable[[Request], bool], status: int) -> Between:
    """Answer with success and do nothing."""

    def between(request: Request, respond: Respond) -> Response:
        body = b"" if status == 204 else b"<a/>"
        return Response(status, body) if matches(request) else respond(request)

    return between


def refusing_but_storing(header: str) -> Between:
    def between(request: Request, respond: Respond) -> Response:
        if header not in request.headers:
            return respond(request)
        respond(request.without(header))
        return Response(412)

    return between


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
    asked = request.headers.get("range", "").partition(",")[0]
    return respond(replace(request, headers={**request.headers, "range": asked}))


def losing_parts(request: Request, respond: Respond) -> Response:
    response = respond(request)
    return (
        replace(response, body=b"<ListPartsResult/>") if "uploadId" in request.query else response
    )


def everything_for_everybody(request: Request, respond: Respond) -> Response:
    return respond(
        replace(
            request,
            target=urlsplit(request.target)._replace(query="").geturl()
            if "X-Amz-Signature" in request.target
            else request.target,
            headers={**request.headers, "authorization": "any", "x-auth-token": "AUTH_tk_planted"},
        )
    )


@dataclass(frozen=True)
class Lie:
    name: str
    between: Between
    keys: Sequence[str]
    outcomes: tuple[Outcome, ...] = ("wrong",)


def _tail(*, of: str) -> list[str]:
    return [key for key in CAPABILITIES if re.search(of, key)]


LIES = [
    Lie("conditions ignored", dropping("if-"), _tail(of=r"-conditions$|if-(none-)?match$")),
    Lie("ranges ignored", dropping("range"), _tail(of=r"-range")),
    Lie("only the first range", first_range_only, _tail(of=r"range-many$")),
    Lie(
        "wrong checksums taken",
        dropping("x-amz-checksum-", "content-md5", "etag", "x-amz-trailer"),
        _tail(of=r"^s3-(sha|crc)|^s3-wrong-(crc|sha|md5|trailer)|^swift-wrong-etag"),
    ),
    Lie(
        "the signed hash of the body is not verified",
        dropping("x-amz-content-sha256"),
        ["s3-wrong-payload-hash"],
    ),
    Lie(
        "chunks are stored with their signatures",
        dropping("x-amz-content-sha256", "x-amz-trailer"),
        _tail(of=r"(^s3-signed|^s3-unsigned-trailer|s3-wrong-(chunk|trailer))"),
    ),
    Lie(
        "listings are cut short",
        cut_short,
        # Swift's pages may be short, if clients go on until one is empty.
        [
            *_tail(of=r"^s3-list-(?!parts|upl)"),
            *("swift-list-all", "swift-full-pages", "swift-list-large", "swift-list-delimiter"),
            *("swift-list-between", "swift-list-reverse"),
        ],
    ),
    Lie("partNumber ignored", blind_to("partNumber", "part-number"), _tail(of=r"part-number$")),
    Lie("attributes ignored", blind_to("attributes"), ["s3-attributes"]),
    Lie(
        "SSE-C taken and not done",
        dropping("x-amz-server-side-encryption"),
        ["s3-sse-c", "s3-sse-s3"],
    ),
    Lie(
        "multi-delete and bulk delete do nothing",
        only_saying(lambda one: bool({"delete", "bulk-delete"} & one.query.keys()), 200),
        ["s3-multi-delete", "s3-multi-delete-md5", "s3-multi-delete-too-many", "swift-bulk-delete"],
    ),
    Lie(
        "archives are swallowed",
        only_saying(lambda one: "extract-archive" in one.query, 202),
        ["swift-extract-archive"],
    ),
    Lie(
        "deletes do nothing",
        only_saying(lambda one: one.method == "DELETE" and "uploadId" not in one.target, 204),
        ["s3-delete", "s3-delete-marker", "swift-slo-delete", "s3-object-tags"],
    ),
    Lie("parts are not listed", losing_parts, ["s3-list-parts"], ("wrong", "unknown")),
    Lie(
        "writes do nothing",
        only_saying(lambda one: one.method == "PUT" and "object-" in one.target, 200),
        _tail(of=r"put-default|^swift-put$|^s3-copy$|unsigned-payload|presigned-put"),
        ("wrong", "unknown"),
    ),
    Lie(
        "sub-resources are swallowed",
        only_saying(
            lambda one: one.method == "PUT" and bool(one.query.keys() &
            {"versioning", "tagging", "acl", "policy", "cors", "lifecycle", "retention",
             "encryption"}), 200
        ),
        _tail(
            of=r"s3-(versions|delete-marker|object-tags|object-acl|bucket-policy|cors|lifecycle"
            r"|retention|bucket-tags|bucket-encryption)"
        ),
        ("wrong", "unknown"),
    ),
    Lie(
        "refused but stored",
        refusing_but_storing("if-none-match"),
        ["s3-put-if-none-match", "swift-put-if-none-match"],
    ),
    Lie(
        "metadata is lost",
        dropping("x-amz-meta-", "x-object-meta-", "x-container-meta-"),
        ["s3-metadata", "s3-copy", "s3-copy-replace", "swift-post-metadata", "swift-copy",
         "swift-container-metadata"],
    ),
    Lie(
        "everybody reads and writes",
        everything_for_everybody,
        ["s3-anonymous-refused", "swift-anonymous-refused", "s3-wrong-signature"],
    ),
    Lie(
        "Swift's headers are ignored",
        dropping("x-versions", "x-history", "x-symlink", "x-object-manifest", "x-delete",
                 "x-container-meta-quota"),
        _tail(of=r"^swift-(versions|history|symlink|dlo|quota)"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lie", "key"),
    [pytest.param(lie, key, id=f"{lie.name}: {key}") for lie in LIES for key in lie.keys],
)
def test_a_lie_is_caught(lie: Lie, key: str, shared: MemoryStore, asker: Asker) -> None:
    session_of = asker._sessions[CAPABILITIES[key].api]
    assert session_of.bucket
    if "list" in key or "pages" in key:
        assert session_of.full_bucket
    shared.server.between = lie.between
    try:
        answer = asker.ask(CAPABILITIES[key]).answer
    finally:
        shared.server.between = lambda request, respond: respond(request)
    assert answer.outcome in lie.outcomes, answer.why


def yes_man(request: Request, respond: Respond) -> Response:
    return Response(200) if request.path != "/auth/v1.0" else respond(request)


def echo(request: Request, respond: Respond) -> Response:
    return Response(200, request.body) if request.path != "/auth/v1.0" else respond(request)


def no_man(request: Request, respond: Respond) -> Response:
    return Response(403, b"<Error><Code>AccessDenied</Code></Error>")


def failing(request: Request, respond: Respond) -> Response:
    return Response(503, b"slow down")


def garbage(request: Request, respond: Respond) -> Response:
    if request.path == "/auth/v1.0":
        return respond(request)
    return Response(200, b"\x00\xff<garbage" * 3)


def closing(request: Request, respond: Respond) -> Response:
    raise Closed


@pytest.mark.parametrize(
    "between",
    [
        yes_man,
        garbage,
        *(
            pytest.param(one, marks=pytest.mark.test_all)
            for one in (echo, no_man, failing, closing)
        ),
    ],
)
def test_nothing_works_with_a_store_that_does_nothing(
    between: Between, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swift_session, "LISTED_WITHIN_S", 0.1)
    store.server.between = between
    answers = ask(store, *CAPABILITIES)
    assert [key for key, answer in answers.items() if answer.outcome == "works"] == []
    if between in (failing, closing):
        assert {answer.outcome for answer in answers.values()} == {"unknown"}


def test_a_store_that_hangs_is_unknown_and_named_as_silent(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hanging(request: Request, respond: Respond) -> Response:
        store.server.released.wait()
        raise Closed

    asker, one = store.asker(), CAPABILITIES["s3-range-single"]
    assert asker.ask(one).answer.outcome == "works"
    monkeypatch.setattr(session, "SILENCE_S", 0.2)
    monkeypatch.setattr(ask_store, "ALIVE_WITHIN_S", 0.2)
    store.server.between = hanging
    answer = asker.ask(one).answer
    assert answer.outcome == "unknown"
    assert answer.text == "no complete answer within 0.2 s"


def test_a_capability_that_takes_too_long_is_unknown(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hanging(request: Request, respond: Respond) -> Response:
        store.server.released.wait()
        raise Closed

    store.server.between = hanging
    monkeypatch.setattr(ask_store, "ALIVE_WITHIN_S", 0.2)
    reply = store.asker(deadline_s=0.5).ask(CAPABILITIES["s3-delete"])
    assert (reply.answer.outcome, reply.answer.text) == ("unknown", "no answer within 0.5 s")
    assert not reply.alive


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


def test_versions_and_locks_are_gone_when_the_next_is_asked(store: MemoryStore) -> None:
    ask(store, "s3-versions", "s3-delete-marker", "s3-retention", "s3-legal-hold")
    assert [
        version
        for bucket in store.s3.buckets.values()
        for versions in bucket.objects.values()
        for version in versions
    ] == []


def test_all_buckets_and_objects_have_names_that_clean_recognises(
    shared: MemoryStore, asker: Asker
) -> None:
    from weighbridge.gateways.existing.leftover_buckets import BUCKET, OBJECT  # noqa: PLC0415

    assert asker.ask(CAPABILITIES["s3-list-v2"]).answer.outcome == "works"
    for half in (shared.s3, shared.swift):
        assert all(BUCKET.fullmatch(name) for name in half.buckets)
        names = [name for bucket in half.buckets.values() for name in bucket.objects]
        strange = [name for name in names if not OBJECT.fullmatch(name) and "/" not in name]
        assert strange == []
