"""The proxies' pipeline: its middleware, their order and settings.

`standard` is the pipeline of the sample that Swift ships for tempauth
(etc/proxy-server.conf-sample; the same in 2.26, 2.30, 2.35 and 2.38). `study-2014` is the 2014
study's, cut down to four words; Swift adds the middleware that it requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weighbridge.gateways import ini
from weighbridge.gateways.swift.settings import SwiftSettings

_STANDARD: Final = (
    *("catch_errors", "gatekeeper", "healthcheck", "proxy-logging", "cache", "listing_formats"),
    *("container_sync", "bulk", "tempurl", "ratelimit", "tempauth", "copy", "container-quotas"),
    *("account-quotas", "slo", "dlo", "versioned_writes", "symlink", "proxy-logging"),
    "proxy-server",
)
_STUDY_2014: Final = ("healthcheck", "cache", "tempauth", "proxy-server")

_EGGS: Final = {"cache": "memcache"}
"""Names in Swift's package that differ from the filter's name with underscores."""


def words(settings: SwiftSettings) -> tuple[str, ...]:
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


def filters(
    settings: SwiftSettings, cache: Mapping[str, ini.Value], users: Mapping[str, ini.Value]
) -> dict[str, Mapping[str, ini.Value]]:
    """A section for each middleware; `cache` and `users` are the options of memcached and tempauth.

    Unset options have the sample's values: `ratelimit` limits nothing, since no rate is set.
    """
    own: dict[str, Mapping[str, ini.Value]] = {
        "cache": cache,
        "tempauth": users,
        "s3api": {"location": "us-east-1", "s3_acl": False},
        "versioned_writes": {
            "allow_versioned_writes": True,
            "allow_object_versioning": True,
        }
        if settings.versions
        else {},
        # The middleware has no off switch: it logs every request at INFO, which its log level then
        # drops.
        "proxy-logging": {"access_log_level": "INFO" if settings.log_requests else "WARNING"},
    }
    return {
        f"filter:{name}": {
            "use": f"egg:swift#{_EGGS.get(name, name.replace('-', '_'))}",
            **own.get(name, {}),
        }
        for name in dict.fromkeys(words(settings)[:-1])
    }


def operations_lacked(settings: SwiftSettings) -> dict[str, str]:
    """Operations of suites over Swift's API that the pipeline does not do, and what it does."""
    if "slo" in words(settings):
        return {}
    return {"read-part": "slo, which makes objects of segments, is not in its pipeline"}


def about(settings: SwiftSettings) -> str:
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
