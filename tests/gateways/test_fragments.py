"""Fragments show what differs between two configurations; pasting them makes them equal."""

import re
from collections.abc import Mapping

import pytest

from weighbridge.common.document import Fault
from weighbridge.gateways.fragments import FragmentPart, fragments
from weighbridge.gateways.gateway import Rendered
from weighbridge.topologies.loader import (
    changed_layout,
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)

LAB = load_hardware(shipped_hardware()["lab-cpu"])
CEPH = "/etc/ceph/ceph.conf"
APACHE = "/etc/weighbridge/apache/apache.conf"


def rendered(
    layout: str, changes: Mapping[str, object]
) -> tuple[tuple[Rendered, ...], tuple[Rendered, ...]]:
    base = load_layout(shipped_layouts()[layout], LAB)
    changed = changed_layout(base, LAB, changes, Fault("test", 1, 1, "", ""))
    return base.gateway.render(LAB.sites), changed.gateway.render(LAB.sites)


def one(path: str, before: str, after: str) -> FragmentPart:
    (piece,) = fragments(
        [Rendered(host="h", path=path, text=before)], [Rendered(host="h", path=path, text=after)]
    )
    return piece


def lines_of(piece: FragmentPart) -> list[str]:
    """The lines of a fragment after its head."""
    return piece.text.partition("\n\n")[2].splitlines()


def kind_of(piece: FragmentPart) -> str:
    return {"haproxy.cfg": "haproxy", "apache.conf": "apache"}.get(piece.name, "ini")


def by_place(text: str, kind: str) -> dict[tuple[str, ...], list[str]]:
    """Lines by container, parsed in the simplest way, comments included."""
    found: dict[tuple[str, ...], list[str]] = {}
    path: tuple[str, ...] = ()
    for raw in text.splitlines():
        line = raw.strip()
        if not line or "IfDefine" in line:
            continue
        if kind == "apache" and line.startswith("</"):
            path = path[:-1]
        elif kind == "apache" and line.startswith("<"):
            path = (*path, line)
        elif (kind == "haproxy" and not raw.startswith(" ") and line[0] != "#") or (
            kind != "apache" and line.startswith("[")
        ):
            path = (line,)
        else:
            found.setdefault(path, []).append(line)
    return found


def pasted(text: str, piece: FragmentPart) -> dict[tuple[str, ...], list[str]]:
    """The sorted lines of a file by container after a user has applied a fragment."""
    lines = by_place(text, kind_of(piece))
    head = "\n".join(lines_of(piece))
    for path, some in by_place(head, kind_of(piece)).items():
        place = lines.setdefault(path, [])
        for line in some:
            change = re.match(r"# (replaces|remove): (.*)", line)
            if change:
                place.remove(change[2])
            elif not line.startswith("#"):
                place.append(line)
    return {path: sorted(some) for path, some in lines.items() if some}


CASES: list[tuple[str, dict[str, object], set[str]]] = [
    (
        "rgw-beast",
        {"radosgw.threads": 64, "options.client.rgw_list_buckets_max_chunk": 10},
        {"ceph.conf"},
    ),
    (
        "rgw-haproxy",
        {
            "radosgw.tcp_nodelay": False,
            "haproxy.timeouts.connect": "1s",
            "haproxy.options.backend": "option http-no-delay",
        },
        {"ceph.conf", "haproxy.cfg"},
    ),
    (
        "rgw-apache-proxy",
        {
            "apache.mpm.kind": "event",
            "apache.reuse": False,
            "apache.access_log": True,
            "apache.options": {
                "server": {"ListenBacklog": 100},
                "location": {"LimitRequestBody": 5},
            },
        },
        {"apache.conf"},
    ),
    ("rgw-apache-fastcgi", {"apache.flush": "auto", "apache.keep_alive": False}, {"apache.conf"}),
    (
        "swift-haproxy",
        {
            "proxy.workers": 2,
            "object.disk_chunk_size": "1MiB",
            "options.object.object-auditor.files_per_second": 3,
        },
        {"proxy-server.conf", "object-server.conf"},
    ),
]


@pytest.mark.parametrize(("layout", "changes", "names"), CASES)
def test_pasting_the_fragments_turns_each_file_into_the_other_and_back_in_the_same_places(
    layout: str, changes: dict[str, object], names: set[str]
) -> None:
    before, after = rendered(layout, changes)
    pieces = {piece.name: piece for piece in fragments(before, after)}
    back = {piece.name: piece for piece in fragments(after, before)}
    assert set(pieces) == set(back) == names
    for old, new in zip(before, after, strict=True):
        name = re.sub(r"-\d\.conf", ".conf", old.path.rpartition("/")[2])
        if name not in pieces:
            assert old.text == new.text
            continue
        kind = kind_of(pieces[name])
        assert pasted(old.text, pieces[name]) == {
            path: sorted(lines) for path, lines in by_place(new.text, kind).items()
        }
        assert {*pasted(new.text, back[name])} == {*by_place(old.text, kind)}


def test_a_change_shared_by_several_hosts_is_shown_once_under_its_section() -> None:
    before, after = rendered("rgw-beast", {"radosgw.threads": 64})
    assert sum(one.path == CEPH for one in before) > 1
    (piece,) = fragments(before, after)
    assert piece.name == "ceph.conf"
    assert "# Where: at the end of ceph.conf" in piece.text
    assert lines_of(piece) == [
        "[client]",
        "# replaces: rgw_thread_pool_size = 512",
        "rgw_thread_pool_size = 64",
    ]


def test_a_change_of_some_hosts_names_them() -> None:
    files = [
        Rendered(host=host, path="/etc/swift/object-server.conf", text="[DEFAULT]\nworkers = 1\n")
        for host in ("a", "b")
    ]
    after = [files[0], files[1].model_copy(update={"text": "[DEFAULT]\nworkers = 2\n"})]
    (piece,) = fragments(files, after)
    assert lines_of(piece) == [
        "[DEFAULT]",
        "# only b:/etc/swift/object-server.conf:",
        "# replaces: workers = 1",
        "workers = 2",
    ]


def test_a_radosgws_section_has_a_note_that_its_name_is_this_layouts() -> None:
    head = "[client.rgw.gateway-1]\nrgw_frontends = beast"
    assert lines_of(one(CEPH, f"{head}\n", f"{head} port=1\n"))[:2] == [
        "[client.rgw.gateway-1]",
        "# a radosgw of this layout: use the name of yours",
    ]


def test_lines_stay_in_their_containers_and_removed_containers_are_named() -> None:
    before = "A 1\n<VirtualHost *:80>\n  B 1\n  <Proxy x>\n    C 1\n  </Proxy>\n</VirtualHost>\n"
    after = (
        "A 1\n<VirtualHost *:80>\n  B 2\n  <Location />\n    D 1\n  </Location>\n</VirtualHost>\n"
    )
    assert lines_of(one(APACHE, before, after)) == [
        "<VirtualHost *:80>",
        "  # replaces: B 1",
        "  B 2",
        "  # remove: <Proxy x> and everything in it",
        "  <Location />",
        "    D 1",
        "  </Location>",
        "</VirtualHost>",
    ]


def test_of_two_containers_with_equal_first_lines_only_the_changed_one_is_shown() -> None:
    text = "<VirtualHost *:80>\n  ServerName {}\n</VirtualHost>\n"
    piece = one(APACHE, text.format("a") + text.format("b"), text.format("a") + text.format("c"))
    assert lines_of(piece) == [
        "<VirtualHost *:80>",
        "  # replaces: ServerName b",
        "  ServerName c",
        "</VirtualHost>",
    ]


def test_lines_with_a_secret_and_keyrings_are_left_out() -> None:
    before = [
        Rendered(host="h", path=CEPH, text="[a]\nkey = ***\nb = 1\n"),
        Rendered(host="h", path="/etc/ceph/keyring", text="[x]\n"),
    ]
    after = [
        Rendered(host="h", path=CEPH, text="[a]\nb = 2\nuser = *** .admin\n"),
        Rendered(host="h", path="/etc/ceph/keyring", text="[y]\n"),
    ]
    (piece,) = fragments(before, after)
    assert lines_of(piece) == ["[a]", "# replaces: b = 1", "b = 2"]


def test_evidence_is_shown_first_as_comment_lines() -> None:
    before, after = rendered("rgw-beast", {"radosgw.threads": 64})
    (piece,) = fragments(before, after, ["throughput +12 %\np = 0.002", "a path C:\\"])
    lines = piece.text.splitlines()
    assert lines[:4] == ["# ceph.conf", "# throughput +12 %", "# p = 0.002", "# a path C:"]
    assert all(line.startswith("#") for line in lines[: lines.index("")])


def test_equal_configurations_have_no_fragments() -> None:
    before, after = rendered("swift-haproxy", {})
    assert fragments(before, after, ["evidence"]) == ()


def test_a_file_of_only_one_configuration_is_shown_completely() -> None:
    before, after = rendered("rgw-apache-fastcgi", {"apache.path": "http"})
    pieces = {piece.name: piece for piece in fragments(before, after)}
    assert "# remove: listen /run/weighbridge-responder.sock" in lines_of(pieces["responder.conf"])
    back = {piece.name: piece for piece in fragments(after, before)}
    assert "listen /run/weighbridge-responder.sock" in lines_of(back["responder.conf"])
