"""What SDKs list of containers that a suite only lists, before and after its deletes."""

from __future__ import annotations

from pathlib import Path

from behind_front import measured
from deployed_layouts import on_client
from suite_command import trial_suite
from weighbridge.conductor.clearing import buckets_of_workload
from weighbridge.conductor.opening import opened
from weighbridge.drivers.protocol import Prepare
from weighbridge.results.run.step import Pass
from weighbridge.suites import deleted_indexes
from weighbridge.topologies.deployment import Deployment

COUNT = 250
"""Three pages of 100 of both APIs."""
LIST = """
import json, sys, sdk
order = json.load(sys.stdin)
if order["api"] == "swift":
    client = sdk.swift(order)
    objects = client.get_container(order["bucket"], full_listing=True)[1]
    head = client.head_container(order["bucket"])
    found = {
        "names": [one["name"] for one in objects],
        "bytes": sum(one["bytes"] for one in objects),
        "counted": int(head["x-container-object-count"]),
    }
else:
    pages = sdk.s3(order).get_paginator("list_objects_v2").paginate(
        Bucket=order["bucket"], PaginationConfig={"PageSize": 100})
    found = {"names": [one["Key"] for page in pages for one in page.get("Contents", [])]}
json.dump(found, sys.stdout)
"""


def check_listed_names(deployment: Deployment, folder: Path) -> None:
    """Prepare a workload and its share of deletes, list it, and have both SDKs find the same."""
    suite = trial_suite(
        *("[swift, s3]", "{list-all: 1}", "1s"),
        name="list-all",
        size=0,
        per_container=COUNT,
        suite="cleanup: with-deployment",
        workload="listing: {page: 100}\n    listed: {deleted: [0%, 25%]}",
    )
    way = Pass(api="swift", workloads=suite.workloads)
    with opened(
        deployment, suite, way, prefix="wb-listed", log=folder / "driver-listed.log"
    ) as ready:
        for one in suite.workloads:
            ready.driver.prepare(Prepare(workload=one))
            (bucket,) = buckets_of_workload("wb-listed", way, one)
            gone = deleted_indexes(one, suite.seed)
            wanted = [f"object-{index:010}" for index in range(COUNT) if index not in gone]
            swift, s3 = (
                on_client(deployment, api, "-c", LIST, bucket=bucket) for api in ("swift", "s3")
            )
            assert swift == {"names": wanted, "bytes": 0, "counted": len(wanted)}
            assert s3 == {"names": wanted}
            listed = measured(ready.driver, one)
            tallies = {tally.operation: tally for tally in listed.tallies}
            assert not tallies["list-all"].errors
            assert tallies["list-page"].count >= 2 * tallies["list-all"].count > 0
