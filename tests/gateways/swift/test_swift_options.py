"""The options that a release of Swift knows, read from samples and code, and faults of others."""

import json
from pathlib import Path

import pytest

from weighbridge.gateways.swift import config, known_options
from weighbridge.gateways.swift.options import Known, faults, ignored, own_files
from weighbridge.gateways.swift.samples import sample_of
from weighbridge.gateways.swift.settings import SERVERS, SwiftSettings

SAMPLE = """
[DEFAULT]
# bind_port = 6200
# How many; Swift's own choice = none
# workers = auto

[pipeline:main]
pipeline = recon object-server

[app:object-server]
use = egg:swift#object
# set log_name = object-server
# splice = no

[filter:recon]
use = egg:swift#recon
# recon_cache_path = /var/cache/swift
# [filter:xprofile]
# use = egg:swift#xprofile
# dump_interval = 5.0

[object-auditor]
# files_per_second = 20
# [proxy-server:policy:<policy index>]
# sorting_method = shuffle
"""
CODE = """
self.a = int(conf.get('read_by_code', 1)); self.b = config_true_value(wsgi_conf.get("read_too"))
self.c = conf['and_this']; options.setdefault('and_that', 1); headers.get('not_this')
conf.get(name)
"""


def known(tmp_path: Path) -> Known:
    names, uses = known_options.sample(SAMPLE)
    (tmp_path / "server.py").write_text(CODE)
    found = {
        "samples": {"object": names},
        "uses": {"object": uses},
        "read": {"object": sorted(known_options.read(tmp_path))},
    }
    return Known.model_validate_json(json.dumps(found))


def test_a_servers_sample_is_found_where_debian_or_ubuntu_have_it(tmp_path: Path) -> None:
    places = [f"{tmp_path}/swift/{{0}}.conf", f"{tmp_path}/swift-{{0}}/{{0}}.conf-sample"]
    (tmp_path / "swift-proxy").mkdir()
    (tmp_path / "swift-proxy" / "proxy.conf-sample").write_text("of Ubuntu")
    assert sample_of("proxy", places) == "of Ubuntu"
    (tmp_path / "swift").mkdir()
    (tmp_path / "swift" / "proxy.conf").write_text("of Debian")
    assert sample_of("proxy", places) == "of Debian"
    with pytest.raises(SystemExit, match="no sample file of Swift's object server: /"):
        sample_of("object", places)


def test_options_are_found_in_samples_and_in_code(tmp_path: Path) -> None:
    found = known(tmp_path)
    assert found.samples["object"]["app:object-server"] == {"use", "log_name", "splice"}
    assert found.samples["object"]["filter:xprofile"] == {"use", "dump_interval"}
    assert found.uses["object"]["filter:recon"] == "egg:swift#recon"
    assert found.read["object"] == {"read_by_code", "read_too", "and_this", "and_that"}


@pytest.mark.parametrize(
    "text",
    [
        (
            "[app:object-server]\nuse = egg:swift#object\nsplice = yes\nset workers = 1\n"
            "read_by_code = 3"
        ),
        "[filter:my-own-name]\nuse = egg:swift#recon\nrecon_cache_path = /x",
        "[filter:foreign]\nuse = egg:somebodys#else\nanything = 1",
        "[filter:auth]\nuse = egg:swift#recon\n[pipeline:main]\npipeline = auth",
        "[proxy-server:policy:3]\nsorting_method = timing",
    ],
)
def test_known_options_and_sections_have_no_faults(tmp_path: Path, text: str) -> None:
    assert faults(known(tmp_path), "object", text) == []


def test_with_another_ones_settings_only_unknown_options_of_the_layout_are_refused(
    tmp_path: Path,
) -> None:
    text = "[app:object-server]\nuse = egg:swift#object\nours = 1\n[DEFAULT]\nmine = 1\n"
    mine = {"DEFAULT": {"mine"}, "app:object-server": {"splice"}}
    assert faults(known(tmp_path), "object", text, mine) == [
        "object-server.conf [DEFAULT]: Swift does not know the option 'mine'"
    ]
    assert ignored(known(tmp_path), {"a": {"/etc/swift/object-server.conf": text}}) == [
        "object-server.conf [app:object-server]: Swift does not know the option 'ours'",
        "object-server.conf [DEFAULT]: Swift does not know the option 'mine'",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[app:object-server]\nsplicee = yes",
            (
                "[app:object-server]: Swift does not know the option 'splicee' "
                "(did you mean 'splice'?)"
            ),
        ),
        (
            "[DEFAULT]\nworkerz = 1",
            "[DEFAULT]: Swift does not know the option 'workerz' (did you mean 'workers'?)",
        ),
        (
            "[object-audito]\nx = 1",
            "[object-audito]: Swift has no such section (did you mean 'object-auditor'?)",
        ),
        ("[filter:x]\nuse = egg:swift#rekon", "[filter:x]: Swift has no such section"),
        (
            "[object-auditor]\nnot_this = 1",
            "[object-auditor]: Swift does not know the option 'not_this'",
        ),
        (
            "[pipeline:main]\npipeline = recom\n[filter:recon]\nuse = egg:swift#recon",
            "'recom' has no section [filter:recom]",
        ),
        (
            "[filter:recon]\nuse = egg:swift#recon\nuser_weigh_bench = k .admin",
            "does not know the option 'user_weigh_bench'",
        ),
    ],
)
def test_unknown_names_are_reported_with_the_closest_known_ones(
    tmp_path: Path, text: str, message: str
) -> None:
    (fault,) = faults(known(tmp_path), "object", text)
    assert fault.startswith("object-server.conf [")
    assert message in fault


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    assert len(faults(known(tmp_path), "object", "[DEFAULT]\na = 1\nb = 2\n[nowhere]\nc = 3")) == 3


def test_only_files_of_swift_servers_are_checked() -> None:
    texts = {f"/etc/swift/{server}-server.conf": server for server in SERVERS}
    texts |= {
        "/etc/swift/proxy-server-1.conf": "proxy",
        "/etc/swift/swift.conf": "no",
        "/etc/rsyncd.conf": "no",
    }
    assert all(server == text for server, text in own_files(texts))
    assert len(own_files(texts)) == 4


def test_options_that_the_release_lacks_are_left_out() -> None:
    text = config.storage_conf(
        SwiftSettings(), "object", "10.0.0.1", lacks=frozenset({"etag_validate_pct"})
    )
    assert "etag_validate_pct" not in text
    assert "keep_cache_private" in text
