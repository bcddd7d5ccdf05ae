"""The life of a user class: its target, its objects, and its load in each test."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Literal
from urllib.parse import urlsplit

import gevent
from locust import User
from locust.env import Environment
from locust.runners import WorkerRunner
from pydantic import ValidationError

from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.drivers.locust.live_load import LiveLoad, MadeObjects, refuse_unfit
from weighbridge.drivers.locust.worker_process import WorkerProcess
from weighbridge.drivers.protocol import Setup
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.settings import S3, ExistingSettings, SwiftAccess
from weighbridge.suites import Suite, Workload, loader


class Replay(Record):
    """What users do: a workload over an API."""

    api: ObjectApi
    workload: Workload
    seed: int = 2014
    request_timeout_s: float = 60.0


def make_workload(name: str, **keys: Any) -> Workload:
    """A workload with the keys that it has in a suite's file: `objects={"size": "64kB",
    "per_container": 1000}, operations={"read": 80, "write": 20}`.

    `workers`, `runtime` and `warmup` are Locust's own affair. Raises ValidationError.
    """
    return Workload.model_validate({"workers": [1], "runtime": 1.0, **keys, "name": name})


def suite_workload(suite: str, workload: str | None = None) -> Workload:
    """A workload of a suite, by path or shipped name; None: its first. Raises UsageError."""
    return workload_of(loader.load(loader.find(suite)), workload)


def workload_of(suite: Suite, name: str | None) -> Workload:
    """A suite's workload of this name; None: its first. Raises UsageError if there is none."""
    found = [one for one in suite.workloads if name in (None, one.name)]
    if not found:
        names = ", ".join(one.name for one in suite.workloads)
        raise UsageError(f"{suite.name} has no workload {name!r}", advice=f"It has {names}.")
    return found[0]


AUTH_PATH: Final = "/auth/v1.0"
"""Of Swift's auth, where a host is given without a path."""


class ObjectStoreUser(User):
    """A user of an object store: what is made and read for a test, whoever makes the requests."""

    abstract = True
    users: ClassVar[Literal["engine", "sdk"]] = "engine"
    api: ClassVar[ObjectApi]
    workload: ClassVar[Workload]
    seed: ClassVar[int] = 2014
    """Requests and contents are drawn from it."""
    request_timeout_s: ClassVar[float] = 60.0
    region: ClassVar[str | None] = None
    """Of S3: that requests are signed for."""
    addressing: ClassVar[Literal["path", "virtual"] | None] = None
    """Of S3: whether the bucket is in the path or before the host name."""
    ca_file: ClassVar[str | None] = None
    """PEM file of the CA that signed the target's certificate; None: this machine's CAs."""

    process: ClassVar[WorkerProcess | None] = None
    load: ClassVar[LiveLoad | None] = None
    ended: ClassVar[tuple[LiveLoad, ...]] = ()
    made: ClassVar[tuple[MadeObjects, ...]] = ()
    starting: ClassVar[gevent.Greenlet | None] = None
    """Which makes objects for a test, or begins its load."""
    over: ClassVar[bool] = False
    """Whether Locust is ending: nothing more may be made."""
    auth_urls: ClassVar[frozenset[str]] = frozenset()
    """Where this process was told, by its own start, to send Swift's key."""

    @classmethod
    def replay(cls, options: argparse.Namespace) -> Replay:
        """What its users do in the test that starts with these options. Raises UsageError."""
        if not isinstance(getattr(cls, "workload", None), Workload):
            raise UsageError(
                f"{cls.__name__} has no workload",
                advice="Set `workload = make_workload(...)` or `suite_workload(...)`.",
            )
        return Replay(
            api=cls.api,
            workload=cls.workload,
            seed=cls.seed,
            request_timeout_s=cls.request_timeout_s,
        )

    @classmethod
    def setup(cls, environment: Environment, replay: Replay) -> Setup:
        """The target with its keys, and the names of buckets. Raises UsageError."""
        options = environment_options(environment)
        refuse_unfit(replay.workload, replay.api, cls.users)
        try:
            return Setup(
                target=cls._endpoint(replay.api, environment.host or cls.host or ""),
                users=cls.users,
                processes=min(64, max(1, getattr(options, "processes", None) or 1)),
                bucket_prefix=options.bucket_prefix,
                seed=replay.seed,
                request_timeout_s=replay.request_timeout_s,
            )
        except ValidationError as error:
            # Values are not repeated: a URL may contain a password.
            fault = error.errors(include_input=False)[0]
            place = ".".join(map(str, fault["loc"]))
            raise UsageError(f"{cls.__name__}: {place}: {fault['msg']}") from None

    @classmethod
    def _endpoint(cls, api: ObjectApi, host: str) -> Endpoint:
        if api == "swift":
            return cls._swift(auth_url(host) if host else os.environ.get("ST_AUTH", ""))
        if not host:
            raise UsageError(f"{cls.__name__} has no host", advice="Give `-H URL`.")
        s3 = S3(url=host, region=cls.region, addressing=cls.addressing, ca_file=cls.ca_file)
        (endpoint,) = credentials.endpoints(ExistingSettings(s3=s3), os.environ)
        return endpoint

    @classmethod
    def _swift(cls, url: str) -> Endpoint:
        # The key is sent as it is. Locust's page and its master may name any host.
        if url not in {*cls.auth_urls, os.environ.get("ST_AUTH")}:
            raise UsageError(
                f"{cls.__name__}: Swift's key is sent only to the URL that this process was "
                "started with",
                advice="Set $ST_AUTH to the auth URL, or give it as `-H` or as the class's `host`.",
            )
        access = SwiftAccess(auth_url=url, ca_file=cls.ca_file)
        (endpoint,) = credentials.endpoints(ExistingSettings(swift=access), os.environ)
        return endpoint

    @classmethod
    @contextmanager
    def startup(cls) -> Iterator[None]:
        """While a test starts: the end of Locust interrupts it."""
        if cls.over:
            raise gevent.GreenletExit
        cls.starting = gevent.getcurrent()
        try:
            yield
        finally:
            cls.starting = None

    @classmethod
    def prepare(cls, environment: Environment) -> None:
        """Have the objects of the next test made. Raises UsageError or DriverError."""
        replay = cls.replay(environment_options(environment))
        setup = cls.setup(environment, replay)
        known = [one for one in cls.made if one.setup == setup]
        if not known:
            known = [MadeObjects(setup)]
            cls.made = (*cls.made, *known)
        known[0].prepare(replay.workload)

    @classmethod
    def begin(cls, environment: Environment) -> None:
        """Be ready for the users of a test. Raises UsageError or DriverError."""
        replay = cls.replay(environment_options(environment))
        setup = cls.setup(environment, replay)
        runner = environment.runner
        rank = runner.worker_index if isinstance(runner, WorkerRunner) else 0
        cls.load = LiveLoad(
            environment.stats, setup, replay.workload, rank=max(0, rank), repeat=len(cls.ended)
        )
        cls.process = cls.load.process

    @classmethod
    def end(cls, patience_s: float) -> None:
        """End the load of a test, if there is one. Raises DriverError."""
        load, cls.load, cls.process = cls.load, None, None
        if load is not None:
            cls.ended = (*cls.ended, load)
            load.close(patience_s)
        for one in cls.made:
            one.test_ended()

    @classmethod
    def start_no_more(cls) -> None:
        """Interrupt a test that starts, and let no other one start."""
        cls.over = True
        if cls.starting is not None:
            cls.starting.kill()

    @classmethod
    def delete(cls) -> None:
        """Delete what tests wrote and what was made for them. Raises DriverError."""
        ended, cls.ended = cls.ended, ()
        for load in ended:
            load.delete_written()
        for one in cls.made:
            one.delete()


def environment_options(environment: Environment) -> argparse.Namespace:
    """Locust's options; none where Locust is used as a library."""
    return environment.parsed_options or argparse.Namespace()


def auth_url(host: str) -> str:
    """Swift's auth URL of a host as Locust's page has it."""
    return host.rstrip("/") + AUTH_PATH if urlsplit(host).path in ("", "/") else host
