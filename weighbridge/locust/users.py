from __future__ import annotations

from weighbridge.drivers.locust.users import SdkWorkerUser, WorkerUser
from weighbridge.locust.object_store_user import ObjectStoreUser


class EngineUser(ObjectStoreUser, WorkerUser):
    """A worker of the native engine."""

    abstract = True


class SdkUser(ObjectStoreUser, SdkWorkerUser):
    """A user that makes its requests by an SDK, each as a task: a Python application's view."""

    abstract = True
    users = "sdk"


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
