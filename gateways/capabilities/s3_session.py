"""What S3 capabilities ask with: boto3, and our own signed requests where it cannot."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from contextlib import closing
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from weighbridge.common import plain_xml
from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import (
    REFUSES_FROM,
    Refused,
    Unknown,
    Wrong,
    refusal,
)
from weighbridge.gateways.capabilities.session import NONE, SILENCE_S, Names, StoreSession

_NEEDS_NO_LOCATION: Final = "us-east-1"


class PayloadSigner(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """A signer that says of the body what it is told (`X-Amz-Content-SHA256`)."""

    def payload(self, request: AWSRequest) -> str:
        """The hash of the body, or another word in its place."""
        stated: str | None = request.context.get("payload")
        return stated or hashlib.sha256(request.body or b"").hexdigest()


class S3Session(StoreSession):
    """One S3 endpoint."""

    def __init__(self, endpoint: Mapping[str, Any], names: Names, *, own: bool) -> None:
        super().__init__(endpoint, names, own=own)
        self.region: str = endpoint["region"]
        self._virtual = endpoint.get("addressing") == "virtual"
        self.signer = PayloadSigner(
            Credentials(endpoint["user"], endpoint["key"], endpoint.get("token")), "s3", self.region
        )
        self._versioned: list[str] = []

    @functools.cached_property
    def boto(self) -> Any:
        """A boto3 client that tries once."""
        return self.boto_with()

    def boto_with(self, **config: Any) -> Any:
        """A boto3 client with other keywords of `botocore.config.Config`."""
        import boto3  # noqa: PLC0415 - half a second that not every capability needs
        from botocore.config import Config  # noqa: PLC0415

        given = {
            "connect_timeout": SILENCE_S,
            "read_timeout": SILENCE_S,
            "retries": {"total_max_attempts": 1},
            "proxies": {},
            "s3": {"addressing_style": "virtual" if self._virtual else "path"},
            **config,
        }
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint["url"],
            region_name=self.region,
            aws_access_key_id=self.endpoint["user"],
            aws_secret_access_key=self.endpoint["key"],
            aws_session_token=self.endpoint.get("token"),
            verify=self.endpoint.get("ca_file"),
            config=Config(**given),
        )

    def ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """An operation of boto3. Raises Refused or Unknown."""
        try:
            answer: dict[str, Any] = getattr(self.boto, operation)(**parameters)
        except ClientError as error:
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
            said = error.response.get("Error", {})
            if status < REFUSES_FROM:
                raise Unknown(f"{said.get('Code')} in an answer of status {status}") from None
            raise refusal(
                status, str(said.get("Code") or ""), str(said.get("Message") or "")
            ) from None
        return answer

    def ask_back(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """An operation that reads what was taken just before. Raises Wrong if it is refused."""
        try:
            return self.ask(operation, **parameters)
        except Refused as refused:
            raise Wrong(f"accepted, but {operation} is refused", status=refused.status) from None

    def new_bucket(self, *, versions: bool = False, **parameters: Any) -> str:
        """Make a bucket; `clean` deletes all of its `versions`. Raises Refused or Unknown."""
        name = self.names.bucket()
        if self.region != _NEEDS_NO_LOCATION:
            parameters["CreateBucketConfiguration"] = {"LocationConstraint": self.region}
        if versions:
            self._versioned.append(name)
        self.ask("create_bucket", Bucket=name, **parameters)
        return name

    def send(
        self,
        method: str,
        key: str,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] = NONE,
        *,
        bucket: str | None = None,
        payload: str | None = None,
        signed: bool = True,
    ) -> HttpAnswer:
        """One request over a connection of its own. `payload`: what the signature says of the body
        (None: its hash). Raises OSError or HTTPException without an answer.
        """
        url, path = self.url_of(key, query, bucket)
        request = AWSRequest(method, url, data=body, headers=dict(headers))
        if signed:
            request.context["payload"] = payload
            self.signer.add_auth(request)
        return self.deliver(method, url, path, body, dict(request.headers.items()))

    def url_of(self, key: str, query: str = "", bucket: str | None = None) -> tuple[str, str]:
        """The URL of an object (of the bucket, without a key) and its path with the query."""
        place = urlsplit(self.endpoint["url"])
        bucket = bucket or self.bucket
        before, inside = (f"{bucket}.", "") if self._virtual else ("", f"/{bucket}")
        path = f"{place.path.rstrip('/')}{inside}/{quote(key, safe='~/')}"
        path += f"?{query}" if query else ""
        return f"{place.scheme}://{before}{place.netloc}{path}", path

    def deliver(
        self, method: str, url: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpAnswer:
        """Send a request that needs no signature, or has one."""
        place = urlsplit(url)
        with closing(self.wire(place.scheme, place.netloc)) as wire:
            return wire(method, path, body, headers)

    def write(
        self,
        body: bytes,
        headers: Mapping[str, str] = NONE,
        *,
        encoded: bytes | None = None,
        payload: str | None = None,
    ) -> tuple[str, HttpAnswer]:
        """PUT a new object, `encoded` as it travels, and read it back; its name and the answer."""
        key = self.new()
        sent = body if encoded is None else encoded
        answer = self.send("PUT", key, "", sent, headers, payload=payload)
        return key, self.stored(answer, key, body)

    def clean(self) -> tuple[str, ...]:
        """Delete all versions in buckets that have some; returns what could not be deleted."""
        left = []
        for bucket in self._versioned:
            try:
                self._delete_versions(bucket)
            except (Refused, Unknown) as error:
                left.append(f"{bucket}: {error.status} {error.code}")
            except Exception as error:  # noqa: BLE001 - a store's answer may break any parser
                left.append(f"{bucket}: {type(error).__name__}")
        self._versioned.clear()
        return tuple(left)

    def _delete_versions(self, bucket: str) -> None:
        try:
            page = self.ask("list_object_versions", Bucket=bucket)
        except Refused as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED):
                return  # nothing was made
            raise
        for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            version = {"Bucket": bucket, "Key": one["Key"], "VersionId": one["VersionId"]}
            try:
                self.ask("delete_object", **version)
            except Refused:
                self.ask("delete_object", **version, BypassGovernanceRetention=True)


def xml(answer: HttpAnswer) -> Any:
    """The root element of an answer. Raises Unknown."""
    try:
        return plain_xml.parse(answer.body)
    except ValueError as error:
        raise Unknown(f"its answer is not XML: {error}", status=answer.status) from None
