"""The conductor's side: a program on a host that answers line by line, and gateways that die."""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from http_stub import Closed, Request, Respond, Response
from tests.gateways.capabilities.memory_store import PREFIX, MemoryStore, memory_store
from tests.mutation import Dice, bounded, cases, wrong_json
from weighbridge.common.errors import ServiceFailed, TargetError
from weighbridge.common.host import Command
from weighbridge.common.program_lines import NoLine
from weighbridge.gateways.capabilities import asking
from weighbridge.gateways.capabilities.asking import CAPABILITIES, Asked, ask_all, reply_of
from weighbridge.gateways.capabilities.capability import (
    Answer,
    CapabilityMatrix,
    LayoutAnswers,
    cell,
    footnotes,
    matrix_csv,
)
from weighbridge.gateways.capabilities.session import checksum
from weighbridge.topologies.fake import FakeHost

ASKED = ("s3-delete", "s3-copy", "swift-put")
DELETE = (CAPABILITIES["s3-delete"],)


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with memory_store() as store:
        yield store


class Odd(FakeHost):
    """A host whose program may be another one."""

    program = ""

    def module(self, name: str, *arguments: str) -> Command:
        if not self.program:
            return super().module(name, *arguments)
        return Command((sys.executable, "-c", self.program))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Odd]:
    host = Odd("client-1", "127.0.0.1", tmp_path)
    yield host
    host.close()


def asked_of(
    store: MemoryStore,
    client: FakeHost,
    tmp_path: Path,
    *,
    check: Callable[[], None] = lambda: None,
    deadline_s: float = 60,
    keys: tuple[str, ...] = ASKED,
) -> Asked:
    asked, buckets = Asked(), list[str]()
    ask_all(
        client,
        store.endpoints,
        [CAPABILITIES[key] for key in keys],
        asked,
        prefix=PREFIX,
        own=False,
        check=check,
        log=tmp_path / "asking.log",
        buckets=buckets,
        deadline_s=deadline_s,
    )
    assert {*store.s3.buckets, *store.swift.buckets} <= set(buckets)
    assert asked.answers.keys() == set(keys)
    return asked


def test_each_capability_is_asked_once_by_one_program_on_the_client(
    store: MemoryStore, client: Odd, tmp_path: Path
) -> None:
    asked = asked_of(store, client, tmp_path)
    assert {answer.outcome for answer in asked.answers.values()} == {"works"}
    assert asked.died is None
    assert (tmp_path / "asking.log").read_text() == ""


def test_a_daemon_that_dies_is_named_and_the_rest_is_not_asked(
    store: MemoryStore, client: Odd, tmp_path: Path
) -> None:
    dead = []

    def crash(request: Request, respond: Respond) -> Response:
        if dead or "x-amz-copy-source" in request.headers:
            dead.append(request)
            raise Closed
        return respond(request)

    def check() -> None:
        if dead:
            log = "/logs/radosgw.out"
            raise ServiceFailed("gateway-1", "radosgw", "has ended", log=log, tail=["SIGSEGV"])

    store.server.between = crash
    asked = asked_of(store, client, tmp_path, check=check)
    assert [(asked.answers[key].outcome, asked.answers[key].text) for key in ASKED] == [
        ("works", ""),
        ("unknown", "radosgw on gateway-1 had ended when this was asked"),
        ("unknown", "not asked: radosgw on gateway-1 had ended"),
    ]
    assert isinstance(asked.died, ServiceFailed)
    assert "/logs/radosgw.out" in str(asked.died)


def test_a_gateway_that_answers_nothing_any_more_ends_the_questions(
    store: MemoryStore, client: Odd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_DIES_WITHIN_S", 0.1)

    def closing(request: Request, respond: Respond) -> Response:
        raise Closed

    store.server.between = closing
    asked = asked_of(store, client, tmp_path)
    assert {answer.outcome for answer in asked.answers.values()} == {"unknown"}
    assert isinstance(asked.died, TargetError)
    assert "has not answered since s3-delete was asked" in str(asked.died)


def test_a_store_that_leaves_three_questions_unanswered_is_asked_no_more(
    store: MemoryStore, client: Odd, tmp_path: Path
) -> None:
    over = threading.Event()

    def silent(request: Request, respond: Respond) -> Response:
        if "authorization" in request.headers:
            over.wait()
        return respond(request)

    store.server.between = silent
    keys = tuple(CAPABILITIES)[:4]
    try:
        asked = asked_of(store, client, tmp_path, deadline_s=0.5, keys=keys)
    finally:
        over.set()
    said = f"the s3 API did not answer 3 questions in a row, up to {keys[2]}"
    assert str(asked.died) == said
    assert asked.answers[keys[3]].text == f"not asked: {said}"


GOOD = {"key": "s3-delete", "answer": {"outcome": "works"}, "alive": True}
LOOP = "import sys\nsys.stdin.readline()\nfor line in sys.stdin:\n    print({!r}, flush=True)"


@pytest.mark.parametrize(
    "program",
    [
        "pass",
        "import sys; sys.exit(3)",
        LOOP.format("no JSON"),
        LOOP.format(json.dumps({**GOOD, "key": "s3-copy-replace"})),
        LOOP.format(json.dumps({**GOOD, "answer": {"outcome": "perfect"}})),
        LOOP.format("x").replace("'x'", "'x' * 2_000_000"),
        "import sys\nsys.stdin.read()",
    ],
)
@pytest.mark.long
def test_a_program_that_fails_or_babbles_makes_nothing_work(
    program: str, store: MemoryStore, client: Odd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_GRACE_S", 0.3)
    monkeypatch.setattr(asking, "ALIVE_WITHIN_S", 0.1)
    client.program = program
    asked = asked_of(store, client, tmp_path, deadline_s=0.1)
    assert {answer.outcome for answer in asked.answers.values()} == {"unknown"}


def test_what_may_end_a_gateway_is_asked_last() -> None:
    order = asking.in_order(CAPABILITIES)
    assert [each.key for each in order if each.dangerous] == ["swift-formpost"]
    assert order[-1].key == "swift-formpost"


def test_every_capability_says_what_it_asks_in_one_line() -> None:
    for key, capability in CAPABILITIES.items():
        assert key == capability.key
        assert key.startswith(f"{capability.api}-")
        for text in (capability.title, capability.asks, capability.group):
            assert text.strip()
            assert "\n" not in text
    titles = {(each.api, each.group, each.title) for each in CAPABILITIES.values()}
    assert len(titles) == len(CAPABILITIES)


def matrix(*answers: Answer) -> CapabilityMatrix:
    layouts = tuple(
        LayoutAnswers(layout=f"layout-{n}", release="any-1", answers={"s3-delete": answer})
        for n, answer in enumerate(answers)
    )
    at = "2026-11-25T00:00:00+00:00"
    return CapabilityMatrix(
        asked_at=at, hardware="lab-cpu", weighbridge_version="1", layouts=layouts
    )


def test_cells_say_how_it_ended_and_footnotes_why() -> None:
    ignored = Answer(outcome="wrong", status=200, text="ignored")
    answers = (
        Answer(outcome="works"),
        Answer(outcome="refused", status=501, code="NotImplemented"),
        *(ignored, ignored),
        Answer(outcome="unknown", text="no answer"),
    )
    assert [cell(each) for each in (*answers, None)] == ["P", "– 501", "!", "!", "?", "·"]
    assert footnotes(matrix(*answers), DELETE) == (
        "! s3-delete: layout-2, layout-3: 200: ignored",
        "? s3-delete: layout-4: no answer",
    )


def test_the_csv_file_has_a_line_for_each_answer_and_no_formula() -> None:
    text = matrix_csv(matrix(Answer(outcome="wrong", status=200, text="=1+1")), DELETE)
    assert text.splitlines()[1:] == ["layout-0,any-1,s3-delete,s3,objects,DELETE,wrong,200,,'=1+1"]


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [("crc32", 0xCBF43926), ("crc32c", 0xE3069283), ("crc64nvme", 0xAE8B14860A799888)],
)
def test_checksums_have_their_published_check_values(algorithm: str, value: int) -> None:
    raw = base64.b64decode(checksum(algorithm, b"123456789"))
    assert int.from_bytes(raw, "big") == value


REFUSED = {"outcome": "refused", "status": 501, "code": "NotImplemented", "text": "not here"}


@cases
def test_any_line_is_a_reply_with_harmless_text_or_refused(dice: Dice) -> None:
    left = ["wb-0123abcd-capability-3: 403 AccessDenied"]
    line = wrong_json(dice, {**GOOD, "answer": REFUSED, "left": left})
    with bounded():
        try:
            reply = reply_of(line, "s3-delete")
        except NoLine:
            return
    assert reply.key == "s3-delete"
    assert reply.answer.why.isprintable()
    assert len(reply.answer.why) < 300
