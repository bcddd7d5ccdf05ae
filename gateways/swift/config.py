"""Configuration files of a Swift deployment, from its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from weighbridge.common.endpoint import host_port
from weighbridge.gateways import config_text
from weighbridge.gateways.options import values
from weighbridge.gateways.probe import IniGrammar
from weighbridge.gateways.swift.settings import SERVERS, EcSettings, Server, SwiftSettings

# The proxies' pipeline: its middleware, their order and settings.
#
# `standard` is the pipeline of the sample that Swift ships for tempauth (etc/proxy-server.conf-
# sample; the same in 2.26, 2.30, 2.35 and 2.38). `study-2014` is the 2014 study's, cut down to
# four words; Swift adds the middleware that it requires.


_STANDARD: Final = (
    *("catch_errors", "gatekeeper", "healthcheck", "proxy-logging", "cache", "listing_formats"),
    *("container_sync", "bulk", "tempurl", "ratelimit", "tempauth", "copy", "container-quotas"),
    *("account-quotas", "slo", "dlo", "versioned_writes", "symlink", "proxy-logging"),
    "proxy-server",
)
_STUDY_2014: Final = ("healthcheck", "cache", "tempauth", "proxy-server")

_EGGS: Final = {"cache": "memcache"}
"""Names in Swift's package that differ from the filter's name with underscores."""


def pipeline_text(settings: SwiftSettings) -> tuple[str, ...]:
    """The configured pipeline from the client inwards, with s3api before authentication as in the
    sample.

    The study's pipeline also gets slo with s3api, which S3 multipart uploads need.
    """
    bare = settings.pipeline == "study-2014"
    made = list(_STUDY_2014 if bare else _STANDARD)
    if settings.formpost:
        made.insert(made.index("tempurl") + 1, "formpost")
    if settings.s3api:
        made.insert(made.index("tempauth"), "s3api")
        if bare:
            made.insert(made.index("tempauth") + 1, "slo")
    return tuple(made)


def operations_lacked(settings: SwiftSettings) -> dict[str, str]:
    """Operations of suites over Swift's API that the pipeline does not do, and what it does."""
    if "slo" in pipeline_text(settings):
        return {}
    return {"read-part": "slo, which makes objects of segments, is not in its pipeline"}


def pipeline_facts(settings: SwiftSettings) -> str:
    """What the pipeline supports of Swift's API, in words."""
    if settings.pipeline == "standard":
        return (
            "standard: the release's sample pipeline; large objects, bulk requests, temporary "
            f"URLs{', quotas and versions' if settings.versions else ' and quotas'} work"
        )
    return (
        "study-2014: no middleware except health check, cache and authentication; manifests of "
        "large objects, bulk requests and archives are treated as plain requests: answered, but "
        "not carried out"
    )


PORTS: Mapping[str, int] = {"object": 6200, "container": 6201, "account": 6202}
DISK_PORT = 6210
"""Port of a host's first disk with servers_per_port; the other disks use the next ones."""
RSYNC_PORT = 873
MEMCACHED_PORT = 11211
CERTIFICATE = "/etc/swift/server.pem"
"""Certificate and key of a proxy that speaks TLS itself: for Swift's user, as it rereads them."""
_TLS: Final = f"cert_file = {CERTIFICATE}\nkey_file = {CERTIFICATE}"
ACCOUNT = "weigh"
USER = "bench"

OBJECTS = "/srv/node"
"""Where object disks are mounted; object daemons walk every folder below it."""
DATABASES = "/srv/database"
"""Where the database disk is mounted, outside OBJECTS: object daemons must not walk it."""

DAEMONS: Mapping[str, tuple[str, ...]] = {
    "account": ("replicator", "auditor", "reaper"),
    "container": ("replicator", "auditor", "updater"),
    "object": ("replicator", "auditor", "updater"),
}
"""Background daemons by server."""

EC_POLICY = 1
"""Index of the erasure coded policy: 0 is for what was stored before there were policies."""


def daemons_of(settings: SwiftSettings) -> Mapping[str, tuple[str, ...]]:
    """Background daemons by server, with the one that repairs fragments where there are some."""
    if settings.ec is None:
        return DAEMONS
    return {**DAEMONS, "object": (*DAEMONS["object"], "reconstructor")}


RECON = "/var/cache/swift"
"""Where background daemons write statistics for recon."""

_SWIFT: Final = """\
[swift-hash]
swift_hash_path_prefix = {prefix}
swift_hash_path_suffix = {suffix}

[storage-policy:0]
name = gold
"""
_PROXY: Final = """
[DEFAULT]
bind_ip = {address}
bind_port = {port}
{tls}
workers =
user = swift
log_name = proxy-server
log_level = {log_level}
[pipeline:main]
pipeline = {pipeline}
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
"""
_STORAGE: Final = """
[DEFAULT]
bind_ip = {address}
bind_port = {port}
workers =
user = swift
devices = {devices}
mount_check = true
log_name = {server}-server
log_level = {log_level}
[pipeline:main]
pipeline = healthcheck recon {server}-server
[app:{server}-server]
use = egg:swift#{server}
node_timeout =
log_requests = {log_requests}
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:recon]
use = egg:swift#recon
recon_cache_path = {recon}
"""
_RSYNCD: Final = """\
uid = swift
gid = swift
address = {address}
port = {port}
use chroot = false
reverse lookup = false
"""
_RSYNCD_MODULE: Final = """
[{server}]
path = {path}
max connections = 8
read only = false
lock file = /run/lock/{server}.lock
"""


def swift_conf(prefix: str, suffix: str, ec: EcSettings | None = None) -> str:
    """The text of swift.conf; prefix and suffix are the deployment's secrets."""
    text = _SWIFT.format(prefix=prefix, suffix=suffix)
    if ec is None:
        return f"{text}default = yes\n"
    policy = {
        "name": f"ec-{ec.k}-{ec.m}",
        "default": "yes",
        "policy_type": "erasure_coding",
        "ec_type": ec.type,
        **values(ec)["policy"],
    }
    return f"{text}\n{config_text.ini_text({f'storage-policy:{EC_POLICY}': policy})}"


def proxy_conf(
    settings: SwiftSettings,
    address: str,
    port: int,
    key: str,
    *,
    memcacheds: Sequence[str],
    tls: bool = False,
) -> str:
    """A proxy server's file, with the user's `key`, all memcacheds, and `tls` of it or a front.

    Unset options have the sample's values: `ratelimit` limits nothing, since no rate is set.
    """
    own, pipeline = values(settings.proxy), pipeline_text(settings)
    sections = config_text.sections_of(
        _PROXY.format(
            address=address,
            port=port,
            tls=_TLS if settings.proxy.tls else "",
            log_level=settings.log_level,
            pipeline=" ".join(pipeline),
        )
    )
    servers = ",".join(host_port(one, MEMCACHED_PORT) for one in memcacheds)
    filters: dict[str, Mapping[str, config_text.OptionValue]] = {
        "cache": {"memcache_servers": servers, **own["cache"]},
        "tempauth": {
            f"user_{ACCOUNT}_{USER}": f"{key} .admin",
            "token_life": 7 * 86400,
            # By itself it takes the scheme of its own connection, which a front makes by HTTP.
            **({"storage_url_scheme": "https"} if tls else {}),
        },
        "s3api": {"location": "us-east-1", "s3_acl": False},
        # The middleware has no off switch: it logs every request at INFO, which its log level then
        # drops.
        "proxy-logging": {"access_log_level": "INFO" if settings.log_requests else "WARNING"},
    }
    if settings.versions:
        filters["versioned_writes"] = dict.fromkeys(
            ("allow_versioned_writes", "allow_object_versioning"), True
        )
    for name in pipeline[:-1]:
        egg = _EGGS.get(name, name.replace("-", "_"))
        sections[f"filter:{name}"] = {"use": f"egg:swift#{egg}", **filters.get(name, {})}
    mine = {"DEFAULT": own["DEFAULT"], "app:proxy-server": own["app"]}
    given = settings.options.get("proxy", {})
    return config_text.ini_text(config_text.merged_sections(sections, mine, given))


def storage_conf(
    settings: SwiftSettings, server: Server, address: str, *, lacks: frozenset[str] = frozenset()
) -> str:
    """The text of {account,container,object}-server.conf, without options the release `lacks`."""
    sections = config_text.sections_of(
        _STORAGE.format(
            server=server,
            address=address,
            port=PORTS[server],
            devices=devices(server),
            log_level=settings.log_level,
            log_requests=config_text.option_word(settings.log_requests),
            recon=RECON,
        )
    )
    own = values(getattr(settings, server))
    app = {name: value for name, value in own["app"].items() if name not in lacks}
    each = {"recon_cache_path": RECON, **values(settings).get("daemon", {})}
    sections |= {f"{server}-{name}": each for name in daemons_of(settings)[server]}
    mine = {"DEFAULT": own["DEFAULT"], f"app:{server}-server": app}
    given = settings.options.get(server, {})
    return config_text.ini_text(config_text.merged_sections(sections, mine, given))


def rsyncd_conf(address: str) -> str:
    """The text of rsyncd.conf of a storage host, used by replicators."""
    modules = [_RSYNCD_MODULE.format(server=one, path=devices(one)) for one in SERVERS]
    return "".join((_RSYNCD.format(address=address, port=RSYNC_PORT), *modules))


def devices(server: str) -> str:
    """Where the disks of a server are mounted."""
    return OBJECTS if server == "object" else DATABASES


class SwiftGrammar(IniGrammar):
    """Files of Swift's servers, and swift.conf."""

    names: ClassVar[tuple[str, ...]] = ("swift.conf", "*-server.conf")
    where: ClassVar[str] = (
        "Where: in the existing sections of these names, in place of their lines for the same "
        "options: Swift refuses a file with a section or option twice. Its servers read the file "
        "when they start."
    )


GRAMMAR = SwiftGrammar()
