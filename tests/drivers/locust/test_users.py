"""Users of SDKs as Locust starts and stops them."""

from __future__ import annotations

import subprocess
import sys

STOPPED = """
import gevent
from types import SimpleNamespace
from gevent.pool import Group
from locust.env import Environment
from weighbridge.drivers.locust.sdk import Outcome
from weighbridge.drivers.locust.users import SdkWorkerUser

begun, ended = [], []

def request(index):
    begun.append(index)
    gevent.sleep(0)
    gevent.sleep(0)
    ended.append(index)
    return Outcome("read", 1.0)

sdk = SimpleNamespace(
    request=request, wait_s=lambda index: 0.0, workload=SimpleNamespace(name="tried")
)
SdkWorkerUser.process = SimpleNamespace(
    sdk=sdk, user_joins=lambda: 0, user_leaves=lambda index: None
)
for turns in range(60):  # At turn 0 the user has not begun.
    users, user = Group(), SdkWorkerUser(Environment())
    user.start(users)
    for _ in range(turns):
        gevent.sleep(0)
    user.stop()
    users.join(5)
    users.kill()
assert len(begun) > 60
print(len(begun) - len(ended))
"""


def test_no_user_that_is_stopped_between_requests_is_killed_in_its_next_one() -> None:
    """At whichever turn of the event loop."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "0\n", done.stdout + done.stderr
