"""Checking of ceph.conf by the release's own program, here with the output of 16.2."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.gateways.stub_host import StubHost
from weighbridge.common.errors import UsageError
from weighbridge.gateways.rgw import config
from weighbridge.gateways.rgw.config import effective, read_as

KNOWN = (
    "fsid = 0\nosd_max_scrubs = 1\nosd_op_num_shards = 0\nrgw_frontends = beast "
    "port=7480\nmon_host = \n"
)
REFUSED = (
    "parse error setting 'osd_max_scrubs' to 'none' (strict_si_cast: unit prefix not "
    "recognized)\n\nunable to parse option\nUSAGE\n"
)
CONF = (
    "[global]\nfsid = x\n\n[osd]\nosd_max_scrubs = 0\n\n[osd.0]\nosd_op_num_shards = "
    "1\n\n[client]\nrgw_frontends = beast\n"
)


def host(folder: Path, asked: list[list[str]] | None = None) -> StubHost:
    def answer(argv: Sequence[str], stdin: str) -> str:
        if argv[0] == "ceph-conf":
            return KNOWN
        lines = [shlex.split(line) for line in argv[2].splitlines()]
        if asked is not None:
            asked.extend(lines)
        return "".join(REFUSED if "--osd_max_scrubs=none" in line else "1\n" for line in lines)

    return StubHost("gateway-1", "10.0.0.1", folder, [], answer, {})


def test_a_file_with_known_options_has_no_faults(tmp_path: Path) -> None:
    assert config.option_faults(host(tmp_path), "ceph-16", CONF, []) == []


def test_unknown_options_are_reported_by_section_with_the_closest_known_one(tmp_path: Path) -> None:
    conf = CONF + "[mon]\nosd_max_scrub = 1\n[osd.1]\nqqq = 1\n[osd.2]\nqqq = 1\n"
    assert config.option_faults(host(tmp_path), "ceph-16", conf, []) == [
        "ceph-16 has no option 'osd_max_scrub' in [mon] (did you mean 'osd_max_scrubs'?)",
        "ceph-16 has no option 'qqq' in [osd]",
    ]


def test_with_another_ones_settings_only_unknown_options_of_the_layout_are_refused(
    tmp_path: Path,
) -> None:
    conf = CONF + "[mon]\nqqq = 1\n[osd.1]\nrrr = 1\n"
    given = [{"rrr": 1}]
    assert config.option_faults(host(tmp_path), "ceph-17", conf, given, of_another=True) == [
        "ceph-17 has no option 'rrr' in [osd]"
    ]
    assert set(config.unknown_options(host(tmp_path), "ceph-17", conf)) == {"qqq", "rrr"}


def test_values_that_ceph_rejects_are_reported_in_its_words_without_its_usage_text(
    tmp_path: Path,
) -> None:
    asked: list[list[str]] = []
    given = {"osd_max_scrubs": "none", "osd_op_num_shards": True, "unknown_one": 1}
    assert config.option_faults(host(tmp_path, asked), "ceph-16", CONF, [given]) == [
        f"ceph-16: {REFUSED.splitlines()[0]}"
    ]
    assert [line[3] for line in asked] == ["--osd_max_scrubs=none", "--osd_op_num_shards=true"]


@pytest.mark.parametrize("value", ["$(touch x)", "a b'c", "; reboot"])
def test_a_value_is_passed_as_an_argument_never_as_a_command(tmp_path: Path, value: str) -> None:
    asked: list[list[str]] = []
    config.option_faults(host(tmp_path, asked), "ceph-16", CONF, [{"rgw_frontends": value}])
    assert asked[0][3] == f"--rgw_frontends={value}"


def test_a_daemons_section_overrides_its_kinds_which_overrides_global() -> None:
    conf = (
        "[global]\na = 1\nb = 1\nc = 1\n\n[client]\nb = 2\nc = 2\n\n[client.rgw.x]\nc = "
        "3\n\n[osd]\na = 9\n"
    )
    assert effective(conf, "client.rgw.x") == {"a": "1", "b": "2", "c": "3"}


def test_a_value_that_the_release_cannot_parse_is_refused_in_its_words(tmp_path: Path) -> None:
    given = "33554432\n\x1e0\x1fparse error setting 'rgw_x' to 'y'\n7\n\x1e0\x1f"
    host = StubHost("gateway-1", "10.0.0.1", tmp_path, [], lambda _, __: given, {})
    with pytest.raises(UsageError, match=r"^parse error setting 'rgw_x' to 'y'$"):
        read_as(host, "client.rgw.x", {"rgw_get_obj_window_size": "32M", "rgw_x": "y"})
