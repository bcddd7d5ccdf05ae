"""The proxies' pipeline: which middleware a request passes, in which order, and how each of them is
set.

`standard` is the pipeline of the sample that Swift ships for tempauth
(etc/proxy-server.conf-sample; the same in 2.26, 2.30, 2.35 and 2.38). `study-2014` is the one that
the study of 2014 trimmed to four words; Swift adds what it cannot do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weighbridge.gateways import ini
from weighbridge.gateways.swift.settings import SwiftSettings

_STANDARD: Final = (
    *(
        "catch_errors",
        "gatekeeper",
        "healthcheck",
        "proxy-logging",
        "cache",
        "listing_formats",
        "container_sync",
        "bulk",
        "tempurl",
    ),
    *(
        "ratelimit",
        "tempauth",
        "copy",
        "container-quotas",
        "account-quotas",
        "slo",
        "dlo",
        "versioned_writes",
        "symlink",
    ),
    *("proxy-logging", "proxy-server"),
)
_STUDY_2014: Final = ("healthcheck", "cache", "tempauth", "proxy-server")

_EGGS: Final = {"cache": "memcache"}
"""Names of middleware in Swift's package where they are not the filter's with underscores."""


def words(settings: SwiftSettings) -> tuple[str, ...]:
    """The pipeline as it is configured, from the client's side on, with s3api where the sample
    wants it: before authentication.

    What multipart uploads by S3 need (slo) is put into the study's pipeline as well, where that
    answers S3.
    """
    bare = settings.pipeline == "study-2014"
    made = list(_STUDY_2014 if bare else _STANDARD)
    if settings.s3api:
        made.insert(made.index("tempauth"), "s3api")
        if bare:
            made.insert(made.index("tempauth") + 1, "slo")
    return tuple(made)


def filters(
    settings: SwiftSettings, cache: Mapping[str, ini.Value], users: Mapping[str, ini.Value]
) -> dict[str, Mapping[str, ini.Value]]:
    """A section for each middleware of the pipeline; `cache` and `users` are the options of
    memcached's and of tempauth's.

    Whatever is not set has the sample's value: `ratelimit` then limits nothing, since no rate is
    given.
    """
    own: dict[str, Mapping[str, ini.Value]] = {
        "cache": cache,
        "tempauth": users,
        "s3api": {"location": "us-east-1", "s3_acl": False},
        # The middleware has no switch: it makes a line of every request at INFO, and its log drops
        # it.
        "proxy-logging": {"access_log_level": "INFO" if settings.log_requests else "WARNING"},
    }
    return {
        f"filter:{name}": {
            "use": f"egg:swift#{_EGGS.get(name, name.replace('-', '_'))}",
            **own.get(name, {}),
        }
        for name in dict.fromkeys(words(settings)[:-1])
    }


def about(settings: SwiftSettings) -> str:
    """What of Swift's API the pipeline answers, in words."""
    if settings.pipeline == "standard":
        return (
            "standard: the one of the release's sample file; large objects, bulk requests, "
            "temporary URLs, quotas and versions work"
        )
    return (
        "study-2014: no middleware but health check, cache and authentication; manifests of large "
        "objects, bulk requests and "
        "archives are taken for plain requests, and answered without doing what they ask"
    )
