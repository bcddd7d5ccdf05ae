"""Files for Kubernetes: a ConfigMap with the shipped locustfile and a suite, a Secret for the keys,
and the test itself, for either operator of Locust or its Helm chart (docs/locust.md).

Keys are read by each process from its environment: they are in no argument and no ConfigMap.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args

import yaml

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.drivers.locust.fit import refuse_unfit
from weighbridge.suites import Workload
from weighbridge.suites import loader as suite_files

Operator = Literal["community", "official", "chart"]
OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)
KEYS: Final[Mapping[ObjectApi, tuple[str, str]]] = MappingProxyType(
    {"s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "swift": ("ST_USER", "ST_KEY")}
)
HOST: Final[Mapping[ObjectApi, str]] = MappingProxyType(
    {"s3": "http://gateway:8080", "swift": "http://gateway:8080/auth/v1.0"}
)
REPLACE: Final = "REPLACE"
"""In place of keys, which are no affair of this command."""
IMAGE: Final = "registry.example/weighbridge-locust"
WORKERS: Final = 2
WIDTH: Final = 100
LOCUSTFILE: Final = "locustfile.py"
SUITE: Final = "suite.yaml"


class LocustTest(Record):
    """What is run, wherever the pods come from."""

    name: str
    suite_text: str
    workload: Workload
    api: ObjectApi

    @property
    def keys_name(self) -> str:
        """The Secret's name."""
        return f"{self.name}-keys"

    @property
    def arguments(self) -> str:
        """Locust's own options, of the master."""
        users = max(self.workload.workers)
        runtime_s = max(1, round(self.workload.runtime))
        return f"--users {users} --spawn-rate {users} --run-time {runtime_s}s"

    def variables(self, folder: str) -> dict[str, str]:
        """What each process reads from its environment and may be shown to all.

        `folder` is where the pods have the ConfigMap.
        """
        return {
            "LOCUST_HOST": HOST[self.api],
            "WEIGHBRIDGE_SUITE": f"{folder}/{SUITE}",
            "WEIGHBRIDGE_WORKLOAD": self.workload.name,
            "WEIGHBRIDGE_API": self.api,
        }


def kubernetes_file(operator: Operator, base: str | None = None) -> str:
    """The text of a file for `kubectl apply`, or of values for `helm install`, that replays the
    first workload of a suite (a path, or the name of one that ships; None: `endpoints`).

    Raises UsageError or DocumentError for a suite that is not there or not valid, or that Locust's
    users cannot replay.
    """
    path = suite_files.find(base or "endpoints")
    suite = suite_files.load(path)
    api = next((one for one in suite.api if one in KEYS), None)
    if api is None:
        raise UsageError(
            f"{suite.name} is for {', '.join(suite.api)}, and for no API of gateways",
            advice="Give a suite for s3 or swift with `--of`.",
        )
    found = LocustTest(
        name=f"weighbridge-{suite.name}".rstrip("-"),
        suite_text=path.read_text(encoding="utf-8"),
        workload=suite.workloads[0],
        api=cast("ObjectApi", api),
    )
    refuse_unfit(found.workload, found.api, "engine")
    return "".join(_FILES[operator](found))


def _community(test: LocustTest) -> Iterator[str]:
    folder = "/lotest/src"
    yield _comment(
        "For the operator AbdelrhmanHamouda/locust-k8s-operator: kubectl apply -f FILE.",
        _EDIT,
        "It starts the test by itself, and ends its pods a minute after; their logs have the "
        "statistics.",
    )
    yield _object(_config_map(test))
    yield _object(_secret(test))
    command = f"--locustfile {folder}/{LOCUSTFILE}"
    yield _object(
        {
            "apiVersion": "locust.io/v2",
            "kind": "LocustTest",
            "metadata": {"name": test.name},
            "spec": {
                "image": IMAGE,
                "master": {"command": f"{command} {test.arguments}"},
                "worker": {"command": command, "replicas": WORKERS},
                "testFiles": {"configMapRef": test.name, "srcMountPath": folder},
                "env": {
                    "secretRefs": [{"name": test.keys_name}],
                    "variables": _pairs(test.variables(folder)),
                },
            },
        }
    )


def _official(test: LocustTest) -> Iterator[str]:
    folder = "/home/locust"
    yield _comment(
        "For the operator locustio/k8s-operator: kubectl apply -f FILE.",
        _EDIT,
        "This operator gives pods no Secret: anyone who may read its LocustTests can read the "
        "keys in `env`. Use keys of a user made for this test, or the other operator.",
    )
    yield _object(_config_map(test))
    keys = dict.fromkeys(KEYS[test.api], REPLACE)
    yield _object(
        {
            "apiVersion": "locust.io/v1",
            "kind": "LocustTest",
            "metadata": {"name": test.name},
            "spec": {
                "image": IMAGE,
                "workers": WORKERS,
                # The operator gives them to the workers as well, which ignore them.
                "args": f"--locustfile {folder}/{LOCUSTFILE} {test.arguments} --headless "
                f"--expect-workers {WORKERS}",
                "env": _pairs({**test.variables(folder), **keys}),
                "locustfile": {"configMap": {"name": test.name}},
            },
        }
    )


def _chart(test: LocustTest) -> Iterator[str]:
    folder = "/mnt/locust"
    variables = test.variables(folder)
    literals = " ".join(f"--from-literal={name}=..." for name in KEYS[test.api])
    yield _comment(
        "Values for the chart deliveryhero/locust: helm install NAME deliveryhero/locust --values "
        "FILE.",
        _EDIT,
        "Its page starts tests. Helm keeps values, so the keys are not among them. Before:",
        f"kubectl create secret generic {test.keys_name} {literals}",
    )
    config_map = _config_map(test)
    # Helm takes these objects for templates.
    config_map["data"] = {
        name: text.replace("{{", '{{ "{{" }}') for name, text in config_map["data"].items()
    }
    image, _, tag = f"{IMAGE}:latest".partition(":")
    yield _dump(
        {
            "image": {"repository": image, "tag": tag},
            "loadtest": {
                "name": test.name,
                "locust_locustfile": LOCUSTFILE,
                "locust_locustfile_path": folder,
                "locust_locustfile_configmap": test.name,
                "locust_lib_configmap": "",
                "locust_host": variables.pop("LOCUST_HOST"),
                "locustCmd": "locust",
                "environment": variables,
                "environment_load_from_secrets": [test.keys_name],
            },
            "worker": {"replicas": WORKERS},
            "extraObjects": [config_map],
        }
    )


_EDIT: Final = (
    "Edit it first: the image (docs/locust.md has its steps), the host, the keys, the number of "
    "workers and users."
)
_FILES: Final[Mapping[Operator, Callable[[LocustTest], Iterator[str]]]] = MappingProxyType(
    {"community": _community, "official": _official, "chart": _chart}
)


def _config_map(test: LocustTest) -> dict[str, Any]:
    locustfile = Path(str(resources.files("weighbridge"))) / "locust" / LOCUSTFILE
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": test.name},
        "data": {LOCUSTFILE: locustfile.read_text(encoding="utf-8"), SUITE: test.suite_text},
    }


def _secret(test: LocustTest) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": test.keys_name},
        "type": "Opaque",
        "stringData": dict.fromkeys(KEYS[test.api], REPLACE),
    }


def _pairs(variables: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _text)


def _dump(value: dict[str, Any]) -> str:
    return yaml.dump(value, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=10**9)


def _object(value: dict[str, Any]) -> str:
    return f"---\n{_dump(value)}"


def _comment(*lines: str) -> str:
    return "".join(
        f"# {line}\n"
        for text in lines
        for line in textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    )
