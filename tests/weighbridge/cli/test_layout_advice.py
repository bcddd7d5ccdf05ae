"""What a layout may say and seldom means: in the plan and from doctor, before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from weighbridge.documents import DoctorDocument
from weighbridge.plan_outline import PlanOutline
from weighbridge.topologies.loader import shipped_layouts
from weighbridge.topologies.ssh import requirements

RunCli = Callable[..., tuple[int, str, str]]
EVEN = "two-mons: 2 mons tolerate no more failures than one fewer would"


@pytest.fixture
def two_mons(tmp_path: Path) -> Path:
    text = shipped_layouts()["rgw-beast"].read_text()
    path = tmp_path / "two-mons.yaml"
    path.write_text(
        text.replace("name: rgw-beast", "name: two-mons").replace(
            "mon: store-1 ", "mon: [store-1, store-2] "
        )
    )
    return path


def test_a_plan_advises_against_an_even_number_of_mons(
    run_cli: RunCli, two_mons: Path, tmp_path: Path
) -> None:
    layouts = ("--layouts", f"{two_mons},rgw-beast", "--hardware", "lab-cpu", "--aa")
    code, out, _ = run_cli("compare", *layouts, "--dry-run", "--json", "--out", tmp_path)
    assert code == 0
    assert PlanOutline.model_validate_json(out).advice == (EVEN,)
    code, out, _ = run_cli("compare", *layouts, "--dry-run", "--out", tmp_path)
    assert EVEN in out


def test_doctor_advises_against_an_even_number_of_mons(
    run_cli: RunCli, two_mons: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "here", lambda _: ())
    monkeypatch.setattr(requirements, "look", lambda *_: ())
    hosts = ("--hardware", "ssh-example", "--layouts")
    code, out, said = run_cli("doctor", *hosts, str(two_mons), "--json")
    assert code == 0
    assert DoctorDocument.model_validate_json(out).advice == (EVEN,)
    assert EVEN in said
    _, out, said = run_cli("doctor", *hosts, "rgw-beast")
    assert "mons" not in out + said
