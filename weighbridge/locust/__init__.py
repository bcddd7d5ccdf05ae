"""Users of object stores for any locustfile, run by plain `locust -f` (docs/locust.md):

    from weighbridge.locust import S3User, make_workload

    class Reads(S3User):
        host = "http://gateway:8080"
        workload = make_workload("reads", objects={"size": "64kB"}, operations={"read": 1})

Each user of Locust is one worker: a connection with one request outstanding, made by the native
engine. A workload's buckets and objects are made before a test, and deleted when Locust ends. Keys
come from each process's own environment or AWS files, never from Locust's options: Locust shows
those in its page, and sends them to whoever connects to its master.
"""

from locust import events

from weighbridge.drivers.locust.users import SdkWorkerUser, WorkerUser
from weighbridge.locust import listeners
from weighbridge.locust.object_store_user import (
    ObjectStoreUser,
    Replay,
    make_workload,
    suite_workload,
    workload_of,
)

__all__ = [
    "Boto3User",
    "EngineUser",
    "Replay",
    "S3User",
    "SdkUser",
    "SwiftUser",
    "SwiftclientUser",
    "make_workload",
    "suite_workload",
    "workload_of",
]


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


# Here, and not when Locust says `init`: listeners of the locustfile itself come later, and find
# statistics that are complete.
events.init_command_line_parser.add_listener(listeners.add_options)
events.init.add_listener(listeners.init)
events.test_start.add_listener(listeners.begin)
events.test_stop.add_listener(listeners.end)
events.quitting.add_listener(listeners.quit_all)
