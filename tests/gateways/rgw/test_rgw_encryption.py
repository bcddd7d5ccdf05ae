"""What radosgw is known to encrypt, and how it is configured for it."""

from __future__ import annotations

import pytest

from tests.gateways.rgw.planned_rgw import conf, rgw


@pytest.mark.parametrize("release", ["ceph-14", "ceph-16", "ceph-18", "ceph-20"])
def test_customers_keys_are_taken_over_plain_http_by_every_release(release: str) -> None:
    assert conf({}, release)["client"]["rgw_crypt_require_ssl"] == "false"
    assert "sse-c" not in rgw({}, release).s3_lacks()


def test_its_own_keys_need_a_release_that_has_them_and_a_vault_that_is_named() -> None:
    vault = {"options": {"client": {"rgw_crypt_sse_s3_vault_addr": "http://10.0.0.7:8200"}}}
    assert "HashiCorp Vault" in rgw({}, "ceph-18").s3_lacks()["sse-s3"]
    assert "sse-s3" not in rgw(vault, "ceph-18").s3_lacks()
    assert "does not support SSE-S3" in rgw(vault, "ceph-16").s3_lacks()["sse-s3"]
