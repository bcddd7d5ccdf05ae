"""Swift at other releases and with other settings, and what of it cannot be: each a deployment of
its own, or none.
"""

import re
from pathlib import Path

import pytest

from daemon_counters import counters
from deployed_layouts import (
    check,
    check_large_object,
    deployed,
    left_over,
    shipped,
    unlimited,
    what_was_sent,
    witness,
)
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.environment import place
from weighbridge.gateways.swift.releases import RELEASES
from weighbridge.gateways.swift.swift import Swift
from weighbridge.topologies.images import find
from witness import ODD_NAMES

pytestmark = [pytest.mark.system, pytest.mark.long]

OTHER_RELEASE = [pytest.mark.releases, pytest.mark.test_all]
OTHERS = [pytest.param(f"swift-2.{one}", marks=OTHER_RELEASE) for one in (26, 30, 38)]


def with_s3(layout: str) -> str:
    return layout.replace("settings:\n", "settings:\n  s3api: true\n")


@pytest.mark.parametrize("release", [pytest.param("swift-2.26", marks=OTHER_RELEASE), "swift-2.35"])
def test_every_option_that_is_not_known_is_reported_before_anything_starts(
    release: str, tmp_path: Path
) -> None:
    text = shipped("swift-haproxy").replace("release: swift-2.35", f"release: {release}")
    text = text.replace(
        "    http_reuse", "    options: {backend: [balanc leastconn]}\n    http_reuse"
    )
    text += (
        '  options: {proxy: {"app:proxy-server": {node_timeot: 3}}, object: {"object-audito": '
        "{interval: 3}}}\n"
    )
    with pytest.raises(UsageError) as caught:
        check(text, tmp_path)
    said = str(caught.value)
    assert (
        "proxy-server.conf [app:proxy-server]: Swift does not know the option 'node_timeot' (did "
        "you mean 'node_timeout'?)" in said
    )
    assert (
        "object-server.conf [object-audito]: Swift has no such section (did you mean "
        "'object-auditor'?)" in said
    )
    assert "`balanc leastconn`: unknown keyword 'balanc' in 'backend' section" in said
    assert not [one for one in left_over() if "layout" in one]


@pytest.mark.parametrize("release", ["swift-2.35", *OTHERS])
def test_a_release_knows_every_option_that_is_written_for_it(release: str, tmp_path: Path) -> None:
    # No image is built for this: one that is there has been built for another test, or by hand.
    text = with_s3(shipped("swift-haproxy"))
    text = text.replace("background: false", "background: true\n  background_interval: 60s")
    if find(Swift.releases[release], place().images) is None:
        pytest.skip(f"there is no image of {release}")
    check(text.replace("release: swift-2.35", f"release: {release}"), tmp_path)


TAKEN = [
    (
        "{proxy: {DEFAULT: {bind_port: 11211, bind_timeout: 1}}}",
        "",
        r"(?s)gateway-1: proxy-server-[01]: died.*\| .*11211",
    ),
    pytest.param(
        "{}",
        "options: {frontend: [bind 10.80.0.11:11211]}",
        r"(?s)gateway-1: haproxy: died.*\| .*10\.80\.0\.11:11211",
        marks=pytest.mark.test_all,
    ),
]


@pytest.mark.parametrize(("swift_options", "haproxy_options", "message"), TAKEN)
def test_a_port_that_somebody_has_already_is_named(
    tmp_path: Path, swift_options: str, haproxy_options: str, message: str
) -> None:
    def change(text: str) -> str:
        return (
            text.replace("    http_reuse", f"    {haproxy_options}\n    http_reuse")
            + f"  options: {swift_options}\n"
        )

    with (
        pytest.raises(ServiceFailed, match=message),
        deployed("swift-haproxy", tmp_path, change, once=True),
    ):
        pass


def three_disks(hardware: str) -> str:
    return re.sub(
        r"disks: \[.*\]", "disks: [{size: 4GiB}, {size: 4GiB}, {size: 4GiB}]", unlimited(hardware)
    )


@pytest.mark.test_all
def test_with_servers_per_port_each_disk_has_servers_of_its_own(tmp_path: Path) -> None:
    def change(text: str) -> str:
        text = text.replace("background: false", "background: true\n  background_interval: 1h")
        return text.replace(
            "  object:\n", "  object:\n    servers_per_port: 1\n    tpool_threads: 2\n"
        )

    with deployed("swift", tmp_path, change, change_hardware=three_disks, once=True) as deployment:
        host = deployment.hosts["store-1"]
        listening = host.run(["ss", "-Hltn"]).stdout
        assert f"{host.address}:6210 " in listening
        assert f"{host.address}:6211 " in listening
        assert f"{host.address}:6200 " not in listening
        assert witness(deployment, "swift")["same"] == ODD_NAMES
        stored = host.run(
            ["sh", "-c", "ls -d /srv/node/*/objects /srv/database/*/containers"]
        ).stdout.split()
        assert set(stored) == {
            "/srv/node/d0/objects",
            "/srv/node/d1/objects",
            "/srv/database/db0/containers",
        }
        check_large_object(deployment, "swift")
        assert "1 for each disk, on a port of its own" in deployment.facts()["workers"]
        assert deployment.facts()["background: deferred updates"].endswith("every 3600 s")
        deployment.running_gateway.check()


@pytest.mark.releases
@pytest.mark.test_all
@pytest.mark.parametrize("release", ["swift-2.26", "swift-2.30"])
def test_another_release_starts_and_answers_both_apis(release: str, tmp_path: Path) -> None:
    def change(text: str) -> str:
        return with_s3(text).replace("release: swift-2.35", f"release: {release}")

    with deployed(
        "swift-haproxy", tmp_path, change, change_hardware=unlimited, once=True
    ) as deployment:
        assert f"python3-swift {release.removeprefix('swift-')}" in deployment.facts()["packages"]
        for api in ("swift", "s3"):
            seen = witness(deployment, api)
            assert seen["same"] == ODD_NAMES
            assert sorted(seen["listed"]) == sorted(ODD_NAMES)
        # Since 2.34 a part is read by its number.
        said = RELEASES[release]
        what_was_sent(deployment, "swift", said.lacks_operations)
        what_was_sent(deployment, "s3", said.s3_lacks_operations)
        assert deployment.running_gateway.drop_caches()[1].startswith("not dropped: 2 entries")
        assert counters(deployment, "memcached.gateway-1")["cmd_get"] > 0
        assert counters(deployment, "haproxy.gateway-1")["gateway-1-8081.up"] == 1
        deployment.running_gateway.settle()  # what a busy machine put off
        assert deployment.running_gateway.settle() == (
            "no container updates were deferred (async_pending)",
        )
