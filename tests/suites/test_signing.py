"""How a suite says which ways of signing are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites.one_write import GOOD, suite_of
from weighbridge.common.document import DocumentError
from weighbridge.common.endpoint import Signing
from weighbridge.suites import UNSIGNED, Suite, loader, signing_needs

LIST = "    signing: [{}, {payload: trailer, checksum: crc64nvme}, {auth: query}, {auth: none}]\n"


def test_requests_are_signed_without_their_payload_by_default() -> None:
    [workload] = suite_of(GOOD).workloads
    assert (workload.name, workload.signing, workload.signed) == ("write", UNSIGNED, UNSIGNED)
    assert suite_of(GOOD).signing_words == "unsigned payload"
    assert suite_of(GOOD.replace("[s3]", "[swift]")).signing_words == ""


def test_a_list_stands_for_a_workload_each() -> None:
    suite = suite_of(GOOD + LIST)
    ways = ("unsigned", "trailer-crc64nvme", "presigned", "anonymous")
    assert [one.name for one in suite.workloads] == [f"write-{way}" for way in ways]
    assert suite.workloads[1].signing == Signing(payload="trailer", checksum="crc64nvme")
    first = suite.workloads[0]
    for one in suite.workloads:
        assert one.model_copy(update={"name": first.name, "signing": UNSIGNED}) == first
    assert "write-presigned: presigned URLs, unsigned payload" in suite.signing_words
    assert Suite.model_validate_json(suite.model_dump_json()) == suite
    assert suite.changed(repeats=3).workloads == suite.workloads


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("{payload: trailer}", "a trailer is a checksum: say which"),
        ("{payload: signed, auth: query}", "with `auth: query` the payload is unsigned"),
        ("{checksum: crc32, auth: none}", "with `auth: none` the payload is unsigned"),
        ("{payload: hashed}", "payload"),
        ("{checksum: md5}", "checksum"),
        ("[{}, {}]", "two workloads are named write-unsigned"),
        ("[]", "signing"),
        ("sdk-default", "sdk-default is for `users: sdk`"),
    ],
)
def test_what_cannot_be_signed_so_is_refused_with_its_place(written: str, fault: str) -> None:
    with pytest.raises(DocumentError) as faults:
        suite_of(f"{GOOD}    signing: {written}\n")
    assert fault in str(faults.value)
    assert "trial.yaml:" in str(faults.value)


def test_a_name_that_would_get_too_long_is_refused() -> None:
    with pytest.raises(DocumentError, match="longer than 40 characters; choose a shorter name"):
        suite_of(GOOD.replace("write\n", f"{'w' * 30}\n") + LIST)


def test_faults_of_a_later_workload_have_its_own_place(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    again = GOOD[GOOD.index("  - name") :].replace("name: write", "name: large")
    path.write_text(GOOD + LIST + again.replace("4KiB", "6GB"))
    with pytest.raises(DocumentError, match=r"large\.yaml:12:21: .*at most 5 GB"):
        loader.load(path)


def test_sdk_users_sign_as_their_sdk_does() -> None:
    sdk = f"users: sdk\n{GOOD}"
    assert suite_of(sdk).signing_words.startswith("as boto3 does, without the checksums")
    both = suite_of(f"{sdk}    signing: [{{}}, sdk-default]\n")
    assert [one.name for one in both.workloads] == ["write-unsigned", "write-sdk-default"]
    labels = [both.signing_label(one) for one in both.workloads]
    assert labels == ["sdk-without-checksums", "sdk-default"]
    with pytest.raises(DocumentError, match="SDKs sign in their own way; set sdk-default"):
        suite_of(f"{sdk}    signing: {{payload: signed}}\n")


def test_it_is_known_what_not_every_store_takes() -> None:
    def needs(**signing: str) -> tuple[str, ...]:
        return Signing.model_validate(signing).needs

    assert needs() == needs(payload="signed") == needs(checksum="crc32") == ()
    assert needs(payload="chunks") == ("signed chunks",)
    assert needs(payload="chunks", checksum="crc32") == ("signed chunks", "trailers")
    assert needs(payload="trailer", checksum="crc32") == ("trailers",)
    assert needs(auth="query") == ()
    assert needs(auth="none") == ("anonymous requests",)
    assert signing_needs("sdk-default", tls=True) == ("trailers",)
    assert signing_needs("sdk-default", tls=False) == ()
