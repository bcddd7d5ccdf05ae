"""A driver's last event when a library raised an unexpected exception: its text without keys."""

from __future__ import annotations

import queue
from typing import Any

import gevent.queue
import pytest
from pydantic import SecretStr

import weighbridge.drivers.cosbench.loop
import weighbridge.drivers.locust.loop
from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.cosbench.bench import StopRequest
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.protocol import Event, Failed, Setup

TARGET = Endpoint(
    api="s3",
    url="http://127.0.0.1:9",
    user="u",
    key=SecretStr("planted-key"),
    token=SecretStr("planted/token"),
)
SITE = CosbenchSite(
    controller="http://127.0.0.1:9", archive="/nowhere", password=SecretStr("planted-password")
)
SETUP = Setup(target=TARGET, bucket_prefix="wb-x", seed=1)


def raises(*_: Any) -> None:
    raise ValueError("Invalid header value b'planted-key' of planted%2Ftoken")


def raises_more(*_: Any) -> None:
    raise ValueError("Invalid header value b'planted-key' of planted%2Ftoken by 'planted-password'")


def by_locust(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(weighbridge.drivers.locust.loop, "PreparedObjects", raises)
    inbox = gevent.queue.Queue()
    inbox.put(SETUP.model_dump_json().encode())
    return weighbridge.drivers.locust.loop.LocustLoop(inbox, events.append).run()


def by_cosbench(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(weighbridge.drivers.cosbench.loop, "Cosbench", raises_more)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    inbox.put(CosbenchSetup(**dict(SETUP), site=SITE).model_dump_json().encode())
    return weighbridge.drivers.cosbench.loop.CosbenchLoop(inbox, events.append, StopRequest()).run()


@pytest.mark.parametrize("driven", [by_locust, by_cosbench])
def test_a_librarys_message_is_reported_without_keys(
    driven: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Event] = []
    assert driven(events, monkeypatch) == 3
    (failed,) = events
    assert isinstance(failed, Failed)
    assert failed.message.startswith("ValueError: Invalid header value")
    assert "Traceback" in caplog.text
    assert "planted" not in failed.message + caplog.text
