"""What Locust's events mean for users of object stores."""

from __future__ import annotations

import logging
import secrets
from typing import Any, Final

import gevent
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from weighbridge.common.errors import WeighbridgeError
from weighbridge.locust.object_store_user import ObjectStoreUser, auth_url, environment_options

FAILED: Final = "weighbridge-failed"
"""The message of a worker process that cannot make its load."""

log = logging.getLogger(__name__)


def _kinds(environment: Environment) -> list[type[ObjectStoreUser]]:
    return [one for one in environment.user_classes if issubclass(one, ObjectStoreUser)]


def add_options(parser: Any) -> None:
    """Add what is no secret to Locust's options."""
    parser.add_argument(
        "--bucket-prefix",
        help=(
            "Buckets are PREFIX-WORKLOAD-NUMBER; by default PREFIX is new in each run. All that "
            "is in them is deleted at the end."
        ),
        include_in_web_ui=False,
    )
    parser.add_argument(
        "--keep-objects",
        action="store_true",
        default=False,
        help="Do not delete buckets and objects when Locust ends.",
        include_in_web_ui=False,
    )


def init(environment: Environment, **_: Any) -> None:
    """Locust knows its options. Without a page, make all objects now: before the clock of
    `--run-time` starts. Raises SystemExit where that fails.
    """
    options, runner = environment_options(environment), environment.runner
    for kind in _kinds(environment):
        told = {one for one in (kind.host, environment.host) if one}
        kind.auth_urls = frozenset(map(auth_url, told))
    if isinstance(runner, WorkerRunner):
        return
    if not options.bucket_prefix:
        options.bucket_prefix = f"wb-{secrets.token_hex(4)}"
    if isinstance(runner, MasterRunner):
        runner.register_message(FAILED, _worker_failed)
    if options.headless or options.autostart:
        try:
            for kind in _kinds(environment):
                kind.prepare(environment)
        except WeighbridgeError as error:
            log.error("%s", error)  # noqa: TRY400 - no traceback helps users
            _delete(environment)
            raise SystemExit(error.exit_code) from None
        except KeyboardInterrupt:
            # Locust does not say `quitting` yet.
            _delete(environment)
            raise


def begin(environment: Environment, **_: Any) -> None:
    """A test starts. Raises GreenletExit, instead of letting users start, where it cannot."""
    runner = environment.runner
    try:
        for kind in _kinds(environment):
            with kind.startup():
                if not isinstance(runner, WorkerRunner):
                    kind.prepare(environment)
                if not isinstance(runner, MasterRunner):
                    kind.begin(environment)
    except WeighbridgeError as error:
        log.error("%s", error)  # noqa: TRY400 - as above
        if isinstance(runner, WorkerRunner):
            runner.send_message(FAILED, {"message": str(error), "exit_code": error.exit_code})
            return
        _end_test(environment, error.exit_code)
        # Otherwise Locust would start users all the same.
        raise gevent.GreenletExit from None


def end(environment: Environment, **_: Any) -> None:
    """A test has stopped."""
    for kind in _kinds(environment):
        try:
            kind.end(float(environment.stop_timeout or 0.0))
        except WeighbridgeError as error:
            log.error("%s", error)  # noqa: TRY400 - as above


def quit_all(environment: Environment, **_: Any) -> None:
    """Locust ends: delete what was made."""
    kinds = _kinds(environment)
    for kind in kinds:
        kind.start_no_more()
    if any(kind.load is not None for kind in kinds) and environment.runner is not None:
        environment.runner.stop()
    _delete(environment)


def _delete(environment: Environment) -> None:
    if environment_options(environment).keep_objects:
        return
    for kind in _kinds(environment):
        try:
            kind.delete()
        except WeighbridgeError as error:
            log.error("%s", error)  # noqa: TRY400 - as above


def _worker_failed(environment: Environment, msg: Any, **_: Any) -> None:
    log.error("worker %s: %s", msg.node_id, msg.data["message"])
    _end_test(environment, int(msg.data["exit_code"]))


def _end_test(environment: Environment, exit_code: int) -> None:
    """End the test, and Locust as well if it has no page."""
    runner = environment.runner
    if runner is None:
        return
    headless = environment_options(environment).headless
    if headless:
        environment.process_exit_code = exit_code
    gevent.spawn(runner.quit if headless else runner.stop)
