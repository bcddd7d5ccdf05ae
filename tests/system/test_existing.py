"""A real Ceph RGW as a gateway that already runs: behind TLS of an authority of its own, with
virtual hosts, seen by boto3.

The RGW runs on lab hosts; the command runs in the network of their client, where a name server
knows every name.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from deployed_layouts import deployed, endpoint, on_client
from suite_command import heard, in_network_of, started, trial, valid_steps, weighbridge
from tls_proxy import authority
from weighbridge.common.endpoint import Endpoint
from weighbridge.results.run.store import RunStore
from weighbridge.topologies.deployment import Deployment

pytestmark = pytest.mark.system

TESTS = Path(__file__).parents[1]
PORT = 8443
SECURE = f"""
name: secure
about: An RGW behind TLS, with virtual hosts
gateway: existing
release: any
place: {{}}
settings:
  about: Ceph RGW of this test
  s3:
    url: "https://store.test:{PORT}"
    addressing: virtual
    credentials: profile theirs
    ca_file: CA
  swift:
    auth_url: "https://store.test:{PORT}/auth/v1.0"
    storage_url: "https://store.test:{PORT}/swift/v1"
    ca_file: CA
"""
WITNESS = """
import json, sys, sdk
s3 = sdk.s3(json.load(sys.stdin))
if "--make" in sys.argv:
    s3.create_bucket(Bucket="theirs")
    s3.put_object(Bucket="theirs", Key="precious", Body=b"x")
names = [one["Name"] for one in s3.list_buckets()["Buckets"]]
listed = lambda name: s3.list_objects_v2(Bucket=name).get("Contents", [])
print(json.dumps({name: [one["Key"] for one in listed(name)] for name in names}))
"""


SESSION = """
import json, sys, boto3
e = json.load(sys.stdin)
keys = dict(
    endpoint_url=e["url"], region_name=e["region"],
    aws_access_key_id=e["user"], aws_secret_access_key=e["key"],
)
allow = {"Effect": "Allow", "Action": ["sts:GetSessionToken", "s3:*"], "Resource": ["*"]}
policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
boto3.client("iam", **keys).put_user_policy(
    UserName="weigh", PolicyName="sessions", PolicyDocument=policy
)
session = boto3.client("sts", **keys).get_session_token(DurationSeconds=3600)["Credentials"]
print(json.dumps([session[name] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")]))
"""


def text_of_suite(
    api: str = "[swift, s3]",
    operations: str = "{read: 40, write: 30, head: 10, list: 10, delete: 10}",
    runtime: str = "2s",
    users: str = "engine",
    **more: str,
) -> str:
    return trial(
        *(api, operations, runtime),
        size="64KiB",
        containers=3,
        per_container=4,
        workers=4,
        verify="true",
        suite=f"users: {users}",
        **more,
    )


class Site:
    """The RGW with what is before it, and the command in the network of its client."""

    def __init__(self, deployment: Deployment, folder: Path, ca: Path) -> None:
        self.deployment, self.client = deployment, deployment.client
        self.s3, self.swift = endpoint(deployment, "s3"), endpoint(deployment, "swift")
        self.folder, self.ca = folder, ca
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:2\n")
        deployment.hosts["gateway-1"].run(
            ["radosgw-admin", "caps", "add", "--uid", "weigh", "--caps", "user-policy=*"]
        )
        self.session: list[str] = on_client(deployment, "s3", "-c", SESSION)
        (folder / "credentials").write_text(
            f"[theirs]\naws_access_key_id = {self.s3.user}\naws_secret_access_key = "
            f"{self.s3.key.get_secret_value()}\n"
            "[session]\naws_access_key_id = {}\naws_secret_access_key = {}\naws_session_token = "
            "{}\n".format(*self.session)
        )
        (folder / "credentials").chmod(0o600)

    @property
    def inside(self) -> tuple[str, ...]:
        """What starts a program in the client's network, with a name server of ours."""
        names = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        return (
            *in_network_of(self.client),
            *("unshare", "--mount", "--propagation", "private"),
            *("bash", "-c", names, str(self.folder / "resolv.conf")),
        )

    def compare(self, name: str, change: Mapping[str, str], **suite: str) -> str:
        """The words that weigh the gateway, with changes to the text of its layout."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        text = SECURE
        for old, new in change.items():
            assert old in text
            text = text.replace(old, new)
        (folder / "secure.yaml").write_text(text.replace("CA", str(self.ca)))
        (folder / "trial.yaml").write_text(text_of_suite(**suite))
        files = f"--suite {folder}/trial.yaml --layouts {folder}/secure.yaml --out {folder}/runs"
        return f"compare --hardware this-machine {files} --no-charts"

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "WEIGHBRIDGE_HOME": str(self.folder / "home"),
            "WEIGHBRIDGE_STATE": str(self.folder / "state"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "credentials"),
            "ST_USER": self.swift.user,
            "ST_KEY": self.swift.key.get_secret_value(),
            **more,
        }

    def run(
        self, name: str, change: Mapping[str, str] | None = None, **suite: str
    ) -> subprocess.CompletedProcess[str]:
        return self.told(self.compare(name, change or {}, **suite))

    def told(self, words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return weighbridge(words, within=self.inside, env=self.environment(**environment))

    def seen(self, *options: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = on_client(self.deployment, "s3", "-c", WITNESS, *options)
        return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("existing")
    ca, certificate = authority(folder / "tls", ["store.test", "*.store.test"])

    def named(text: str) -> str:
        sessions = "rgw_s3_auth_use_sts: true, rgw_sts_key: sixteen-bytes-16"
        return f"{text}  options: {{client: {{rgw_dns_name: store.test, {sessions}}}}}\n"

    with deployed("rgw-beast", folder, named, once=True) as deployment, ExitStack() as stack:
        site = Site(deployment, folder, ca)
        backend: Endpoint = site.s3
        address, port = backend.url.removeprefix("http://").split(":")
        proxy = (
            str(TESTS / "support" / "tls_proxy.py"),
            str(certificate),
            "127.0.0.1",
            str(PORT),
            address,
            port,
        )
        for program in (proxy, (str(TESTS / "system" / "wildcard_dns.py"),)):
            process = subprocess.Popen(
                [*site.inside, sys.executable, *program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.communicate, "")
            assert process.stdout is not None
            assert process.stdout.readline()
        assert site.seen("--make") == {"theirs": ["precious"]}
        yield site


def test_virtual_hosts_behind_tls_are_measured_with_a_session_and_only_the_runs_buckets_go(
    site: Site,
) -> None:
    done = site.run("engine", {"profile theirs": "profile session"})
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (site.folder / "engine" / "runs").iterdir()
    steps = RunStore.open(run).steps()
    assert [step.key.api for step in steps] == ["swift", "s3"]
    for step in steps:
        assert step.measurement is not None, step.notes
        assert not any(tally.errors for tally in step.measurement.tallies), step.notes
        assert {tally.operation for tally in step.measurement.tallies} == {
            "read",
            "write",
            "head",
            "list",
            "delete",
        }
    facts = next(
        sheet.facts for sheet in RunStore.open(run).manifest.sheets if sheet.layout == "secure"
    )
    assert facts["s3: addressing"].startswith("virtual hosts")
    assert "signed by Test authority" in facts["s3: tls"]
    secrets = [word.encode() for word in (*site.session[1:], site.swift.key.get_secret_value())]
    written = [path.read_bytes() for path in run.rglob("*") if path.is_file()]
    assert not [secret for secret in secrets for text in written if secret in text]
    assert site.seen() == {"theirs": ["precious"]}


@pytest.mark.test_all
def test_sdk_users_reach_virtual_hosts_too(site: Site) -> None:
    done = site.run("sdk", api="[s3]", users="sdk", operations="{read: 60, write: 40}")
    (run,) = (site.folder / "sdk" / "runs").iterdir()
    (step,) = RunStore.open(run).steps()
    assert step.measurement is not None, done.stdout + done.stderr
    assert not any(tally.errors for tally in step.measurement.tallies)
    assert sum(tally.count for tally in step.measurement.tallies) > 0
    assert site.seen() == {"theirs": ["precious"]}


def signalled(site: Site, number: signal.Signals) -> tuple[int, str]:
    """A run of one step that is sent a signal in that step: its exit status, and all that it
    printed.
    """
    # Longer than boto3 takes to look on a busy machine; resumed, it is measured to its end.
    words = site.compare(number.name.lower(), {}, runtime="20s", rate="20", api="[s3]")
    with started(words, subprocess.PIPE, within=site.inside, env=site.environment()) as process:
        try:
            said = heard(process, "step 1/1")
            assert len(site.seen()) == 4
            process.send_signal(number)
            said += process.communicate(timeout=600)[0]
        finally:
            process.kill()
    return process.returncode, said


def test_a_run_that_is_asked_to_end_leaves_none_of_its_buckets(site: Site) -> None:
    code, said = signalled(site, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM, said
    assert site.seen() == {"theirs": ["precious"]}
    assert said.count("deleted the bucket wb-") == 3


@pytest.mark.test_all
def test_a_killed_run_leaves_its_buckets_to_the_run_that_resumes_it_and_which_leaves_none(
    site: Site,
) -> None:
    code, said = signalled(site, signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    assert len(site.seen()) == 4
    (run,) = (site.folder / "sigkill" / "runs").iterdir()
    done = site.told(f"resume --no-charts {run}")
    valid_steps(done.returncode, done.stdout + done.stderr, RunStore.open(run))
    assert site.seen() == {"theirs": ["precious"]}
    (step,) = RunStore.open(run).steps()
    assert step.measurement is not None, step.notes


@pytest.mark.test_all
def test_what_a_killed_run_left_is_swept_by_clean_and_nothing_else_is(site: Site) -> None:
    code, said = signalled(site, signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    assert len(site.seen()) == 4
    sweep = f"clean {site.folder}/sigkill/secure.yaml --delete"
    done = site.told(sweep)
    assert done.stdout.count("a run may still be using it") >= 3, done.stdout + done.stderr
    assert len(site.seen()) == 4
    done = site.told(f"{sweep} --older-than 1ms")
    said = done.stdout + done.stderr
    assert (done.returncode, done.stdout.count("deleted, with ")) == (0, 3), said
    assert site.seen() == {"theirs": ["precious"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"    credentials: profile theirs\n    ca_file: CA": "    credentials: profile theirs"},
            "its certificate is not accepted",
        ),
        *(
            pytest.param(*one, marks=pytest.mark.test_all)
            for one in (
                (
                    {"store.test": "elsewhere.test"},
                    "its certificate is not accepted: Hostname mismatch",
                ),
                ({"profile theirs": "profile others"}, "no profile 'others' with keys in"),
                ({"/auth/v1.0": "/nowhere/v1.0"}, "swift auth at https://store.test"),
                (
                    {f'    storage_url: "https://store.test:{PORT}/swift/v1"\n': ""},
                    "unencrypted; set `storage_url` to one that uses https",
                ),
            )
        ),
    ],
)
def test_what_is_wrong_is_reported_before_anything_is_measured(
    site: Site, change: dict[str, str], words: str
) -> None:
    done = site.run("wrong", change)
    assert done.returncode in (2, 3), done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (site.folder / "wrong" / "runs").exists()


def test_a_wrong_key_is_reported_with_where_it_came_from(site: Site) -> None:
    words = site.compare("key", {"profile theirs": "environment"})
    done = site.told(words, AWS_ACCESS_KEY_ID=site.s3.user, AWS_SECRET_ACCESS_KEY="wrong")
    assert done.returncode == 3
    assert "s3 make bucket at https://store.test" in done.stderr
    assert "(status 403)" in done.stderr
    assert "credentials of the environment" in done.stderr
    assert site.seen() == {"theirs": ["precious"]}
