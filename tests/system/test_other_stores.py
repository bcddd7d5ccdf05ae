"""Real stores that are neither Ceph nor Swift on lab hosts: SeaweedFS, out of PyPI's package; and
Garage, where its program was built before, which takes twenty minutes:

    pytest -q tests/system/test_other_stores.py -m by_hand
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deployed_layouts import deployed, on_client, unlimited
from weighbridge.environment import place
from weighbridge.gateways.garage.garage import Garage
from weighbridge.topologies.artefacts import path_of

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
print(json.dumps(s3.get_object(Bucket="kept", Key="a/b c")["Body"].read() == body))
"""


BLOCKS = "find /srv/disk0/data -type f -size +1000k -printf '%f\\n' | sort"


def test_seaweedfs_syncs_three_copies_of_what_it_acknowledges(tmp_path: Path) -> None:
    with deployed("seaweedfs", tmp_path, change_hardware=unlimited) as deployment:
        assert on_client(deployment, "s3", "-c", KEEP)
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


@pytest.mark.by_hand
@pytest.mark.test_all
def test_garage_keeps_three_copies_of_each_block_and_its_nodes_know_that_they_are_to_sync(
    tmp_path: Path,
) -> None:
    (image,) = Garage.releases.values()
    if not path_of(image.programs[0], place().images).is_file():
        pytest.skip("its program was not built here: weighbridge up garage")
    with deployed("garage", tmp_path, change_hardware=unlimited) as deployment:
        assert on_client(deployment, "s3", "-c", KEEP)
        blocks = [
            deployment.hosts[name].run(["sh", "-c", BLOCKS]).stdout.split()
            for name in ("store-1", "store-2", "store-3")
        ]
        assert len(blocks[0]) == 9
        assert blocks[1:] == blocks[:1] * 2
        host = deployment.hosts["store-2"]
        config = host.run(["cat", "/etc/garage.toml"]).stdout
        assert "data_fsync = true\n" in config
        status = host.run(["garage", "-c", "/etc/garage.toml", "status"]).stdout
        assert status.count("10.") >= 4, json.dumps(status)
