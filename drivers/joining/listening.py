"""The run's side: a port at which clients join, from before the first driver starts to the end.

What arrives is from anybody: ZeroMQ ends connections without the token in their handshake, and
those that say nothing after a few seconds.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import threading
import time
from collections.abc import Callable, Collection
from typing import Final, Self

import zmq
from pydantic import ValidationError
from zmq.utils.monitor import recv_monitor_message

from weighbridge.common.errors import DriverError, UsageError
from weighbridge.drivers.joining.clients import JoinedClient
from weighbridge.drivers.joining.messages import (
    BEAT_S,
    FROM_CLIENT,
    LARGEST_BYTES,
    Alive,
    Ended,
    FromClient,
    FromRun,
    Greeting,
    Leaving,
    Over,
    Refusal,
    Versions,
    Welcome,
    refusal_of,
)
from weighbridge.drivers.joining.settings import JoinSettings
from weighbridge.drivers.joining.token import Token

LOST_S: Final = 3.0
"""A client that says nothing for so long is lost."""
OVER_S: Final = 2.0
"""For clients to end with the run; those that take longer end all the same."""
HANDSHAKE_MS: Final = 3000
"""A connection without a handshake ends after so long."""
OPEN_FILES: Final = 65536
"""Connections of strangers must not use up this process's descriptors."""
AT_ONCE: Final = 1000
"""So many messages, and refused connections, are taken before anything else is done."""
AGAIN_S: Final = 10.0
"""Refused connections are said at most so often."""
_FAILED: Final = (
    zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    | zmq.Event.HANDSHAKE_FAILED_AUTH
    | zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
)

Say = Callable[[str], None]


class JoinPort:
    """A context manager that lets clients join while it is open; at its end they are told so.

    `taken` are names of other clients; `say` prints a line, from any thread. Entering raises
    UsageError, leaving it the OSError of a line or log that could not be written: for that no
    client is given up.
    """

    def __init__(
        self, settings: JoinSettings, token: Token, taken: Collection[str], say: Say
    ) -> None:
        self._settings = settings
        self._token = token
        self._taken = frozenset(taken)
        self._say = say
        self._unwritten: OSError | None = None
        self._versions = Versions.here()
        self._outbox: queue.SimpleQueue[tuple[bytes, FromRun]] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._members: dict[bytes, _Member] = {}
        self._ending = self._closed = False
        self._broken = ""
        self._patience_s = settings.wait_s
        self._strangers = _Strangers(settings.place, self._tell)
        self._thread = threading.Thread(target=self._run, name="join", daemon=True)

    def __enter__(self) -> Self:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.ipv6 = ":" in self._settings.address
        self._router.handshake_ivl = HANDSHAKE_MS
        self._router.maxmsgsize = LARGEST_BYTES
        self._router.curve_server = True
        keys = self._token.keys
        self._router.curve_secretkey, self._router.curve_publickey = keys.secret, keys.public
        self._monitor: zmq.Socket[bytes] = self._router.get_monitor_socket(_FAILED)
        advice = "Choose another address of this machine: --clients-join ADDRESS:PORT=N."
        try:
            self._router.bind(f"tcp://{self._settings.place}")
            self._settings.check_locusts_port()
        except zmq.ZMQError as error:
            self._close()
            what = f"clients cannot join at {self._settings.place}: {error.strerror}"
            raise UsageError(what, advice=advice) from None
        except OSError as error:
            self._close()
            what = (
                f"worker processes of clients cannot connect to port {self._settings.locusts_port} "
                f"of {self._settings.address}, the port after the one for joining: "
                f"{error.strerror}"
            )
            raise UsageError(what, advice=advice) from None
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ending = True
        self._awake()
        self._thread.join()
        self._close()
        if kind is None and self._unwritten is not None:
            raise self._unwritten

    def gathered(self) -> tuple[JoinedClient, ...]:
        """All clients, by name; waits for them. After a wait in vain there is none until all have
        been there.

        Raises DriverError if some are missing, OSError as leaving does.
        """
        wanted = self._settings.clients
        deadline_s = time.monotonic() + self._patience_s
        with self._changed:
            if self._missing():
                self._say(
                    f"waiting for {self._missing()} of {wanted} clients to join; on each of them, "
                    f"with a copy of {self._settings.token_file}:\n  {self._settings.line}"
                )
            while self._missing() and not self._broken and self._unwritten is None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    waited_s, self._patience_s = self._patience_s, 0.0
                    raise DriverError(
                        f"{self._missing()} of {wanted} clients have not joined at "
                        f"{self._settings.place} within {waited_s:g} s",
                        advice=f"Run on each of them: {self._settings.line}",
                    )
                # Not for long: a signal's exception comes between two waits.
                self._changed.wait(min(left_s, 0.5))
            if self._broken:
                raise DriverError(self._broken)
            if self._unwritten is not None:
                raise self._unwritten
            self._patience_s = self._settings.wait_s
            found = [one.client for one in self._members.values()]
            return tuple(sorted(found, key=lambda one: one.name))

    def _missing(self) -> int:
        return self._settings.clients - len(self._members)

    def _awake(self) -> None:
        if not self._closed:
            os.eventfd_write(self._wake, 1)

    def _close(self) -> None:
        self._router.disable_monitor()
        self._monitor.close(linger=0)
        # What was said last, and above all that the run is over, is still sent.
        self._router.close(linger=1000)
        self._context.term()
        # A program that is forgotten closes its stdin whenever it is collected.
        self._closed = True
        os.close(self._wake)

    # ---- the thread that has the sockets

    def _tell(self, text: str) -> None:
        """Print a line. The output may be full, or closed: that ends the run, in its own thread."""
        try:
            self._say(text)
        except OSError as error:
            self._lacks(error)

    def _lacks(self, error: OSError) -> None:
        """Remember the first thing that could not be written."""
        with self._changed:
            self._unwritten = self._unwritten or error
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must not wait for its clients
            with self._changed:
                self._broken = f"clients can no longer join: {type(error).__name__}: {error}"
                for one in self._members.values():
                    one.client.lose()
                self._changed.notify_all()

    def _serve(self) -> None:
        poller = zmq.Poller()
        for one in (self._router, self._monitor, self._wake):
            poller.register(one, zmq.POLLIN)
        beat_s = looked_s = time.monotonic()
        while not self._ending:
            poller.poll(round(BEAT_S * 1000))
            self._take_all()
            for _ in range(AT_ONCE):
                if not self._monitor.poll(0):
                    break
                recv_monitor_message(self._monitor)
                self._strangers.add()
            now_s = time.monotonic()
            # While this process is not scheduled, no more than a second counts.
            self._age(min(now_s - looked_s, 1.0))
            looked_s = now_s
            if now_s - beat_s >= BEAT_S:
                beat_s = now_s
                for identity in self._members:
                    self._outbox.put((identity, Alive()))
                self._strangers.report()
            self._send_all()
        for identity in self._members:
            self._outbox.put((identity, Over()))
        self._send_all()
        # If this side closed first, what it sent last could be lost with what it did not read.
        deadline_s = time.monotonic() + OVER_S
        while self._members and time.monotonic() < deadline_s:
            poller.poll(round(BEAT_S * 1000))
            self._take_all()

    def _take_all(self) -> None:
        with contextlib.suppress(BlockingIOError):  # nobody has woken it
            os.eventfd_read(self._wake)
        for _ in range(AT_ONCE):
            if not self._router.poll(0):
                break
            identity, *rest = self._router.recv_multipart()
            self._take(identity, rest[0] if rest else b"")

    def _send_all(self) -> None:
        while not self._outbox.empty():
            identity, message = self._outbox.get_nowait()
            # To one that is gone it is dropped.
            self._router.send_multipart([identity, message.model_dump_json().encode()], zmq.NOBLOCK)

    def _age(self, passed_s: float) -> None:
        for identity, member in list(self._members.items()):
            member.silent_s += passed_s
            if member.silent_s > LOST_S:
                self._lose(identity, f"was silent for {LOST_S:g} s and counts as lost")

    def _take(self, identity: bytes, data: bytes) -> None:
        member = self._members.get(identity)
        try:
            message: FromClient = FROM_CLIENT.validate_json(data)
        except ValidationError:
            what = f"it sends what the run cannot read; the run has {self._versions.words}"
            if member is None:
                self._refuse(identity, "a client", what)
            else:
                self._lose(identity, f"is refused: {what}")
                self._outbox.put((identity, Refusal(reason=what)))
            return
        if isinstance(message, Greeting):
            self._greeted(identity, message)
        elif member is None:
            self._outbox.put((identity, Refusal(reason="it has not joined, or is lost")))
        else:
            member.silent_s = 0.0
            if isinstance(message, Ended):
                member.client.ended(message.program, message.code, message.tail)
            elif isinstance(message, Leaving):
                self._lose(identity, "leaves")

    def _greeted(self, identity: bytes, greeting: Greeting) -> None:
        reason = refusal_of(greeting.versions, self._versions)
        if not reason and identity in self._members:
            reason = "it has joined already"
        names = {*self._taken, *(one.client.name for one in self._members.values())}
        if not reason and greeting.name in names:
            reason = "another client has this name: give another by --name"
        if not reason and not self._missing():
            reason = f"all {self._settings.clients} clients have joined"
        if reason:
            self._refuse(identity, greeting.name, reason)
            return

        def send(message: FromRun) -> None:
            self._outbox.put((identity, message))
            self._awake()

        client = JoinedClient(greeting, send, self._settings.address, self._lacks)
        with self._changed:
            self._members[identity] = _Member(client)
            there, wanted = len(self._members), self._settings.clients
            self._changed.notify_all()
        self._outbox.put((identity, Welcome(joined=there, expected=wanted)))
        self._tell(f"{client.name} has joined: {there} of {wanted} clients")

    def _refuse(self, identity: bytes, name: str, reason: str) -> None:
        self._outbox.put((identity, Refusal(reason=reason)))
        self._strangers.refused(f"{name} may not join: {reason}")

    def _lose(self, identity: bytes, how: str) -> None:
        with self._changed:
            client = self._members.pop(identity).client
            client.lose()
            self._changed.notify_all()
        if not self._ending:
            self._tell(f"{client.name}, which had joined, {how}")


class _Member:
    """A client and for how long it has said nothing."""

    def __init__(self, client: JoinedClient) -> None:
        self.client = client
        self.silent_s = 0.0


class _Strangers:
    """Says who was refused, but not each of a thousand."""

    def __init__(self, place: str, say: Say) -> None:
        self._place = place
        self._say = say
        self._count = 0
        self._said_s = -AGAIN_S
        self._refused_s: dict[str, float] = {}

    def add(self) -> None:
        """A connection had no handshake with this run's token."""
        self._count += 1

    def report(self) -> None:
        """Say how many there were, unless that was said a moment ago."""
        now_s = time.monotonic()
        if self._count and now_s - self._said_s >= AGAIN_S:
            many = "a connection" if self._count == 1 else f"{self._count} connections"
            self._say(f"refused {many} to {self._place} without the token of this run")
            self._count, self._said_s = 0, now_s

    def refused(self, words: str) -> None:
        """Say why a client was refused, once in a while."""
        now_s = time.monotonic()
        self._refused_s = {
            one: at_s for one, at_s in self._refused_s.items() if now_s - at_s < AGAIN_S
        }
        if words not in self._refused_s and len(self._refused_s) < 10:
            self._refused_s[words] = now_s
            self._say(words)
