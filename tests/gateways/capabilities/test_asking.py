"""The conductor's side: a program on a host that answers line by line, and gateways that die."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from http_stub import Closed, Request, Respond, Response
from tests.gateways.capabilities.memory_store import PREFIX, MemoryStore, memory_store
from tests.mutation import Dice, bounded, cases, wrong_json
from weighbridge.common.errors import ServiceFailed, TargetError
from weighbridge.common.host import Command
from weighbridge.gateways.capabilities import asking
from weighbridge.gateways.capabilities.asking import Asked, NoReply, ask_all, in_order, reply_of
from weighbridge.gateways.capabilities.capability import Answer, Capability
from weighbridge.gateways.capabilities.digests import checksum
from weighbridge.gateways.capabilities.matrix import (
    CapabilityMatrix,
    LayoutAnswers,
    cell,
    footnotes,
    matrix_csv,
)
from weighbridge.gateways.capabilities.registry import CAPABILITIES
from weighbridge.topologies.fake import FakeHost

ASKED = [CAPABILITIES[key] for key in ("s3-delete", "s3-copy", "swift-put")]


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with memory_store() as store:
        yield store


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FakeHost]:
    host = FakeHost("client-1", "127.0.0.1", tmp_path)
    yield host
    host.close()


def asked_of(
    store: MemoryStore,
    client: FakeHost,
    tmp_path: Path,
    *,
    check: Callable[[], None] = lambda: None,
    deadline_s: float = 60,
    capabilities: Sequence[Capability] = ASKED,
) -> tuple[Asked, list[str]]:
    asked, buckets = Asked(), list[str]()
    ask_all(
        client,
        store.endpoints,
        capabilities,
        asked,
        prefix=PREFIX,
        own=False,
        check=check,
        log=tmp_path / "asking.log",
        buckets=buckets,
        deadline_s=deadline_s,
    )
    return asked, buckets


def test_each_capability_is_asked_once_by_one_program_on_the_client(
    store: MemoryStore, client: FakeHost, tmp_path: Path
) -> None:
    asked, buckets = asked_of(store, client, tmp_path)
    assert {key: one.outcome for key, one in asked.answers.items()} == {
        one.key: "works" for one in ASKED
    }
    assert asked.died is None
    assert {*store.s3.buckets, *store.swift.buckets} <= set(buckets)
    assert (tmp_path / "asking.log").read_text() == ""


def test_a_daemon_that_dies_is_named_and_the_rest_is_not_asked(
    store: MemoryStore, client: FakeHost, tmp_path: Path
) -> None:
    dead = []

    def crash(request: Request, respond: Respond) -> Response:
        if dead or "x-amz-copy-source" in request.headers:
            dead.append(request)
            raise Closed
        return respond(request)

    def check() -> None:
        if dead:
            raise ServiceFailed(
                "gateway-1", "radosgw", "has ended", log="/logs/radosgw.out", tail=["SIGSEGV"]
            )

    store.server.between = crash
    asked, _ = asked_of(store, client, tmp_path, check=check)
    assert asked.answers["s3-delete"].outcome == "works"
    assert asked.answers["s3-copy"].outcome == "unknown"
    assert asked.answers["s3-copy"].text == "radosgw on gateway-1 had ended when this was asked"
    assert asked.answers["swift-put"].text == "not asked: radosgw on gateway-1 had ended"
    assert isinstance(asked.died, ServiceFailed)
    assert "/logs/radosgw.out" in str(asked.died)


def test_a_gateway_that_answers_nothing_any_more_ends_the_questions(
    store: MemoryStore, client: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_DIES_WITHIN_S", 0.1)

    def closing(request: Request, respond: Respond) -> Response:
        raise Closed

    store.server.between = closing
    asked, _ = asked_of(store, client, tmp_path)
    assert {one.outcome for one in asked.answers.values()} == {"unknown"}
    assert isinstance(asked.died, TargetError)
    assert "has not answered since s3-delete was asked" in str(asked.died)


def test_a_store_that_leaves_three_questions_unanswered_is_asked_no_more(
    store: MemoryStore, client: FakeHost, tmp_path: Path
) -> None:
    over = threading.Event()

    def silent(request: Request, respond: Respond) -> Response:
        if "authorization" in request.headers:
            over.wait()
        return respond(request)

    store.server.between = silent
    four = [one for one in CAPABILITIES.values() if one.api == "s3"][:4]
    try:
        asked, _ = asked_of(store, client, tmp_path, deadline_s=0.5, capabilities=four)
    finally:
        over.set()
    said = f"the s3 API did not answer 3 questions in a row, up to {four[2].key}"
    assert str(asked.died) == said
    assert asked.answers[four[3].key].text == f"not asked: {said}"


class Odd(FakeHost):
    """A host whose program is another one."""

    program = ""

    def module(self, name: str, *arguments: str) -> Command:
        return Command((sys.executable, "-c", self.program))


GOOD = {"key": "s3-delete", "answer": {"outcome": "works"}, "alive": True}
LOOP = "import sys\nsys.stdin.readline()\nfor line in sys.stdin:\n    print({!r}, flush=True)"


@pytest.mark.parametrize(
    "program",
    [
        "",
        "import sys; sys.exit(3)",
        LOOP.format("no JSON"),
        LOOP.format(json.dumps({**GOOD, "key": "s3-copy-replace"})),
        LOOP.format(json.dumps({**GOOD, "answer": {"outcome": "perfect"}})),
        LOOP.format("x").replace("'x'", "'x' * 2_000_000"),
        "import sys\nsys.stdin.read()",
    ],
)
def test_a_program_that_fails_or_babbles_makes_nothing_work(
    program: str, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_GRACE_S", 0.3)
    monkeypatch.setattr(asking, "ALIVE_WITHIN_S", 0.1)
    monkeypatch.setattr(Odd, "program", program)
    host = Odd("client-1", "127.0.0.1", tmp_path)
    try:
        asked, _ = asked_of(store, host, tmp_path, deadline_s=0.1)
    finally:
        host.close()
    assert {one.outcome for one in asked.answers.values()} == {"unknown"}
    assert len(asked.answers) == len(ASKED)


def test_what_may_end_a_gateway_is_asked_last() -> None:
    order = in_order(CAPABILITIES)
    assert [one.key for one in order if one.dangerous] == ["swift-formpost"]
    assert order[-1].key == "swift-formpost"


def test_every_capability_says_what_it_asks_in_one_line() -> None:
    for key, one in CAPABILITIES.items():
        assert key == one.key
        assert key.startswith(f"{one.api}-")
        for text in (one.title, one.asks, one.group):
            assert text.strip()
            assert "\n" not in text
    titles = [(one.api, one.group, one.title) for one in CAPABILITIES.values()]
    assert len(set(titles)) == len(titles)


def matrix(*answers: Answer) -> CapabilityMatrix:
    layouts = [
        LayoutAnswers(layout=f"layout-{n}", release="any-1", answers={"s3-delete": answer})
        for n, answer in enumerate(answers)
    ]
    return CapabilityMatrix(
        asked_at="2026-11-25T00:00:00+00:00",
        hardware="lab-cpu",
        weighbridge_version="1",
        layouts=tuple(layouts),
    )


def test_cells_say_how_it_ended_and_footnotes_why() -> None:
    wrong = Answer(outcome="wrong", status=200, text="ignored")
    found = matrix(
        Answer(outcome="works"),
        Answer(outcome="refused", status=501, code="NotImplemented"),
        wrong,
        wrong,
        Answer(outcome="unknown", text="no answer"),
    )
    cells = [cell(one.answers.get("s3-delete")) for one in found.layouts]
    assert cells == ["P", "– 501", "!", "!", "?"]
    assert cell(None) == "·"
    chosen: tuple[Capability, ...] = (CAPABILITIES["s3-delete"],)
    assert footnotes(found, chosen) == (
        "! s3-delete: layout-2, layout-3: 200: ignored",
        "? s3-delete: layout-4: no answer",
    )


def test_the_csv_file_has_a_line_for_each_answer_and_no_formula() -> None:
    found = matrix(Answer(outcome="wrong", status=200, text="=1+1"))
    lines = matrix_csv(found, (CAPABILITIES["s3-delete"],)).splitlines()
    assert lines[1] == "layout-0,any-1,s3-delete,s3,objects,DELETE,wrong,200,,'=1+1"


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [("crc32", 0xCBF43926), ("crc32c", 0xE3069283), ("crc64nvme", 0xAE8B14860A799888)],
)
def test_checksums_have_their_published_check_values(algorithm: str, value: int) -> None:
    raw = base64.b64decode(checksum(algorithm, b"123456789"))
    assert int.from_bytes(raw, "big") == value


REPLY: Final = {
    "key": "s3-delete",
    "answer": {"outcome": "refused", "status": 501, "code": "NotImplemented", "text": "not here"},
    "alive": True,
    "left": ["wb-0123abcd-capability-3: 403 AccessDenied"],
}


@cases
def test_any_line_is_a_reply_with_harmless_text_or_refused(dice: Dice) -> None:
    line = wrong_json(dice, REPLY)
    with bounded():
        try:
            reply = reply_of(line, "s3-delete")
        except NoReply:
            return
    assert reply.key == "s3-delete"
    assert reply.answer.why.isprintable()
    assert len(reply.answer.why) < 300
