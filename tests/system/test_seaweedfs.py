"""A real SeaweedFS on lab hosts, out of PyPI's package."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from deployed_layouts import deployed, endpoint, unlimited

pytestmark = pytest.mark.system

KEEP = """
import json, os, sys
import boto3

asked = json.load(sys.stdin)
keys = {"aws_access_key_id": asked["user"], "aws_secret_access_key": asked["key"]}
s3 = boto3.client("s3", endpoint_url=asked["url"], region_name=asked["region"], **keys)
body = os.urandom(9 << 20)
s3.create_bucket(Bucket="kept")
s3.put_object(Bucket="kept", Key="a/b c", Body=body)
print(s3.get_object(Bucket="kept", Key="a/b c")["Body"].read() == body)
"""


def test_seaweedfs_syncs_three_copies_of_what_it_acknowledges(tmp_path: Path) -> None:
    with deployed("seaweedfs", tmp_path, change_hardware=unlimited) as deployment:
        asked = endpoint(deployment, "s3").model_dump_json()
        read = deployment.client.run([sys.executable, "-c", KEEP], stdin=asked).stdout
        assert read == "True\n"
        host = deployment.hosts["store-1"]
        shell = ["weed", "shell", f"-master={host.address}:9333"]
        said = host.run(shell, stdin="fs.configure\n").stdout
        (rule,) = json.loads(said[said.index("{") : said.rindex("}") + 1])["locations"]
        assert (rule["locationPrefix"], rule["fsync"]) == ("/buckets/", True)
        volumes = [
            deployment.hosts[name].run(["sh", "-c", "ls /srv/disk0/volume/kept_*.dat"]).stdout
            for name in ("store-1", "store-2", "store-3")
        ]
        assert volumes[0]
        assert volumes[1:] == volumes[:1] * 2  # each volume is on every host
