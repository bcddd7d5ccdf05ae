import configparser

import pytest
from pydantic import ValidationError

from gateways.swift import config
from gateways.swift.settings import Place, Settings
from gateways.swift.swift import Swift

PLACE = Place(proxy=("gateway-1",), storage=("store-1", "store-2", "store-3"))


def read(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(text)
    return parser


def test_the_pipeline_is_the_studys() -> None:
    assert Settings().pipeline == ("healthcheck", "cache", "tempauth", "proxy-server")


def test_s3_stands_before_authentication_and_multipart_after_it() -> None:
    proxy = read(config.proxy_conf(Settings(s3api=True), "10.0.0.1", "secret"))
    assert proxy["pipeline:main"]["pipeline"] == "healthcheck cache s3api tempauth slo proxy-server"
    assert proxy["filter:s3api"]["location"] == "us-east-1"
    assert "filter:slo" in proxy


def test_every_filter_of_the_pipeline_is_configured() -> None:
    for settings in (Settings(), Settings(s3api=True)):
        proxy = read(config.proxy_conf(settings, "10.0.0.1", "secret"))
        assert all(f"filter:{name}" in proxy for name in settings.pipeline[:-1])


def test_the_user_has_the_key_of_this_deployment() -> None:
    assert read(config.proxy_conf(Settings(), "10.0.0.1", "k3y"))["filter:tempauth"]["user_weigh_bench"] == "k3y .admin"


def test_what_decides_reads_is_written_for_the_object_server_alone() -> None:
    settings = Settings.model_validate({"object": {"keep_cache_private": True, "etag_validate_pct": 0}})
    app = read(config.storage_conf(settings, "object", "10.0.0.1"))["app:object-server"]
    assert (app["keep_cache_private"], app["etag_validate_pct"], app["keep_cache_size"]) == ("true", "0", "5242880")
    assert "keep_cache_private" not in read(config.storage_conf(settings, "account", "10.0.0.1"))["app:account-server"]


def test_object_daemons_do_not_walk_the_databases_disk() -> None:
    devices = {name: read(config.storage_conf(Settings(), name, "10.0.0.1"))["DEFAULT"]["devices"] for name in config.PORTS}
    assert devices["account"] == devices["container"] != devices["object"]


def test_options_of_the_layout_win_over_ours() -> None:
    settings = Settings.model_validate({"options": {"object": {"app:object-server": {"splice": True, "mb_per_sync": 64}}}})
    app = read(config.storage_conf(settings, "object", "10.0.0.1"))["app:object-server"]
    assert (app["splice"], app["mb_per_sync"]) == ("true", "64")


def test_rsync_serves_each_kind_of_data_from_where_it_is() -> None:
    text = config.rsyncd_conf("10.0.0.1")
    modules = read(text[text.index("[") :])
    assert {name: modules[name]["path"] for name in modules.sections()} == {
        "account": config.DATABASES,
        "container": config.DATABASES,
        "object": config.OBJECTS,
    }


def test_s3_is_answered_only_where_the_layout_says_so() -> None:
    assert Swift("swift-2.30", PLACE, Settings()).apis() == ("swift",)
    assert Swift("swift-2.30", PLACE, Settings(s3api=True)).apis() == ("swift", "s3")


def test_fewer_hosts_than_replicas_are_refused() -> None:
    with pytest.raises(ValueError, match="3 replicas in zones of their own need 3 storage hosts"):
        Swift("swift-2.30", Place(proxy=("p",), storage=("a", "b")), Settings())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"proxy": ["a"], "storage": ["b", "b"]}, "same host twice"),
        ({"proxy": ["a"], "storage": ["a", "b"]}, "a is both proxy and storage"),
        ({"proxy": ["a", "b"], "storage": ["c"]}, "at most 1"),
        ({"proxy": [], "storage": ["c"]}, "at least 1"),
    ],
)
def test_placements_that_cannot_be_are_refused(place: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Place.model_validate(place)


@pytest.mark.parametrize(
    "settings",
    [{"object": {"etag_validate_pct": 101}}, {"proxy": {"node_timeout": 60}}, {"part_power": 33}, {"pipeline": "x"}, {"s3": True}],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(settings)
