"""Real gateways that cannot come up, and one with its background daemons: each a deployment of its
own.
"""

from pathlib import Path

import pytest

from deployed_layouts import deployed, left_over
from weighbridge.common.errors import CommandFailed, ServiceFailed

pytestmark = pytest.mark.system

IMPOSSIBLE = [
    # radosgw ends by itself; the daemon's own words are shown
    (
        "rgw-beast",
        "{client: {rgw_frontends: beast endpoint=nowhere}}",
        ServiceFailed,
        r"(?s)radosgw: died.*\| .*nowhere",
    ),
    # Ceph takes an unknown option in silence, and the running daemon is asked for it
    (
        "rgw-beast",
        "{osd: {osd_op_num_shard: 3}}",
        ServiceFailed,
        "does not know the option 'osd_op_num_shard'",
    ),
    # a command fails before any daemon runs
    (
        "rgw-beast",
        "{osd: {osd_data: /nowhere}}",
        CommandFailed,
        "(?s)store-.*ceph-osd --mkfs.*/nowhere",
    ),
    # an OSD has the port already, which it chose by itself, and answers on it
    ("rgw-on-osd", "{}", ServiceFailed, r"(?s)store-1: radosgw: died.*\| .*(in use|bind)"),
    (
        "swift",
        '{object: {DEFAULT: {bind_port: "none"}}}',
        ServiceFailed,
        r"(?s)object-server: died.*\| bind_port wasn't properly set",
    ),
    (
        "swift",
        '{proxy: {"pipeline:main": {pipeline: healthcheck nonsense proxy-server}}}',
        ServiceFailed,
        "(?s)proxy-server: died.*nonsense",
    ),
]
MADE = (0, 1, 4)
"""Those that `make test` tries: one that dies of each gateway, and an option that is not known."""


@pytest.mark.parametrize(
    ("layout", "options", "error", "message"),
    [
        one if number in MADE else pytest.param(*one, marks=pytest.mark.test_all)
        for number, one in enumerate(IMPOSSIBLE)
    ],
)
def test_what_cannot_come_up_says_why_and_leaves_nothing(
    tmp_path: Path, layout: str, options: str, error: type[Exception], message: str
) -> None:
    def change(text: str) -> str:
        if layout == "rgw-on-osd":
            text = text.replace("radosgw: [gateway-1]", "radosgw: [store-1]").replace(
                "frontend: beast", "port: 6800"
            )
        return f"{text}  options: {options}\n"

    with (
        pytest.raises(error, match=message),
        deployed("swift" if layout == "swift" else "rgw-beast", tmp_path, change, once=True),
    ):
        pass
    assert left_over() == []


def test_background_daemons_run_when_the_layout_says_so(tmp_path: Path) -> None:
    with deployed(
        "swift",
        tmp_path,
        lambda text: text.replace("background: false", "background: true"),
        once=True,
    ) as deployment:
        deployment.running_gateway.check()
        running = deployment.hosts["store-1"].run(["ps", "axo", "args"]).stdout
        assert all(
            f"swift-{name} " in running
            for name in ("object-replicator", "container-updater", "account-reaper")
        )
        assert deployment.facts()["background: repair of replicas"].startswith("replicators run")
