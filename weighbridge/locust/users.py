"""Users for locustfiles: of the native engine, and of SDKs."""

from __future__ import annotations

from locust import constant, task
from locust.env import Environment
from locust.exception import StopUser

from weighbridge.drivers.locust.live_load import LiveLoad
from weighbridge.drivers.locust.sdk_load import SdkLoad, SdkWorker
from weighbridge.drivers.locust.users import WorkerUser
from weighbridge.drivers.protocol import Setup
from weighbridge.locust.object_store_user import ObjectStoreUser
from weighbridge.suites import Workload


class EngineUser(ObjectStoreUser, WorkerUser):
    """A worker of the native engine."""

    abstract = True

    @classmethod
    def loaded(
        cls, environment: Environment, setup: Setup, workload: Workload, rank: int
    ) -> LiveLoad:
        """See ObjectStoreUser."""
        load = LiveLoad(environment.stats, setup, workload, rank=rank, repeat=len(cls.ended))
        cls.process = load.process
        return load

    @classmethod
    def end(cls, patience_s: float) -> None:
        """See ObjectStoreUser."""
        cls.process = None
        super().end(patience_s)


class SdkUser(ObjectStoreUser):
    """A user that makes its requests by an SDK, each as a task: a Python application's view."""

    abstract = True
    users = "sdk"
    wait_time = constant(0)
    worker: SdkWorker | None = None

    @classmethod
    def loaded(
        cls, environment: Environment, setup: Setup, workload: Workload, rank: int
    ) -> SdkLoad:
        """See ObjectStoreUser."""
        return SdkLoad(setup, workload, rank=rank, repeat=len(cls.ended))

    def on_start(self) -> None:
        """Have a client, unless there is no load."""
        if isinstance(self.load, SdkLoad):
            self.worker = self.load.worker()

    @task
    def request(self) -> None:
        """Make the worker's next request. Raises StopUser where there is no load."""
        if self.worker is None or not isinstance(self.load, SdkLoad):
            raise StopUser
        done = self.worker.request()
        self.environment.events.request.fire(
            request_type=done.operation,
            name=self.load.workload.name,
            response_time=done.latency_ms,
            response_length=done.moved_bytes,
            exception=done.error,
            context=self.context(),
        )


class S3User(EngineUser):
    """A worker over S3. Keys: $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY, or the AWS files."""

    abstract = True
    api = "s3"


class SwiftUser(EngineUser):
    """A worker over Swift's API. `host` is the auth URL; $ST_USER and $ST_KEY are its user's."""

    abstract = True
    api = "swift"


class Boto3User(SdkUser):
    """The same over S3 by boto3."""

    abstract = True
    api = "s3"


class SwiftclientUser(SdkUser):
    """The same over Swift's API by python-swiftclient."""

    abstract = True
    api = "swift"
