from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

import fake_driver
import weighbridge.drivers.process
from tests.drivers.rados.conftest import one_kind
from threaded_driver import ThreadedProgram
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.common.host import PipedProcess
from weighbridge.common.program_lines import LOOK_S
from weighbridge.drivers.kind import KINDS, loading
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import (
    DRIVER_COMMAND,
    Cleanup,
    Prepare,
    Progress,
    Ready,
    Ring,
    RingDisk,
    Setup,
    Step,
)
from weighbridge.results.run.step import driver_label, tool_label, traits_of
from weighbridge.suites import Api, Objects, Workload

ROOT = Path(__file__).parents[2]
SETUP = Setup(
    target=Endpoint(
        api="swift",
        url="http://10.0.0.2:8080/auth/v1.0",
        user="test:tester",
        key=SecretStr("very-secret"),
    ),
    bucket_prefix="wb-1",
    seed=7,
)
MIX = Workload(
    name="mix",
    objects=Objects(size=65536, containers=2, per_container=10),
    operations={"read": 80, "write": 20},
    workers=(1, 16),
    runtime=4.0,
    warmup=1.0,
)


READY = Ready(versions={}).model_dump_json()
HANGS = f"import sys; input(); print({READY!r}, flush=True); sys.stdin.read()"
"""Is ready, and answers nothing more."""


@contextmanager
def followed(
    tmp_path: Path, process: PipedProcess, look: Callable[[], None] = lambda: None
) -> Iterator[DriverProcess]:
    with DriverProcess(process, tmp_path / "driver.log", silence_s=30.0, look=look) as running:
        yield running
    assert process.returncode is not None
    assert process.stdin is not None
    assert process.stdin.closed
    assert process.stdout is not None
    assert process.stdout.closed


def driver(tmp_path: Path, *argv: str, **given: Any) -> AbstractContextManager[DriverProcess]:
    with (tmp_path / "driver.log").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=ROOT,
        )
    return followed(tmp_path, process, **given)


def program(tmp_path: Path, text: str, **given: Any) -> AbstractContextManager[DriverProcess]:
    return driver(tmp_path, "-S", "-c", text, **given)


def fake(tmp_path: Path, *flaws: str, **given: Any) -> AbstractContextManager[DriverProcess]:
    """The fake driver as a thread, whose start costs nothing."""
    (tmp_path / "driver.log").touch()
    process = ThreadedProgram(lambda commands, events: fake_driver.serve(flaws, commands, events))
    return followed(tmp_path, process, **given)


def test_a_driver_answers_every_command_in_turn_and_ends_well(tmp_path: Path) -> None:
    heard: list[Progress] = []
    with driver(tmp_path, "-m", "tests.support.fake_driver") as running:
        assert running.setup(SETUP).versions
        prepared = running.prepare(Prepare(workload=MIX), heard.append)
        measured = running.step(Step(workload=MIX, workers=16), heard.append)
        cleaned = running.cleanup(Cleanup(workload=MIX, what="all"))
        running.quit()
        assert running.process.returncode == 0
    assert (prepared.objects, cleaned.deleted) == (20, 20)
    assert {progress.phase for progress in heard} == {"prepare", "measure"}
    assert (measured.measurement.workload, measured.measurement.workers) == ("mix", 16)


def test_a_driver_that_reports_a_failure_raises_with_its_message_and_its_log(
    tmp_path: Path,
) -> None:
    with fake(tmp_path, "--fail", "step") as running:
        running.setup(SETUP)
        with pytest.raises(DriverError, match="'step' fails as asked") as caught:
            running.step(Step(workload=MIX, workers=1))
        assert "driver.log" in str(caught.value)
        with pytest.raises(DriverError, match="before its last command was answered"):
            running.setup(SETUP)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import sys; input(); print('out of luck', file=sys.stderr); sys.exit(9)",
            r"(?s)exit status 9 during 'setup'.*\| out of luck",
        ),
        ("input(); print('hello there')", r"not an event .*hello there"),
        (
            'input(); print(\'{"kind":"cleaned","deleted":0}\', flush=True); input()',
            "answered 'setup' with 'cleaned'",
        ),
        # It waits for worker processes that nobody starts.
        (
            'input(); print(\'{"kind":"listening","port":1,"key":"k"}\', flush=True); input()',
            "answered 'setup' with 'listening'",
        ),
    ],
)
def test_a_driver_that_ends_or_babbles_raises_with_what_it_said_and_no_key(
    tmp_path: Path, text: str, words: str
) -> None:
    with program(tmp_path, text) as running, pytest.raises(DriverError, match=words) as caught:
        running.setup(SETUP)
    assert "very-secret" not in str(caught.value)


def test_a_driver_that_is_killed_or_silent_raises_and_is_ended(tmp_path: Path) -> None:
    for kills, words in ((True, "SIGKILL"), (False, r"was silent for 0\.5 s during 'step'")):
        with program(tmp_path, HANGS) as running:
            running.setup(SETUP)
            pid = running.process.pid
            running.silence_s = 30.0 if kills else 0.5
            if kills:
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(DriverError, match=words):
                running.step(Step(workload=MIX, workers=1))
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_driver_that_ignores_everything_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighbridge.drivers.process, "QUIT_S", 0.2)
    ignores = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    text = f"{ignores}; {HANGS}; time.sleep(600)"
    with program(tmp_path, text) as running:
        running.setup(SETUP)
    assert running.process.returncode == -signal.SIGKILL


LISTENS = """
import sys
input()
print('{"kind":"listening","port":4711,"key":"k"}', flush=True)
print('{"kind":"progress","phase":"prepare","done":0,"total":2}', flush=True)
print('{"kind":"ready","versions":{}}', flush=True)
input()
"""


def test_worker_processes_of_other_clients_are_started_before_a_listening_driver_is_ready(
    tmp_path: Path,
) -> None:
    started: list[int] = []
    with program(tmp_path, LISTENS) as running:
        running.setup(SETUP, lambda event: started.append(event.port))
    assert started == [4711]


def test_the_end_of_something_a_driver_depends_on_is_seen_within_a_second(tmp_path: Path) -> None:
    assert LOOK_S <= 0.5
    since = time.monotonic()

    def look() -> None:
        if time.monotonic() - since > 0.5:
            raise DriverError("client-2: worker process 3 of 4 was ended by SIGKILL")

    with (
        program(tmp_path, "import sys; sys.stdin.read()", look=look) as running,
        pytest.raises(DriverError, match="worker process 3 of 4 was ended"),
    ):
        running.setup(SETUP)


def test_what_the_driver_has_sent_is_not_lost_by_something_else_that_ends(tmp_path: Path) -> None:
    def look() -> None:
        assert b"\n" not in running._lines._read, "looked although there was an event"

    with fake(tmp_path, look=look) as running:
        running.setup(SETUP)
        running.step(Step(workload=MIX, workers=1))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-9, "was ended by SIGKILL"),
        (137, "ended with exit status 137 (SIGKILL)"),
        (3, "ended with exit status 3"),
        (128, "ended with exit status 128"),
        (-200, "ended with exit status -200"),
    ],
)
def test_an_exit_status_names_its_signal(code: int, text: str) -> None:
    assert weighbridge.drivers.process.how_it_ended(code) == text


def test_an_exception_in_the_conductor_ends_the_driver(tmp_path: Path) -> None:
    def interrupt(_progress: Progress) -> None:
        raise KeyboardInterrupt

    def conduct() -> None:
        with fake(tmp_path) as running:  # and it has ended after this
            running.setup(SETUP)
            running.step(Step(workload=MIX, workers=1), interrupt)

    with pytest.raises(KeyboardInterrupt):
        conduct()


def ring() -> Ring:
    disks = (RingDisk(address="10.0.0.3", port=6200, device="d0"),)
    secrets = {"hash_prefix": SecretStr("hidden-prefix"), "hash_suffix": SecretStr("hidden-suffix")}
    return Ring(disks=disks, table=((0, 0),), part_power=1, **secrets)


def test_secrets_are_in_the_json_but_not_in_the_repr() -> None:
    account = Endpoint(
        api="swift", url="http://10.0.0.3:6200/AUTH_a", user="u", key=SecretStr("hidden-key")
    )
    setup = Setup(target=account, ring=ring(), bucket_prefix="wb-1o", seed=7)
    assert setup.api == "object-server"
    assert "hidden" not in repr(setup)
    assert DRIVER_COMMAND.validate_json(setup.model_dump_json()) == setup
    sent = json.loads(setup.model_dump_json())
    assert (sent["ring"]["hash_prefix"], sent["target"]["key"]) == ("hidden-prefix", "hidden-key")


def test_object_servers_need_a_ring_and_gateways_credentials() -> None:
    s3, swift = (Endpoint(api=api, url="http://h:1", user="u") for api in ("s3", "swift"))
    with pytest.raises(ValidationError, match="a ring is for Swift's object servers only"):
        Setup(target=s3, ring=ring(), bucket_prefix="wb-1", seed=7)
    assert Setup(target=swift, bucket_prefix="wb-1", seed=7).api == "swift"
    with pytest.raises(ValidationError, match="a user or a token"):
        Endpoint(api="s3", url="http://h:1")


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "explode"}',
        '{"kind": "quit", "when": "now"}',
        '{"workload": {}}',
        "not JSON",
        (
            '{"kind": "setup", "bucket_prefix": "UPPER", "seed": 1, "target": {"api": "s3", "url": '
            '"http://h", "user": "u"}}'
        ),
        (
            '{"kind": "setup", "bucket_prefix": "wb-1", "seed": 1, "target": {"api": "s3", "url": '
            '"ftp://h", "user": "u"}}'
        ),
    ],
)
def test_an_invalid_command_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        DRIVER_COMMAND.validate_json(line)


def test_several_clients_share_the_worker_processes_and_need_an_address_of_the_driver() -> None:
    several = {**SETUP.model_dump(), "clients": ("one", "two"), "processes": 3}
    setup = Setup.model_validate({**several, "listen": "10.0.0.9"})
    assert (setup.worker_processes, SETUP.worker_processes) == (6, 1)
    assert [setup.client_of(number) for number in range(6)] == ["one"] * 3 + ["two"] * 3
    with pytest.raises(ValidationError, match="`listen` must be set"):
        Setup.model_validate(several)
    with pytest.raises(ValidationError, match="listed twice"):
        Setup.model_validate({**several, "listen": "10.0.0.9", "clients": ("one", "one")})


def test_each_driver_has_its_own_name_and_mark_of_buckets_and_no_two_the_same_option() -> None:
    assert all(kind.traits.name == name for name, kind in KINDS.items())
    assert {"locust", "cosbench", "rados", "fio"} <= set(KINDS)
    marks = [kind.mark for kind in KINDS.values() if kind.apis]
    assert len(set(marks)) == len(marks), "two would find each other's buckets"
    options = [word for kind in KINDS.values() for option in kind.options for word in option.opts]
    assert len(set(options)) == len(options)


@pytest.mark.parametrize(
    ("layer", "drivers"),
    [
        ("rados", ("rados",)),
        ("rbd", ("rados", "fio")),
        ("cephfs", ("fio",)),
        ("gateway", ("locust",)),
        ("object-server", ("locust",)),
    ],
)
def test_a_layer_is_loaded_by_its_drivers_in_the_order_of_their_ranks(
    layer: str, drivers: tuple[str, ...]
) -> None:
    assert loading(layer) == drivers  # type: ignore[arg-type] # a layer's name


def test_traits_are_found_by_the_driver_and_its_tools_and_without_it_only_its_name() -> None:
    assert traits_of("rbd-bench") == traits_of("rados") == KINDS["rados"].traits
    names = [tool_label(name) for name in ("rbd-bench", "locust-engine", "cosbench", "strange")]
    assert names == ["rbd bench", "the engine", "COSBench", driver_label("strange")]
    assert (traits_of("strange").rounding_us, traits_of("strange").beside_gateway) == (0, False)


def test_what_sets_a_drivers_figures_apart_is_reported_for_the_layouts_it_applies_to() -> None:
    (stalls,) = [one for one in traits_of("cosbench").caveats if one.fact]
    fronts = ("beast port=80", "beast port=80 tcp_nodelay=1", "civetweb")
    applies = {
        (name, front): stalls.applies({name: front})
        for name, front in product(("rgw: rgw_frontends", "other"), fronts)
    }
    assert [where for where, there in applies.items() if there] == [
        ("rgw: rgw_frontends", "beast port=80")
    ]


def unfit(some: Workload, api: Api, driver: str) -> tuple[str, ...]:
    return KINDS[driver].unfit(some, api)


def workload(**changed: Any) -> Workload:
    return one_kind(**{"objects": {"size": "4MiB"}, "workers": [4, 16], **changed})


@pytest.mark.parametrize("pick", ["uniform", "sequential"])
@pytest.mark.parametrize("operation", ["read", "write"])
def test_one_operation_on_objects_of_one_size_is_possible_with_cephs_benchmarks(
    operation: str, pick: str
) -> None:
    some = workload(operations={operation: 1}, pick=pick)
    apis = (("rados", "rados"), ("rbd", "fio"), ("cephfs", "fio"))
    assert [unfit(some, api, driver) for api, driver in apis] == [()] * 3


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"operations": {"read": 1, "write": 1}}, "in a workload, not read and write"),
        ({"operations": {"list": 1}}, "not list"),
        ({"objects": {"size": {"uniform": ["1MB", "2MB"]}}}, "objects of one size"),
        ({"pick": {"zipf": 1.1}}, "not by popularity"),
        ({"rate_per_s": 5}, "not at a rate"),
        ({"verify": True}, "is not verified"),
        ({"objects": {"size": "4KiB", "per_container": 15}}, "16 workers have 15 objects to read"),
        ({"objects": {"size": "0B"}}, "a size above 0"),
        ({"objects": {"size": "100MiB"}, "workers": [1]}, "accept no more than 90 MiB at once"),
        ({"objects": {"size": "64MiB"}}, "16 workers with 64 MiB each are more than the 512 MiB"),
    ],
)
def test_what_cephs_benchmarks_cannot_do_is_reported_before_anything_starts(
    changed: dict[str, Any], fault: str
) -> None:
    assert any(fault in one for one in unfit(workload(**changed), "rados", "rados"))


@pytest.mark.parametrize("api", ["swift", "s3"])
def test_cosbench_is_refused_connections_that_it_would_not_make(api: Api) -> None:
    for connections in ("per-request", {"reconnect_every": 9}):
        some = workload(connections=connections)
        assert any("connections" in one for one in unfit(some, api, "cosbench"))
        assert unfit(some, api, "locust") == ()
    assert unfit(workload(connections="keep-alive"), api, "cosbench") == ()


def test_block_devices_and_files_accept_requests_that_an_osd_would_not() -> None:
    assert unfit(workload(objects={"size": "100MiB"}, workers=[1]), "rbd", "rados") == ()
