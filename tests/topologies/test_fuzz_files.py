"""Corrupted layouts, hardware files and references to layouts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

import weighbridge.suites.loader
import weighbridge.suites.studies.loader
from tests.mutation import (
    Dice,
    cases,
    hostile,
    tried,
    wrong_bytes,
    wrong_json,
    wrong_text,
    wrong_yaml,
)
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.topologies.attestation import (
    DISK_JOBS,
    bits_per_s,
    disk_figures,
    events_per_s,
    pieces,
)
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import (
    LONGEST_NAME,
    Layout,
    Planned,
    checked_again,
    find,
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
    split,
)

REAL: Final = """name: real
about: Each key of hardware once
kind: ssh
ssh: {user: root, port: 22, key: FOLDER/key, known_hosts: FOLDER/key, folder: /opt/weighbridge,
  python: python3}
profile: study-2014
sysctl: {net.ipv4.tcp_sack: "0"}
network: {mtu: 9000, set: true}
clients: [client-1]
hosts:
  client-1: {cpus: 2, memory: 4GiB, nic: 10Gbit, address: 10.0.0.1,
    ssh: {host: a.example, port: 22, user: me}}
  store-1:
    address: "fd00::2"
    disks: [{id: /dev/disk/by-id/nvme-a, wipe: true, bandwidth: 200MB, iops: 100}]
"""
LAB: Final = """name: lab
kind: lab
clients: [client-1]
hosts:
  client-1: {cpus: 0.5, memory: 1GiB, nic: 10Gbit}
  gateway-1: {cpus: 0.6, memory: 1GiB}
  store-1: {memory: 2560MiB, disks: [{size: 20GiB, bandwidth: 200MB, iops: 500}]}
"""


@cases
def test_any_hardware_file_is_accepted_or_refused_with_its_place(dice: Dice, fuzzed: Path) -> None:
    text, document = dice.choice(seeds(fuzzed))
    path, wrong = fuzzed / "hardware.yaml", wrong_yaml(dice, text, document)
    path.write_bytes(wrong.encode(errors="surrogatepass"))
    found = tried(
        lambda: load_hardware(path), UsageError, saying="hardware.yaml", text=_shown(path)
    )
    assert found is None or Hardware.model_validate_json(found.model_dump_json()) == found


@cache
def seeds(folder: Path) -> tuple[tuple[str, Any], ...]:
    """Hardware files and their content, as texts; the key that they name exists."""
    (folder / "key").touch(0o600)
    texts = [text.replace("FOLDER", str(folder)) for text in (REAL, LAB)]
    return tuple((text, yaml.load(text, Loader=yaml.BaseLoader)) for text in texts)


def test_the_unchanged_hardware_files_are_valid(fuzzed: Path) -> None:
    for text, _ in seeds(fuzzed):
        (fuzzed / "seed.yaml").write_text(text)
        assert load_hardware(fuzzed / "seed.yaml")


def _shown(path: Path) -> str:
    return path.read_bytes().decode(errors="replace").replace("\r\n", "\n")


LAYOUTS: Final = ("rgw-haproxy", "rgw-apache-fastcgi", "swift-haproxy", "existing", "null")


@cache
def shipped() -> tuple[tuple[str, Any, Hardware], ...]:
    """Shipped layouts, without comments, and hardware that fits them."""
    found = []
    for name in LAYOUTS:
        text = shipped_layouts()[name].read_text()
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        bare = "".join(f"{line.partition(' #')[0].rstrip()}\n" for line in lines)
        where = "this-machine" if name == "existing" else "lab-cpu"
        hardware = load_hardware(shipped_hardware()[where])
        found.append((bare, yaml.safe_load(bare), hardware))
    return tuple(found)


@cases
def test_any_layout_is_accepted_or_refused_with_its_place(dice: Dice, fuzzed: Path) -> None:
    text, document, hardware = dice.choice(shipped())
    path = fuzzed / "layout.yaml"
    path.write_bytes(wrong_yaml(dice, text, document).encode(errors="surrogatepass"))
    found = tried(
        lambda: load_layout(path, hardware), UsageError, saying="layout.yaml", text=_shown(path)
    )
    if found is not None:
        assert Layout.model_validate_json(found.layout.model_dump_json()) == found.layout
        if dice.random() < 0.1:
            assert isinstance(tried(lambda: checked_again(found.layout, hardware, "plan")), Planned)


REFERENCES: Final = (
    "rgw-beast",
    "rgw-beast@ceph-18:radosgw.threads=64",
    "rgw-haproxy:radosgw.daemons=2:haproxy.options.backend=[option http-no-delay, a: b]",
    "swift:replicas=2:proxy.workers=4:place.proxy=[gateway-1]",
    "rgw-beast:options.client.rgw.gateway-1.rgw_frontends={a: 1}",
)


def in_one_line(text: str) -> str:
    """A reference for places of faults in it: always one line."""
    return "".join(one if one.isprintable() else " " for one in text)


@cases
def test_any_reference_is_parsed_or_refused_within_it(dice: Dice) -> None:
    text = dice.choice(REFERENCES)
    text = (
        wrong_bytes(dice, text.encode()).decode(errors="replace")
        if dice.random() < 0.7
        else f"{text}={hostile(dice)}"
    )
    tried(lambda: split(text), UsageError)
    found = tried(lambda: parse(text), UsageError, text=in_one_line(text))
    if found is not None:
        tried(lambda: find(found.name, shipped_layouts(), "layout"), UsageError)
        assert len(found.renamed("rgw-beast")) <= LONGEST_NAME
        assert all(1 <= change.column <= len(text) for change in found.changes)


@cases
def test_any_change_is_applied_or_refused_within_the_reference(dice: Dice) -> None:
    text = wrong_bytes(dice, dice.choice(REFERENCES[1:4]).encode()).decode(errors="replace")
    reference = tried(lambda: parse(text), UsageError, text=in_one_line(text))
    if reference is None or not reference.changes:
        return
    path, hardware = shipped_layouts()["null"], load_hardware(shipped_hardware()["lab-cpu"])
    tried(lambda: load_layout(path, hardware, reference), UsageError)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def test_a_name_too_long_for_a_path_is_no_layout_and_no_suite() -> None:
    with pytest.raises(UsageError, match="no layout"):
        find("a" * 5000, shipped_layouts(), "layout")
    with pytest.raises(UsageError, match="no suite"):
        weighbridge.suites.loader.find("a" * 5000)
    with pytest.raises(UsageError, match="no study"):
        weighbridge.suites.studies.loader.find("a" * 5000)


def test_files_in_the_home_of_an_unknown_user_are_reported_missing(tmp_path: Path) -> None:
    text = REAL.replace("key: FOLDER/key", "key: ~nobody-at-all/key").replace(
        "FOLDER", str(tmp_path)
    )
    (tmp_path / "hardware.yaml").write_text(text)
    with pytest.raises(UsageError, match="there is no file ~nobody-at-all/key"):
        load_hardware(tmp_path / "hardware.yaml")


JOBS = (*DISK_JOBS, *pieces([65536]))
SYSBENCH = """Number of threads: 1
CPU speed:
    events per second:   626.75
General statistics:
    total time:                          0.4770s
    total number of events:              300
"""


def job(name: str) -> dict[str, Any]:
    side = {"io_bytes": 733000, "bw_bytes": 244333, "iops": 2682.211859}
    side |= {"runtime": 3002, "total_ios": 8052}
    return {"jobname": name, "error": 0, "read": side, "write": dict(side)}


FIO = {
    "fio version": "fio-3.33",
    "jobs": [job(one.name) for one in JOBS],
}
RATES = {"bytes": 50069504, "seconds": 0.011471, "bits_per_second": 34919015953.273468}
IPERF = {
    "start": {"version": "iperf 3.12"},
    "end": {"streams": [], "sum_sent": RATES, "sum_received": dict(RATES)},
    "error": "busy",
}


def figures(read: Callable[[str], Sequence[float]], printed: str) -> None:
    found = tried(lambda: read(printed), TargetError)
    assert all(isinstance(one, float) and math.isfinite(one) and one > 0 for one in found or ())


@cases
def test_any_output_of_sysbench_is_a_figure_or_a_target_error(dice: Dice) -> None:
    figures(lambda printed: [events_per_s(printed)], wrong_text(dice, SYSBENCH))


@cases
def test_any_output_of_fio_is_figures_or_a_target_error(dice: Dice) -> None:
    printed = wrong_json(dice, FIO).decode(errors="replace")
    figures(lambda printed: disk_figures(printed, JOBS), printed)


@cases
def test_any_output_of_iperf3_is_a_figure_or_a_target_error(dice: Dice) -> None:
    answer = dict(IPERF)
    if dice.random() >= 0.1:
        del answer["error"]
    printed = wrong_json(dice, answer).decode(errors="replace")
    figures(lambda printed: [bits_per_s(printed)], printed)


def test_json_without_valid_figures_is_an_error() -> None:
    for wrong in ([], [7], {"sum_received": 7}, {"sum_received": {"bits_per_second": 1e999}}):
        with pytest.raises(TargetError, match="iperf3: no end"):
            bits_per_s(json.dumps({"end": wrong}))
    for jobs in (7, [7]):
        with pytest.raises(TargetError, match="fio: `jobs` is not a list"):
            disk_figures(json.dumps({"jobs": jobs}), JOBS)
