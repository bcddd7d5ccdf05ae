"""A real SeaweedFS on lab hosts, out of PyPI's package."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from deployed_layouts import deployed, large_object, unlimited

pytestmark = pytest.mark.system

SIZE_BYTES = 20 << 20
"""Several of its chunks."""


def test_seaweedfs_syncs_three_copies_of_what_it_acknowledges(tmp_path: Path) -> None:
    with deployed("seaweedfs", tmp_path, change_hardware=unlimited) as deployment:
        seen = large_object(deployment, "s3", SIZE_BYTES)
        assert (seen["length"], seen["read"]) == (SIZE_BYTES, seen["sent"])
        host = deployment.hosts["store-1"]
        line = f"-master={host.address}:9333"
        said = host.run(["weed", "shell", line], stdin="fs.configure\n").stdout
        (rule,) = json.loads(said[said.index("{") : said.rindex("}") + 1])["locations"]
        assert (rule["locationPrefix"], rule["fsync"]) == ("/buckets/", True)
        volumes = [
            deployment.hosts[name].run(["sh", "-c", "ls /srv/disk0/volume/*.dat"]).stdout
            for name in ("store-1", "store-2", "store-3")
        ]
        assert len(volumes[0].split()) > 1
        assert volumes[1:] == volumes[:1] * 2  # each volume is on every host
