"""Files for Kubernetes fit what their operators take, hide the keys, and run as these run them."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml

from tests.drivers.locust.local_driver import Null, null
from weighbridge.cli import init
from weighbridge.common.errors import UsageError
from weighbridge.kubernetes_file import KEYS, OPERATORS, REPLACE, Operator, kubernetes_file

__all__ = ["null"]

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "tests" / "data" / "kubernetes"
KEY = "planted/secret+key-of-this-pod"
REPLAYED = ("endpoints", "quick", "small-objects", "modern-s3", "swift-requests")
SUITE = """
name: tiny-
about: As a pod replays it
api: [s3]
workloads:
  - name: read
    objects: {size: 4KB, containers: 1, per_container: 10}
    operations: {read: 100}
    workers: [2]
    runtime: 2s
"""


def schema(name: str) -> dict[str, Any]:
    """A schema that refuses what it does not name, as an API server drops it."""

    def strict(part: Any) -> Any:
        if isinstance(part, dict):
            part = {key: strict(value) for key, value in part.items()}
            if "properties" in part:
                part.setdefault("additionalProperties", False)
        return part

    loaded = strict(yaml.safe_load((SCHEMAS / f"{name}.yaml").read_text()))
    assert isinstance(loaded, dict)
    return loaded


def objects(operator: Operator, base: str | None = None) -> list[dict[str, Any]]:
    """All objects that the cluster gets, and the chart's values."""
    found = list(yaml.safe_load_all(kubernetes_file(operator, base)))
    if operator == "chart":
        found += found[0]["extraObjects"]
    return found


def name_of(one: Mapping[str, Any]) -> str:
    if "kind" not in one:
        return "chart-values"
    version = str(one["apiVersion"]).replace("/", "-")
    return version if one["kind"] == "LocustTest" else f"{version}-{one['kind']}"


@pytest.mark.parametrize("name", REPLAYED)
@pytest.mark.parametrize("operator", OPERATORS)
def test_each_object_is_one_that_its_operator_takes(operator: Operator, name: str) -> None:
    for one in objects(operator, name):
        jsonschema.validate(one, schema(name_of(one)))


@pytest.mark.parametrize(
    ("operator", "fault"),
    [
        ("community", ("spec", "env", "secretRef")),
        ("official", ("spec", "env", 0, "valueFrom")),
        ("chart", ("loadtest", "environment_load_from_secret")),
    ],
)
def test_a_key_that_an_operator_does_not_know_is_found(
    operator: Operator, fault: Sequence[str | int]
) -> None:
    one = next(one for one in objects(operator) if {"spec", "loadtest"} & {*one})
    inner: Any = one
    for part in fault[:-1]:
        inner = inner[part]
    inner[fault[-1]] = {}
    with pytest.raises(jsonschema.ValidationError, match="Additional properties"):
        jsonschema.validate(one, schema(name_of(one)))


@pytest.mark.parametrize("operator", OPERATORS)
def test_names_refer_to_what_is_there(operator: Operator) -> None:
    found = objects(operator)
    names = {one["kind"]: one["metadata"]["name"] for one in found if "kind" in one}
    if operator == "chart":
        load = found[0]["loadtest"]
        assert load["locust_locustfile_configmap"] == names["ConfigMap"]
        (secret,) = load["environment_load_from_secrets"]
        assert f"kubectl create secret generic {secret} " in kubernetes_file(operator)
        return
    spec = found[-1]["spec"]
    if operator == "official":
        assert spec["locustfile"]["configMap"]["name"] == names["ConfigMap"]
        return
    assert spec["testFiles"]["configMapRef"] == names["ConfigMap"]
    assert spec["env"]["secretRefs"] == [{"name": names["Secret"]}]


@pytest.mark.parametrize("name", ["endpoints", "quick"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_keys_have_a_place_that_is_no_argument_and_no_config_map(
    monkeypatch: pytest.MonkeyPatch, operator: Operator, name: str
) -> None:
    for key in (key for both in KEYS.values() for key in both):
        monkeypatch.setenv(key, KEY)
    text = kubernetes_file(operator, name)
    assert KEY not in text
    api = "swift" if name == "quick" else "s3"
    places: list[Any] = []
    for one in objects(operator, name):
        for path, value in leaves(one):
            if path[-1] in KEYS[api] or value in KEYS[api]:
                places.append((one.get("kind"), *path[:2]))
            assert value != REPLACE or path[0] in {"stringData", "spec"}, path
            if path[-1] in {"args", "command"} or one.get("kind") == "ConfigMap":
                assert not any(key in str(value) for key in KEYS[api]), path
    assert {*places} == {
        "community": {("Secret", "stringData", key) for key in KEYS[api]},
        "official": {("LocustTest", "spec", "env")},
        "chart": set(),
    }[operator]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SUITE.replace("[s3]", "[rados]"), "no API of gateways"),
        (SUITE.replace("runtime: 2s", "runtime: 2s\n    rate_per_s: 5"), "rate_per_s"),
    ],
)
def test_what_locusts_users_cannot_replay_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "suite.yaml").write_text(text)
    with pytest.raises(UsageError, match=words):
        kubernetes_file("community", str(tmp_path / "suite.yaml"))


def test_the_chart_keeps_what_looks_like_a_template(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE + "# {{ of no template }}\n")
    _, config_map = objects("chart", str(tmp_path / "suite.yaml"))
    assert config_map["data"]["suite.yaml"].endswith('# {{ "{{" }} of no template }}\n')


def test_the_verb_knows_all_operators() -> None:
    (option,) = (one for one in init.command.params if one.name == "operator")
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == OPERATORS


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def processes(operator: Operator, spec: Mapping[str, Any]) -> list[list[str]]:
    """What pods run, as each operator's own code makes it (see README.md of the schemas)."""
    if operator == "official":
        args = shlex.split(spec["args"])
        worker = ["--worker", "--master-host", "127.0.0.1", *args]
        return [["--master", *args], *[worker] * spec["workers"]]
    replicas = spec["worker"]["replicas"]
    master = [
        *spec["master"]["command"].split(),
        *("--master", f"--expect-workers={replicas}", "--autostart"),
        *("--autoquit", "0", "--enable-rebalancing", "--only-summary"),
    ]
    worker = [*spec["worker"]["command"].split(), "--worker"]
    return [master, *[[*worker, "--master-host=127.0.0.1"]] * replicas]


@pytest.mark.long
@pytest.mark.parametrize("operator", ["community", "official"])
def test_pods_replay_the_suite_with_keys_of_their_environment(
    null: Callable[..., Null], tmp_path: Path, operator: Operator
) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE)
    (_, *_, test) = found = objects(operator, str(tmp_path / "suite.yaml"))
    config_map = found[0]
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name, text in config_map["data"].items():
        (mounted / name).write_text(text)
    spec = test["spec"]
    folder = {"community": "/lotest/src", "official": "/home/locust"}[operator]
    env = spec["env"]["variables"] if operator == "community" else spec["env"]
    variables = {one["name"]: one["value"].replace(folder, str(mounted)) for one in env}
    target = null()
    variables |= {"LOCUST_HOST": target.url, **dict.fromkeys(KEYS["s3"], KEY)}
    port = str(free_port())
    variables |= {"LOCUST_MASTER_NODE_PORT": port, "LOCUST_MASTER_BIND_PORT": port}
    variables |= {"LOCUST_WEB_PORT": str(free_port())}
    locust = Path(sys.executable).parent / "locust"
    running = [
        subprocess.Popen(
            [locust, *(one.replace(folder, str(mounted)) for one in line)],
            cwd=mounted,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in processes(operator, spec)
    ]
    try:
        outputs = [one.communicate(timeout=60)[0] for one in running]
    finally:
        for one in running:
            one.kill()
    assert [one.returncode for one in running] == [0] * len(running), "\n".join(outputs)
    (row,) = [line for line in outputs[0].splitlines() if line.split()[:2] == ["read", "read"]][:1]
    assert int(row.split()[2]) > 0
    assert KEY not in "".join(outputs)
