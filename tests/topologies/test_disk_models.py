"""Disks with a model in hardware files, and what is expected of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.topologies.disk_models import (
    DISK_MODELS,
    DiskLoad,
    FlashDisk,
    SpinningDisk,
    described,
    expected_per_s,
    simulate,
)
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import load_hardware

GIB = 2**30


def written(tmp_path: Path, disk: str, kind: str = "lab") -> Path:
    path = tmp_path / "hosts.yaml"
    path.write_text(f"name: mine\nkind: {kind}\nhosts:\n  client-1: {{disks: [{disk}]}}\n")
    return path


def test_a_model_is_a_name_or_a_base_with_figures_that_differ(tmp_path: Path) -> None:
    plain = load_hardware(written(tmp_path, "{size: 1GiB, model: spinning-7200}"))
    assert plain.hosts["client-1"].disks[0].model == DISK_MODELS["spinning-7200"]
    text = "{size: 1GiB, model: {base: sata-ssd, read_latency: 0.2ms, write_cache: 1MiB}}"
    model = load_hardware(written(tmp_path, text)).hosts["client-1"].disks[0].model
    assert isinstance(model, FlashDisk)
    assert (model.read_latency, model.write_cache) == (0.0002, 2**20)
    assert model.channels == DISK_MODELS["sata-ssd"].model_dump()["channels"]


def test_hardware_with_a_model_is_read_back_from_a_plan(tmp_path: Path) -> None:
    text = "{size: 1GiB, model: {base: spinning-7200, rpm: 5400, seed: 3}}"
    hardware = load_hardware(written(tmp_path, text))
    assert Hardware.model_validate_json(hardware.model_dump_json()) == hardware


@pytest.mark.parametrize(
    ("disk", "says"),
    [
        ("{size: 1GiB, model: spining-7200}", "did you mean 'spinning-7200'"),
        ("{size: 1GiB, model: {rpm: 5400}}", "a model needs its base"),
        ("{size: 1GiB, model: {base: nvme, rpm: 5400}}", "unknown key 'rpm'"),
        ("{size: 1GiB, model: {base: spinning-7200, rpm: 1}}", "rpm"),
        ("{size: 1GiB, model: {base: spinning-7200, seek_avg: 99ms}}", "must not decrease"),
        ("{size: 1GiB, model: {base: spinning-7200, transfer_rate: 50MB}}", "outer tracks"),
        ("{size: 1GiB, model: {base: nvme, write_cache: 5GiB}}", "write_cache"),
        ("{size: 1GiB, model: nvme, iops: 100}", "leave this out"),
        ("{size: 1GiB, model: nvme, bandwidth: 1MB}", "leave this out"),
        ("{size: 1GiB, model: 7}", "model"),
    ],
)
def test_a_wrong_model_is_refused_at_its_line(tmp_path: Path, disk: str, says: str) -> None:
    with pytest.raises(DocumentError) as refused:
        load_hardware(written(tmp_path, disk))
    assert says in str(refused.value)
    assert "hosts.yaml:4:" in str(refused.value)


@pytest.mark.parametrize("kind", ["ssh", "fake"])
def test_only_the_labs_disks_have_models(tmp_path: Path, kind: str) -> None:
    with pytest.raises(DocumentError, match="only for lab hosts"):
        load_hardware(written(tmp_path, "{size: 1GiB, model: nvme}", kind))


def test_a_model_and_its_figures_are_said_in_words() -> None:
    words = described(DISK_MODELS["spinning-7200"])
    assert words.startswith("spinning-7200 (seed 2014, ")
    assert "rpm 7200" in words
    assert "seek_avg 0.0085" in words


def load(**given: object) -> DiskLoad:
    asked = {"write": False, "random": True, "bytes": 4096, "depth": 1, "span": 8 * GIB}
    return DiskLoad.model_validate({**asked, **given})


def test_random_reads_of_a_spinning_disk_take_command_seek_and_half_a_turn() -> None:
    model = DISK_MODELS["spinning-7200"]
    assert isinstance(model, SpinningDisk)
    found = simulate(model, 8 * GIB, load(seconds=300))
    assert found is not None
    expected_s = model.command + model.seek_avg + 30 / model.rpm
    assert found.mean_s == pytest.approx(expected_s, rel=0.02)
    again = simulate(model, 8 * GIB, load(seconds=300))
    assert again == found


def test_a_deep_queue_is_served_by_the_shortest_way() -> None:
    model = DISK_MODELS["spinning-7200"]
    rates = [expected_per_s(model, 8 * GIB, load(depth=depth, seconds=60)) for depth in (1, 32)]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[1] > 2 * rates[0]


@pytest.mark.parametrize(
    ("name", "write", "random", "request_bytes", "depth", "per_s"),
    [
        # The data sheets' own figures: see `disk_models`.
        ("sata-ssd", False, True, 4096, 32, 75_000),
        ("sata-ssd", True, True, 4096, 32, 11_000),
        ("sata-ssd", False, False, 2**20, 32, 500e6 / 2**20),
        ("sata-ssd", True, False, 2**20, 32, 410e6 / 2**20),
        ("nvme", False, True, 4096, 128, 490_000),
        ("nvme", True, True, 4096, 32, 38_000),
        ("nvme", False, False, 2**20, 32, 3200e6 / 2**20),
        ("nvme", True, False, 2**20, 32, 1050e6 / 2**20),
    ],
)
def test_flash_does_what_its_data_sheet_says(
    name: str, *, write: bool, random: bool, request_bytes: int, depth: int, per_s: float
) -> None:
    asked = load(write=write, random=random, bytes=request_bytes, depth=depth)
    found = simulate(
        DISK_MODELS[name], 8 * GIB, asked.model_copy(update={"seconds": 0.5, "warmup": 1.0})
    )
    assert found is not None
    assert found.per_s == pytest.approx(per_s, rel=0.05)


def test_nothing_is_expected_where_the_machine_decides() -> None:
    assert expected_per_s(DISK_MODELS["sata-ssd"], 8 * GIB, load(depth=16, seconds=0.2)) is None
    assert expected_per_s(DISK_MODELS["ideal"], 8 * GIB, load(seconds=0.2)) is None


@pytest.mark.parametrize("name", ["ideal", "nvme"])
def test_a_write_that_hardly_takes_time_is_soon_known_not_to_be_limited(name: str) -> None:
    """Also while the time before the figures does not pass at all."""
    model = DISK_MODELS[name]
    assert expected_per_s(model, 8 * GIB, load(write=True, random=True, depth=16)) is None
