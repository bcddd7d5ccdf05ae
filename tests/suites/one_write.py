"""A suite of one workload that writes over S3, for tests of what such a workload may say."""

from __future__ import annotations

from weighbridge.common.document import Document
from weighbridge.suites import Suite

GOOD = """name: trial
about: a
api: [s3]
workloads:
  - name: write
    objects: {size: 4KiB}
    operations: {write: 1}
    workers: [1]
    runtime: 20s
"""


def suite_of(text: str) -> Suite:
    return Document("trial.yaml", text).into(Suite)
