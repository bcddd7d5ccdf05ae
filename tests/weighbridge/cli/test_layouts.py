from pathlib import Path

from tests.weighbridge.command_line import weighbridge
from weighbridge.topologies.loader import shipped_layouts


def test_topologies_lists_every_layout_release_and_parameter(tmp_path: Path) -> None:
    done = weighbridge("topologies", folder=tmp_path, COLUMNS="400")
    assert done.returncode == 0, done.stderr
    for name in shipped_layouts():
        assert name in done.stdout
    for word in (
        "ceph-16",
        "swift-2.30",
        "radosgw.threads",
        "pools.replicas",
        "object.keep_cache_private",
    ):
        assert word in done.stdout


def test_topologies_of_one_gateway_leaves_the_others_out(tmp_path: Path) -> None:
    done = weighbridge("topologies", "swift-s3api", folder=tmp_path, COLUMNS="400")
    assert "keep_cache_private" in done.stdout
    assert "radosgw" not in done.stdout.replace("rgw-beast@ceph-18:radosgw.threads=64", "")
    wrong = weighbridge("topologies", "swft", folder=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean 'swift'" in wrong.stderr


def test_topologies_lists_no_release_without_the_front_end_of_a_layout(tmp_path: Path) -> None:
    listed = weighbridge("topologies", "rgw", folder=tmp_path, COLUMNS="400").stdout.splitlines()
    beast, civetweb = (
        next(line for line in listed if f" {name} " in line)
        for name in ("rgw-beast", "rgw-civetweb")
    )
    assert "ceph-14" in civetweb
    assert "ceph-18" in beast
    assert "ceph-18" not in civetweb


def test_render_of_a_layout_without_files_says_so(tmp_path: Path) -> None:
    done = weighbridge("render", "null", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "has no configuration files" in done.stderr


def test_render_and_the_plan_say_whose_settings_a_release_without_own_ones_gets(
    tmp_path: Path,
) -> None:
    lab = ("--hardware", "lab-cpu")
    done = weighbridge("render", "rgw-beast@ceph-19", *lab, folder=tmp_path)
    assert "ceph-19 gets the settings of ceph-18, checked by its programs" in done.stderr
    done = weighbridge("render", "rgw-beast", *lab, folder=tmp_path)
    assert "gets the settings" not in done.stderr
    layouts = ("--layouts", "swift@swift-2.33")
    done = weighbridge("compare", "--dry-run", *layouts, *lab, folder=tmp_path, COLUMNS="400")
    assert "settings of swift-2.30" in " ".join(done.stdout.split())


def test_render_refuses_a_host_that_the_layout_does_not_use(tmp_path: Path) -> None:
    done = weighbridge("render", "null", "--host", "gatway-1", folder=tmp_path)
    assert done.returncode == 2
    assert "null has nothing on a host 'gatway-1' (did you mean 'gateway-1'?)" in done.stderr
