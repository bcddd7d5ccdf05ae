"""A received run folder: whatever is in it, nothing outside is read or changed or hangs."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from fake_knobs import FEW
from fake_run import short_run
from fake_tuning import fake_tuning
from talks import deck_of
from tests.weighbridge import command_line
from weighbridge.common import host, paths
from weighbridge.common.errors import InvalidMeasurement, UsageError, WeighbridgeError
from weighbridge.results import derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.run import reading
from weighbridge.results.run.profile import FOLDER
from weighbridge.results.run.reading import StoreError, write_atomically
from weighbridge.results.run.store import RunStore, lock_run_folder
from weighbridge.results.show.exports import export
from weighbridge.results.show.feature import gallery
from weighbridge.results.show.pictures import write_charts

WITHIN_S = 60
FILES = (
    *("manifest.json", "plan.resolved.json", "plan.yaml"),
    *("steps.jsonl", "events.jsonl", "attestation.jsonl"),
)


@pytest.fixture(autouse=True)
def _no_longer() -> Iterator[None]:
    """Fail instead of hanging: when reading a pipe, or something endless."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"it has not ended within {WITHIN_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(WITHIN_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def store(runs: Path) -> RunStore:
    return short_run(runs, workers=(2,), repeats=1)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of this machine outside the run folder that nothing may read or change."""
    (tmp_path / "machine").mkdir()
    path = tmp_path / "machine" / "secret"
    path.write_text("root:planted-secret:\n")
    return path


def untouched(secret: Path) -> bool:
    return secret.read_text() == "root:planted-secret:\n" and list(secret.parent.iterdir()) == [
        secret
    ]


def all_of(folder: Path) -> None:
    data = open_run(folder)
    list(data.telemetry())
    data.store.plan_yaml()
    derive(folder, pictures=False)


def instead(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink(missing_ok=True)
    make(path)


@pytest.mark.parametrize("name", [*FILES, "study.json", "tuning.json"])
def test_a_link_for_a_file_is_named_and_not_read(store: RunStore, secret: Path, name: str) -> None:
    instead(store.folder / name, lambda path: path.symlink_to(secret))
    with pytest.raises(
        WeighbridgeError, match=rf"{name}: is a link, which is not followed"
    ) as error:
        all_of(store.folder)
    assert "planted" not in str(error.value)
    pages = [
        path.read_text(errors="replace") for path in store.derived.rglob("*") if path.is_file()
    ]
    assert not [page for page in pages if "planted-secret" in page]


@pytest.mark.parametrize("name", [*FILES, "study.json", "tuning.json"])
def test_a_pipe_in_place_of_a_file_is_named_and_not_waited_for(store: RunStore, name: str) -> None:
    instead(store.folder / name, os.mkfifo)
    with pytest.raises(WeighbridgeError, match=rf"{name}: is a pipe"):
        all_of(store.folder)


def test_links_in_folders_of_steps_are_not_followed(store: RunStore, secret: Path) -> None:
    name = "telemetry"
    for path in (store.folder / name).iterdir():
        instead(path, os.mkfifo)
    with pytest.raises(WeighbridgeError, match=rf"{name}/.*: is a pipe"):
        all_of(store.folder)
    for path in (store.folder / name).iterdir():
        instead(path, lambda path: path.symlink_to("/dev/zero"))
    with pytest.raises(WeighbridgeError, match=rf"{name}/.*: is a link"):
        all_of(store.folder)
    for path in (store.folder / name).iterdir():
        (secret.parent / path.name).write_text("planted")
        path.unlink()
    (store.folder / name).rmdir()
    (store.folder / name).symlink_to(secret.parent)
    with pytest.raises(WeighbridgeError, match="is a link"):
        all_of(store.folder)


def test_links_to_profiles_are_not_followed(store: RunStore, secret: Path) -> None:
    (store.folder / FOLDER).symlink_to(secret.parent.parent)
    secret.with_name("profile.json").write_text("{}")
    with pytest.raises(InvalidMeasurement, match=f"{FOLDER}: is a link"):
        all_of(store.folder)


def test_a_link_is_not_a_confirmation(runs: Path, tmp_path: Path) -> None:
    tuned = fake_tuning(runs, knobs=FEW)
    (tuned.folder / "confirmation").rename(tmp_path / "other")
    (tuned.folder / "confirmation").symlink_to(tmp_path / "other")
    assert derive(tuned.folder, pictures=False).answer
    assert not list((tmp_path / "other").rglob("derived/report.html"))


def test_an_endless_line_is_refused_before_it_is_read_completely(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE_BYTES", 2**20)
    with (store.folder / "steps.jsonl").open("r+b") as file:
        file.truncate(2**32)
    with pytest.raises(InvalidMeasurement, match=r"steps\.jsonl:\d+: is longer than 1 MiB"):
        all_of(store.folder)


def test_a_file_larger_than_any_of_its_kind_is_refused_unread(store: RunStore) -> None:
    for name, size in (("steps.jsonl", 2**37), ("plan.yaml", 2**29)):
        content = (store.folder / name).read_bytes()
        with (store.folder / name).open("r+b") as file:
            file.truncate(size)
        with pytest.raises(UsageError, match=rf"{name}: is larger than"):
            all_of(store.folder)
        (store.folder / name).write_bytes(content)


@pytest.mark.parametrize(
    "name", ["report.html", "summary.csv", "effects.csv", ".report.html.part", ".summary.csv.part"]
)
def test_a_report_is_not_written_through_a_link(store: RunStore, secret: Path, name: str) -> None:
    store.make_derived()
    instead(store.derived / name, lambda path: path.symlink_to(secret))
    derive(store.folder, pictures=False)
    assert untouched(secret)
    assert not (store.derived / "report.html").is_symlink()


def test_a_link_for_derived_is_named_and_not_written_into(store: RunStore, secret: Path) -> None:
    drawings = gallery(open_run(store.folder)).charts[:1]
    for path in store.derived.iterdir():
        path.unlink()
    store.derived.rmdir()
    store.derived.symlink_to(secret.parent)
    for write in (
        lambda: derive(store.folder, pictures=False),
        lambda: export(open_run(store.folder), "csv"),
        store.make_derived,
        lambda: write_charts(drawings, store.make_derived("charts")),
    ):
        with pytest.raises(StoreError, match="is a link, which is not followed"):
            write()
    store.derived.unlink()
    store.derived.mkdir()
    for name in ("charts", "exports"):
        (store.derived / name).symlink_to(secret.parent)
    with pytest.raises(StoreError, match=r"charts.*is a link"):
        store.make_derived("charts")
    with pytest.raises(StoreError, match=r"exports.*is a link"):
        export(open_run(store.folder), "csv")
    assert untouched(secret)


def test_a_tunings_choice_is_not_cleared_through_a_link(runs: Path, secret: Path) -> None:
    tuned = fake_tuning(runs, knobs=FEW)
    tuned.make_derived()
    (tuned.derived / "winner").symlink_to(secret.parent)
    with pytest.raises(StoreError, match=r"winner.*is a link"):
        derive(tuned.folder, pictures=False)
    assert untouched(secret)


def test_users_may_write_through_their_own_links(store: RunStore, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "mine").symlink_to(tmp_path / "disk")
    (path,) = export(open_run(store.folder), "csv", out=tmp_path / "mine").paths
    write_atomically(tmp_path / "mine" / "more", "x")
    assert {one.name for one in (tmp_path / "disk").iterdir()} == {path.name, "more"}


def test_slides_of_a_received_run_use_only_its_own_files(store: RunStore, secret: Path) -> None:
    instead(store.folder / "steps.jsonl", lambda path: path.symlink_to(secret))
    with pytest.raises(WeighbridgeError, match=r"steps\.jsonl: is a link"):
        deck_of(store)


@pytest.mark.parametrize(
    "name", ["holders.jsonl", "logs/driver-swift-0.log", "latency", "derived/x"]
)
def test_no_run_is_resumed_in_a_folder_with_links(store: RunStore, secret: Path, name: str) -> None:
    path = store.folder / name
    if path.is_dir():
        path.rename(path.with_name("moved"))
    instead(path, lambda path: path.symlink_to(secret.parent if name == "latency" else secret))
    with pytest.raises(WeighbridgeError, match=name), lock_run_folder(store.folder):
        pass
    assert untouched(secret)


def test_nothing_is_appended_through_a_link(store: RunStore, secret: Path) -> None:
    instead(store.folder / "events.jsonl", lambda path: path.symlink_to(secret))
    with pytest.raises(StoreError, match=r"events\.jsonl: cannot be written \(is a link"):
        store.event("up", "x")
    assert untouched(secret)


FORGED = "FORGED: a is faster\u202e"


def test_no_name_in_a_received_folder_begins_a_line_of_its_own(store: RunStore) -> None:
    manifest = store.folder / "manifest.json"
    for name in ("suite", "run_id", "weighbridge_version"):
        told = json.loads(manifest.read_text())
        manifest.write_text(json.dumps({**told, name: f"{told[name]}\n{FORGED}"}))
    plan = store.folder / "plan.resolved.json"
    told = json.loads(plan.read_text())
    told["hardware"]["name"] = told["layouts"][0]["release"] = f"x\n{FORGED}"
    plan.write_text(json.dumps(told))
    for words in (
        ("runs", store.folder.parent),
        ("report", "--no-charts", store.folder),
        ("export", store.folder, "--to", "csv", "--out", "-"),
        ("sql", "select distinct run from summary", store.folder),
        ("compare-runs", store.folder, store.folder),
    ):
        said = command_line.run(*map(str, words), env=os.environ).stdout
        assert "FORGED" in said or words[0] in ("report", "compare-runs"), said
        assert not re.search(r"^\W*FORGED|\u202e", said, re.MULTILINE), said


@pytest.mark.long
def test_no_module_in_a_received_folder_is_imported(store: RunStore, tmp_path: Path) -> None:
    owned = tmp_path / "owned"
    for name in ("weighbridge", "vl_convert", "json", "pip", "sitecustomize"):
        (store.folder / f"{name}.py").write_text(f"open({str(owned)!r}, 'w').close()\n")
    env = command_line.environment(tmp_path)
    done = command_line.run("report", ".", env=env, cwd=store.folder)
    assert done.returncode == 0, done.stderr
    assert list(store.folder.glob("derived/charts/*.svg"))
    assert not owned.exists()


def test_every_program_in_this_python_starts_without_the_working_folder() -> None:
    started = re.compile(r'sys\.executable,\s*"(?!-I")')
    unsafe = [
        str(path)
        for room in (*paths.ROOMS, ".")
        for path in (paths.PACKAGE / room).glob("*.py" if room == "." else "**/*.py")
        if started.search(path.read_text()) and path.resolve() != Path(host.__file__).resolve()
    ]
    assert unsafe == []
