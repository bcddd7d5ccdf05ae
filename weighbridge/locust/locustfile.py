"""A locustfile that replays a workload of a suite (docs/locust.md):

locust -f .../weighbridge/locust/locustfile.py -H http://gateway:8080 --suite quick --api s3
"""

from __future__ import annotations

import argparse
from typing import Any, cast

from locust import events

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.locust import EngineUser, Replay, workload_of
from weighbridge.suites import loader

APIS = ("s3", "swift")


def _add_options(parser: Any) -> None:
    parser.add_argument(
        "--suite",
        default="quick",
        env_var="WEIGHBRIDGE_SUITE",
        help="Suite to replay: the name of a shipped one, or a path, which each worker process "
        "must find too.",
    )
    parser.add_argument(
        "--workload",
        default="",
        env_var="WEIGHBRIDGE_WORKLOAD",
        help="Its workload; without one its first.",
    )
    parser.add_argument(
        "--api",
        default="",
        choices=["", *APIS],
        env_var="WEIGHBRIDGE_API",
        help="The API to use; without one the suite's first.",
    )


class SuiteUser(EngineUser):
    """A worker of the suite's workload."""

    @classmethod
    def replay(cls, options: argparse.Namespace) -> Replay:
        suite = loader.load(loader.find(options.suite))
        api = options.api or next((one for one in suite.api if one in APIS), "")
        if api not in APIS:
            raise UsageError(
                f"{suite.name} is for {', '.join(suite.api)}, and {api!r} is no API of gateways",
                advice=f"Give `--api`: {' or '.join(APIS)}.",
            )
        return Replay(
            api=cast("ObjectApi", api),
            workload=workload_of(suite, options.workload or None),
            seed=suite.seed,
            request_timeout_s=suite.timeout,
        )


events.init_command_line_parser.add_listener(_add_options)
