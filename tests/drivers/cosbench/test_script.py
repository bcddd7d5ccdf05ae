"""What COSBench can express, and the scripts it is given."""

from __future__ import annotations

import asyncio
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import asyncssh
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from tests.drivers.cosbench.conftest import change
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import collect, folder_at
from weighbridge.drivers.cosbench.script import (
    HISTOGRAM_WEIGHT,
    Script,
    StorageAccess,
    access,
    config,
    prepare_script,
    sizes,
    step_script,
    unfit,
)
from weighbridge.drivers.locust.account import Account
from weighbridge.suites import Api, Workload
from weighbridge.suites.workload import SizeBar, SizeHistogram, Uniform

REACH = StorageAccess(
    "none",
    "",
    "swift",
    "token=AUTH_tk1;storage_url=http://10.0.0.2:8080/v1/AUTH_a;logging=false",
    ("AUTH_tk1",),
)


def operations(script: Script) -> dict[str, dict[str, str]]:
    return {
        operation.get("type", ""): dict(
            part.split("=", 1) for part in operation.get("config", "").split(";")
        )
        for operation in ET.fromstring(script.text).iter("operation")
    }


# ---- what COSBench cannot do


@pytest.mark.parametrize(
    ("change_it", "api", "fault"),
    [
        ({"operations": {"head": 1}}, "swift", "COSBench has no head"),
        ({"operations": {"list": 1}}, "s3", "list does nothing over s3"),
        (
            {"operations": {"read": 2, "write": 1}},
            "swift",
            "whole per cent, and these are read 66.67 %, write 33.33 %",
        ),
        ({"operations": {"read": 1, "delete": 1}}, "swift", "reads beside deletes"),
        ({"operations": {"delete": 1}}, "swift", "choose counts without a common divisor"),
        ({"pick": "sequential"}, "swift", "choose counts without a common divisor"),
        ({"pick": {"zipf": 1.1}}, "swift", "not by popularity"),
        ({"rate_per_s": 5}, "swift", "not at a rate"),
        ({"verify": True}, "swift", "does not verify"),
        ({"runtime": 1.5}, "swift", "in whole seconds, not 1.5"),
        ({"warmup": 0.5}, "swift", "in whole seconds, not 0.5"),
        ({"objects": {"size": 3 * 2**30 + 1}}, "swift", "more than COSBench can express"),
        ({"objects": {"size": {"uniform": (1, 2**31)}}}, "swift", "2 GiB at most"),
        ({"objects": {"size": {"uniform": (0, 5)}}}, "swift", "from 1 byte"),
    ],
)
def test_what_cosbench_cannot_express_is_reported(
    change_it: dict[str, Any], api: Api, fault: str, mixed: Workload
) -> None:
    assert unfit(mixed, api) == unfit(mixed, "s3") == ()
    assert any(fault in one for one in unfit(change(mixed, **change_it), api))


def test_sequential_reads_deletes_and_lists_are_possible_with_some_counts(mixed: Workload) -> None:
    odd = {"size": 1000, "containers": 2, "per_container": 51}
    assert unfit(change(mixed, pick="sequential", objects=odd), "s3") == ()
    assert unfit(change(mixed, operations={"delete": 1}, objects=odd), "s3") == ()
    assert unfit(change(mixed, operations={"list": 1}), "swift") == ()
    assert any("swift or s3, not rados" in one for one in unfit(mixed, "rados"))


# ---- its scripts


@pytest.mark.parametrize(
    ("size", "selector"),
    [
        (65536, "c(65536)B"),
        (64000, "c(64000)B"),
        (5 * 10**9, "c(5000000)KB"),
        (Uniform(uniform=(1, 2000)), "u(1,2000)B"),
    ],
)
def test_sizes_are_in_bytes_if_possible(size: Any, selector: str) -> None:
    assert sizes(size) == selector


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8))
def test_weights_of_a_histogram_keep_their_shares_although_cosbench_is_off_by_one(
    weights: list[int],
) -> None:
    bars = tuple(
        SizeBar(size=(1000 * number, 1000 * number + 9), weight=weight)
        for number, weight in enumerate(weights, 1)
    )
    text = sizes(SizeHistogram(histogram=bars)).removeprefix("h(").removesuffix(")B")
    given_weights = [int(bar.split("|")[2]) for bar in text.split(",")]
    for weight, found in zip(weights, given_weights, strict=True):
        assert abs((found + 1) / HISTOGRAM_WEIGHT - weight / sum(weights)) < 0.00001


def test_a_step_is_one_stage_whose_writes_do_not_overwrite_what_is_read(mixed: Workload) -> None:
    script = step_script("n", mixed, "wb-mixed-", REACH, 7, "written-1-")
    root = ET.fromstring(script.text)
    (work,) = root.iter("work")
    assert script.stages == ("s1-main",)
    names = ("workers", "runtime", "rampup", "interval", "type")
    assert [work.get(name) for name in names] == ["7", "12", "2", "1", "normal"]
    assert [operation.get("ratio") for operation in root.iter("operation")] == ["80", "20"]
    found = operations(script)
    assert found["read"] == {
        "cprefix": "wb-mixed-",
        "containers": "u(1,2)",
        "oprefix": "object-",
        "objects": "u(1,50)",
    }
    write = found["write"]
    assert (write["oprefix"], write["sizes"]) == ("written-1-", "c(64000)B")
    assert write["objects"].startswith("s(1,")
    # Lists take containers in turn, since too few for all workers would fail.
    script = step_script("n", change(mixed, operations={"list": 1}), "wb-", REACH, 64, "w")
    assert operations(script)["list"] == {"cprefix": "wb-", "containers": "s(1,2)"}


def test_preparing_makes_containers_and_only_the_objects_that_are_needed(mixed: Workload) -> None:
    reads = prepare_script("n", mixed, "wb-", REACH, 500)
    assert reads.stages == ("s1-init", "s2-prepare")
    assert [work.get("workers") for work in ET.fromstring(reads.text).iter("work")] == ["1", "100"]
    writes = change(mixed, operations={"write": 1})
    assert prepare_script("n", writes, "wb-", REACH, 8).stages == ("s1-init",)


def test_a_secret_is_escaped_for_xml_and_redacted_in_all_notations(mixed: Workload) -> None:
    key = 'k&<"=/+y'
    target = Endpoint(api="s3", url="http://10.0.0.2:8000", user="AK", key=SecretStr(key))
    reach = access(target, Account(target, 5.0), "token", 5.0)
    script = step_script("n", mixed, "wb-", reach, 1, "w")
    storage = ET.fromstring(script.text).find("storage")
    assert storage is not None
    parts = dict(part.split("=", 1) for part in storage.get("config", "").split(";"))
    assert parts == {
        "accesskey": "AK",
        "secretkey": key,
        "endpoint": "http://10.0.0.2:8000",
        "path_style_access": "true",
        "timeout": "5000",
        "logging": "false",
    }
    hidden = reach.redacted(script.text + key)
    assert "k&" not in hidden
    assert "AK;" not in hidden
    assert ET.fromstring(reach.redacted(script.text)) is not None


def test_swauth_gets_user_and_auth_url_and_requests_its_token_itself() -> None:
    target = Endpoint(
        api="swift", url="http://10.0.0.2:8080/auth/v1.0", user="test:tester", key=SecretStr("k")
    )
    reach = access(target, Account(target, 5.0), "swauth", 5.0)
    assert (reach.auth, reach.storage) == ("swauth", "swift")
    expected = "username=test:tester;password=k;auth_url=http://10.0.0.2:8080/auth/v1.0"
    assert expected in reach.auth_config
    assert "logging=false" in reach.storage_config
    elsewhere = target.model_copy(update={"storage_url": "http://a/v1/x"})
    with pytest.raises(DriverError, match="not a given one"):
        access(elsewhere, Account(target, 5.0), "swauth", 5.0)


def test_targets_that_cosbench_cannot_access_are_refused() -> None:
    with pytest.raises(DriverError, match="secretkey: its value has a semicolon"):
        config({"secretkey": "a;b"})
    target = Endpoint(api="s3", url="http://10.0.0.2", user="AK", key=SecretStr("k"))
    for more, words in (
        ({"token": SecretStr("t")}, "not support session tokens"),
        ({"url": "https://10.0.0.2", "ca_file": "/ca.pem"}, "trusts only its Java's authorities"),
    ):
        with pytest.raises(DriverError, match=words):
            access(target.model_copy(update=more), cast("Account", None), "token", 5.0)


class AnyUser(asyncssh.SSHServer):
    """Lets in anyone with the given key."""

    def __init__(self, key: asyncssh.SSHKey) -> None:
        self._key = key

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == "bench" and key.public_data == self._key.public_data


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Serves `tmp_path` by SFTP, to a user with a separate home who knows the server; makes the
    place of a path in it.
    """
    host_key, user_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def serve() -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            lambda: AnyUser(user_key),
            "127.0.0.1",
            0,
            server_host_keys=[host_key],
            sftp_factory=True,
            allow_scp=False,
        )

    async def end(server: asyncssh.SSHAcceptor) -> None:
        server.close()
        await server.wait_closed()
        # Connections whose peer is gone end by themselves, in separate tasks.
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(serve(), loop).result(20)
    port = server.get_port()
    ssh = tmp_path / "home" / ".ssh"
    ssh.mkdir(parents=True)
    user_key.write_private_key(str(ssh / "id_ed25519"))
    (ssh / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    try:
        yield lambda path: f"ssh://bench@127.0.0.1:{port}{tmp_path}/{path}"
    finally:
        asyncio.run_coroutine_threadsafe(end(server), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_an_archive_is_read_from_another_host_like_one_of_this_host(
    tmp_path: Path, place: Callable[[str], str]
) -> None:
    folder = tmp_path / "cosbench" / "archive" / "w1-n"
    folder.mkdir(parents=True)
    (folder.parent / "run-history.csv").write_text("Id,Name\nw1,n,2026-11-21 00:00:00,then\n")
    (folder / "w1-n.csv").write_text("figures")
    (folder / "scripts.log").touch()
    (tmp_path / "cosbench" / "log").mkdir()
    log = "x" * 600_000 + "\n[INFO] - begin to process workload w1\n[ERROR] - why\n"
    (tmp_path / "cosbench" / "log" / "system.log").write_text(log)
    reached = folder_at(place("cosbench/archive"))
    try:
        when = datetime.fromisoformat("2026-11-21 00:00:00")
        found = collect(reached, "w1", "n", when, "FINISHED", lambda _seconds: None)
        assert found.summary == "figures"
        assert found.system_log == "[ERROR] - why\n"
        assert reached.names("w2-none") == ()
        assert reached.read("w1-n/none") is None
    finally:
        reached.close()


def test_a_missing_folder_or_key_and_an_unknown_host_are_reported(
    tmp_path: Path, place: Callable[[str], str]
) -> None:
    with pytest.raises(DriverError, match="there is no such folder on that host"):
        folder_at(place("none"))
    for name, words, advice in (
        ("id_ed25519", "Permission denied", "with a key"),
        ("known_hosts", "this user does not know its key", "ssh-keyscan"),
    ):
        (tmp_path / "home" / ".ssh" / name).unlink()
        with pytest.raises(DriverError, match=words) as error:
            folder_at(place(""))
        assert advice in error.value.advice
