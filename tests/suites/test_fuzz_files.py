"""Malformed suites, studies, tunings and COSBench workload files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.mutation import Dice, cases, tried, wrong_bytes, wrong_text, wrong_yaml
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.suites import loader
from weighbridge.suites.importer import from_cosbench
from weighbridge.suites.studies import loader as studies
from weighbridge.suites.tuning import loader as tunings

SUITE: Final = """name: everything
about: Each key of a suite once
api: [swift, s3]
layouts: [rgw-beast, swift]
driver: locust
users: engine
processes: 2
repeats: 3
cache: every 60s
seed: 2014
bounds: {error_share: 0.01}
layers: [disk, rados]
rados: {pg_num: 32}
age:
  fill: 5%
  size: {histogram: [{size: 4KiB, weight: 1}, {size: [1MB, 2MB], weight: 2}]}
  containers: 2
  churn: 1
  share: 0.2
workloads:
  - name: small
    objects: {size: {uniform: [4KiB, 8KiB]}, containers: 2, per_container: 10}
    operations: {read: 80, write: 20}
    pick: {zipf: 1.1}
    workers: [1, 4]
    runtime: 5s
    warmup: 500ms
    rate_per_s: 100
    verify: true
"""
TUNING: Final = """name: tuned
about: Each key of a tuning once
layout: rgw-haproxy
hardware: lab-cpu
strategy: screen
api: s3
cache: none
workloads:
  - name: small
    objects: {size: 16KB}
    operations: {read: 100}
    workers: [16]
    runtime: 4s
    warmup: 1s
objectives: [{of: throughput, workload: small, workers: 16}]
trials: {least: 5, most: 6, baseline_every: 5}
budget: 40m
parameters:
  - key: haproxy.balance
    values: [leastconn, random]
    scope: restart
    option: b
    default: a
    effect: a
    trap: b
    reference: c
  - {key: haproxy.maxconn, values: [64, 16384], scope: reload, option: maxconn, effect: How many}
"""
STUDY: Final = """name: studied
about: Each key of a study once
source: {author: A, title: T, date: 2014-11-04, where: here}
common: ":osd.disks=5"
variants:
  - {name: a, layout: rgw-beast, factors: {frontend: beast}, rados: {pg_num: 32}}
  - {name: b, layout: rgw-civetweb, factors: {frontend: civetweb}}
labels: {a: A}
compares: [{factor: frontend, baseline: beast, against: [civetweb]}]
tables:
  - title: T
    down: [variant]
    across: [workers]
    cells: {throughput_ops_s: op/s}
    where: {workload: [small]}
published:
  - file: figures
    title: P
    same: {variant: v}
    figures: [{column: c, title: t, ours: p50_ms, scale: 1.5}]
    note: n
  - file: more
    title: Q
    rules: [{when: {a: b}, beside: {variant: a, workers: 1}}]
    figures: [{column: c, title: t}]
scales:
  lab: {about: [smaller], suites: [quick], hardware: lab-cpu, workers: {small: {1: 2}}}
"""


def suite_of(path: Path) -> Record:
    return loader.load(path)


def tuning_of(path: Path) -> Record:
    document, tuning = tunings.load(path)
    tunings.suite_of(document, tuning)
    return tuning


def study_of(path: Path) -> Record:
    return studies.load(path)[1]


FILES: Final[dict[str, tuple[str, Any]]] = {
    "suite": (SUITE, suite_of),
    "tuning": (TUNING, tuning_of),
    "study": (STUDY, study_of),
}


@cases
def test_any_file_is_a_serialisable_record_or_refused_with_its_position(
    dice: Dice, fuzzed: Path
) -> None:
    for kind, (text, load) in FILES.items():
        path = fuzzed / f"{kind}.yaml"
        data = wrong_yaml(dice, text, DOCUMENTS[kind]).encode(errors="surrogatepass")
        path.write_bytes(data)
        shown = data.decode(errors="replace").replace("\r\n", "\n")
        found = tried(lambda: load(path), UsageError, saying=path.name, text=shown)  # noqa: B023 - called before the next
        assert found is None or type(found).model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("kind", FILES)
def test_the_seed_files_are_valid(kind: str, tmp_path: Path) -> None:
    text, load = FILES[kind]
    (tmp_path / "seed.yaml").write_text(text)
    found = load(tmp_path / "seed.yaml")
    assert type(found).model_validate_json(found.model_dump_json()) == found


XML: Final = """<?xml version="1.0" encoding="UTF-8" ?>
<workload name="mixed" description="each element and attribute once">
  <auth type="none" config="caching=false"/>
  <storage type="swift" config="timeout=30000"/>
  <workflow config="">
    <workstage name="init">
      <work type="init" workers="1" config="cprefix=a;containers=r(1,2)"/>
    </workstage>
    <workstage name="prepare" closuredelay="1">
      <work type="prepare" workers="4"
            config="cprefix=a;containers=r(1,2);objects=r(1,50);sizes=c(64)KB"/>
    </workstage>
    <workstage name="main">
      <work name="main" workers="8" rampup="5" runtime="20" afr="200000" driver="driver1"
            interval="5" division="none">
        <operation type="read" ratio="80" config="cprefix=a;containers=u(1,2);objects=u(1,50)"/>
        <operation type="write" ratio="20" config="cprefix=a;containers=u(1,2);objects=u(51,99);
                   sizes=h(1|64|10,64|512|90)KB"/>
      </work>
    </workstage>
    <workstage name="rest"><work type="delay" closuredelay="5"/></workstage>
    <workstage name="cleanup">
      <work type="cleanup" workers="1" config="cprefix=a;containers=r(1,2);objects=r(1,99)"/>
    </workstage>
    <workstage name="dispose">
      <work type="dispose" workers="1" config="cprefix=a;containers=r(1,2)"/>
    </workstage>
  </workflow>
</workload>
"""
DOCUMENTS: Final = {
    kind: yaml.load(text, Loader=yaml.BaseLoader) for kind, (text, _) in FILES.items()
}  # texts alone
SELECTORS: Final = (
    "u(1,2)", "c(64)KB", "r(1,50)", "z(1,100)", "h(1|64|10)MB", "s(1,9)", "u(9,1)KB", "c(1e9)TB",
    "h()", "u(1,)", "c(-1)B", "r(1,1e400)",
)  # fmt: skip
ATTRIBUTES: Final = (
    "workers", "runtime", "ratio", "rampup", "afr", "type", "totalOps", "totalBytes", "name",
    "config",
)  # fmt: skip
VALUES: Final = ("0", "-1", "1e400", "9" * 400, "x", "&#10;", ";", "=", "1.5")


@cases
def test_any_cosbench_file_is_a_suite_or_refused_with_its_position(
    dice: Dice, fuzzed: Path
) -> None:
    text = XML
    for _ in range(dice.choice((0, 1, 1, 2))):
        text = text.replace(
            dice.choice(("u(1,2)", "r(1,50)", "c(64)KB", "u(51,99)", "h(1|64|10,64|512|90)KB")),
            dice.choice(SELECTORS),
            1,
        )
        attribute = dice.choice(ATTRIBUTES)
        value = dice.choice(VALUES)
        text = text.replace(f'{attribute}="', f'{attribute}="{value}', 1)
    data = (
        wrong_bytes(dice, text.encode())
        if dice.random() < 0.4
        else wrong_text(dice, text).encode(errors="surrogatepass")
    )
    path = fuzzed / "workload.xml"
    path.write_bytes(data)
    partial = dice.random() < 0.7
    found = tried(
        lambda: from_cosbench(path, partial=partial, size=4096, runtime_s=10),
        UsageError,
        saying="workload.xml",
    )
    if found is not None:
        assert loader.parse("imported.yaml", found.text) == found.suite
        assert all(str(remark) for remark in found.remarks)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")
