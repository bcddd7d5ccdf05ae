"""The account at the target: its token, buckets and stray objects, by HTTP, outside of windows.

S3 requests are signed by AWS Signature Version 4. Swift's carry a token of auth v1 or of Keystone,
or a given one.
"""

from __future__ import annotations

import json
import logging
import math
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from weighbridge.common import keystone, plain_xml
from weighbridge.common.address import host_port
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account_answer import AccountAnswer, NotServing
from weighbridge.drivers.locust.account_request import AccountRequest, host_header, reach
from weighbridge.drivers.locust.engine_places import EnginePlace, addresses_of
from weighbridge.drivers.locust.new_keys import by_keystone, by_v1, keys_again
from weighbridge.drivers.locust.signature import signature
from weighbridge.drivers.locust.url_parts import UrlParts

log = logging.getLogger(__name__)

Fields = Mapping[str, str] | None
_OF_ALL: Final = (
    *("GetObject", "PutObject", "DeleteObject", "ListBucket"),
    *("GetObjectVersion", "ListBucketVersions"),
)
"""What anonymous requests may do."""
AUTH_S: Final = 40.0
"""Longest time for a login at all endpoints together: a driver that is silent for 60 s is given up.
"""
REACH_S: Final = 20.0
"""That for a connection to one of S3's endpoints: a profile may take time for keys as well."""
LARGEST_ANSWER_BYTES = plain_xml.LARGEST_BYTES
"""Longer answers are cut off."""


class Account:
    """One user's account at one target.

    With several endpoints, what is not measured goes to the first that answers.

    Every method raises DriverError when the target cannot be reached or refuses.
    """

    def __init__(self, target: Endpoint, timeout_s: float) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._place = UrlParts.of(target.url)
        self._context = (
            ssl.create_default_context(cafile=target.ca_file)
            if target.url.startswith("https:")
            else None
        )
        token = "" if target.token is None else target.token.get_secret_value()
        self.keys = (target.user, target.key.get_secret_value(), token)
        """S3's keys and their session token, "" if there is none; of Swift only the third is sent:
        the token.
        """
        self.secrets = target.secrets
        """Keys, and all tokens so far, none of which a text may repeat."""
        self.life_s, self._granted_s = math.inf, time.monotonic()
        """How long a token is valid when it is new, infinite if nobody says, and when it was."""
        if target.key_source is not None and target.keys_end_at is not None:
            self.life_s = (target.keys_end_at - datetime.now(UTC)).total_seconds()

    @property
    def token(self) -> str:
        """Swift's token, or the session token of S3's keys; "" if there is none."""
        return self.keys[2]

    @property
    def expires(self) -> bool:
        """Whether the token or the keys are so old that they should be replaced."""
        return time.monotonic() - self._granted_s >= keystone.RENEW_AT * self.life_s

    @property
    def left_s(self) -> float:
        """How long they are still valid; infinite if nobody says, at most 0 once refused."""
        return self.life_s - (time.monotonic() - self._granted_s)

    @property
    def host(self) -> str:
        """The host that requests go to: of S3's endpoint, or of Swift's storage URL."""
        return self._place.host

    @property
    def port(self) -> int:
        """The port that requests go to."""
        return self._place.port

    @property
    def tls(self) -> bool:
        """Whether requests go over TLS."""
        return self._place.tls

    @property
    def base_path(self) -> str:
        """What precedes the bucket in a path: nothing for S3, /v1/AUTH_account for Swift."""
        return self._place.path

    @property
    def url(self) -> str:
        """S3's endpoint, or Swift's storage URL."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{host_port(self.host, self.port)}{self.base_path}"

    @property
    def renewable(self) -> bool:
        """Whether `authenticate` gets a new token or new keys."""
        if self._target.api == "s3":
            return self._target.key_source is not None
        return self._target.token is None

    def places(self) -> tuple[EnginePlace, ...]:
        """Each of several endpoints; empty for a single one."""
        if self._target.addresses == "all":
            host, port = self.host, self.port
            found = addresses_of(host, port)
            return tuple(
                EnginePlace(host_port(one, port), host, port, one)
                for one in found
                if len(found) > 1
            )
        parts = [UrlParts.of(base) for base in self._target.bases if self._target.others]
        return tuple(
            EnginePlace(host_port(one.host, one.port), one.host, one.port) for one in parts
        )

    def authenticate(self) -> None:
        """Swift: get the storage URL and a new token. S3: check that the port is open, and get new
        keys. Of several endpoints the first that answers is used. Raises DriverError.
        """
        self._reach()
        self._log_in()

    def renew(self) -> str:
        """As `authenticate`, but without a new token or new keys those in hand are kept as long as
        they are good; returns why there are no new ones, "" if there are. Raises DriverError.
        """
        self._reach()
        try:
            self._log_in()
        except DriverError as error:
            if not self._is_good():
                raise
            log.warning("no new token or keys, the old ones are used on: %s", error)
            return error.message
        return ""

    def refused(self) -> None:
        """The token is good no longer, whatever its age."""
        self._granted_s = -math.inf if math.isfinite(self.life_s) else self._granted_s

    def _is_good(self) -> bool:
        if not self.renewable or not (self.token or self._target.api == "s3"):
            return False
        if math.isfinite(self.life_s):
            return self.left_s > 0
        try:
            # Auth v1 does not say how long a token lasts.
            return self._target.api == "swift" and self._ask("HEAD", "").status in (200, 204)
        except DriverError:
            return False

    def _reach(self) -> None:
        if self._target.api == "s3":
            self._first(self._reach_at, REACH_S)

    def _log_in(self) -> None:
        if self._target.api == "swift":
            self._first(self._log_in_at, AUTH_S)
        elif self._target.key_source is not None:
            self._take(*keys_again(self._target.key_source, self.secrets), time.monotonic())

    def _first(self, reach: Callable[[Endpoint, float], None], most_s: float) -> None:
        """Reach one endpoint, each until a moment that leaves the others some time."""
        faults: list[DriverError] = []
        until_s = time.monotonic() + min(self._timeout_s, most_s)
        each = self._target.each()
        for number, alone in enumerate(each):
            now_s = time.monotonic()
            try:
                reach(alone, now_s + (until_s - now_s) / (len(each) - number))
            except DriverError as error:
                faults.append(error)
            else:
                return
        raise faults[0]

    def _reach_at(self, target: Endpoint, until_s: float) -> None:
        place = UrlParts.of(target.url)
        reach(place, until_s - time.monotonic())
        self._place = place

    def _log_in_at(self, target: Endpoint, until_s: float) -> None:
        def request(
            place: UrlParts, method: str, path: str, headers: dict[str, str], body: bytes
        ) -> AccountAnswer:
            return self._request(place, method, path, headers, body, until_s)

        if target.token is not None:
            self._place = UrlParts.of(target.url)
            self._check_given_token(until_s)
            return
        log_in = by_v1 if target.keystone is None else by_keystone
        # It cannot be older than that, however late the answer comes.
        asked_s = time.monotonic()
        granted = log_in(target, request)
        storage = UrlParts.of(target.storage_url or granted.storage_url)
        asked = UrlParts.of(target.url)
        # Requests go to the endpoints as they are listed: with several, nothing else is meant.
        is_elsewhere = replace(storage, path="") != replace(asked, path="")
        if self._target.others and target.storage_url is None and is_elsewhere:
            raise DriverError(
                f"{target.url}: its storage URL is at {host_port(storage.host, storage.port)}",
                advice="With several endpoints, give the storage URL of each.",
            )
        self._take((*self.keys[:2], granted.token), granted.life_s, asked_s)
        self._place = storage

    def _take(self, keys: tuple[str, str, str], life_s: float, granted_s: float) -> None:
        self.keys, self.life_s, self._granted_s = keys, life_s, granted_s
        self.secrets = tuple(dict.fromkeys((*self.secrets, *keys[1:])))

    def check_serves(self) -> None:
        """Log in, and ask for something. Raises NotServing or another DriverError."""
        if self._target.api == "s3":
            self.renew()
            answer = self._request(self._place, "GET", self.base_path + "/", {})
        elif self._target.keystone is not None:
            self.renew()
            answer = self._ask("HEAD", "")
        else:
            self.authenticate()
            return
        if answer.status >= 500:
            raise NotServing(f"{self.url}: {answer}")

    def _check_given_token(self, until_s: float) -> None:
        answer = self._ask("HEAD", "", until_s=until_s)
        if answer.status >= 500:
            raise NotServing(f"{self.url}: HEAD with the given token: {answer}")
        if answer.status not in (200, 204):
            raise DriverError(
                f"{self.url}: HEAD with the given token: {answer}",
                advice="It has expired, or is for another account. A given token cannot be "
                "renewed: give a new one.",
            )

    def make_bucket(self, name: str) -> None:
        """Make a bucket or container, unless this user already has it."""
        body = b""
        if self._target.api == "s3" and self._target.region != "us-east-1":
            space = "http://s3.amazonaws.com/doc/2006-03-01/"
            location = f"<LocationConstraint>{self._target.region}</LocationConstraint>"
            body = (
                f'<CreateBucketConfiguration xmlns="{space}">{location}</CreateBucketConfiguration>'
            ).encode()
        answer = self.ask("PUT", f"/{name}", body=body)
        if (
            answer.status not in (200, 201, 202, 204)
            and b"BucketAlreadyOwnedByYou" not in answer.body
        ):
            raise DriverError(f"{self.url}: bucket {name} cannot be created: {answer}")

    def let_all(self, name: str) -> None:
        """Let anonymous requests read, write, delete and list a bucket's objects (S3)."""
        arn = f"arn:aws:s3:::{name}"
        rule = {
            "Effect": "Allow",
            "Principal": {"AWS": ["*"]},
            "Action": [f"s3:{one}" for one in _OF_ALL],
            "Resource": [arn, f"{arn}/*"],
        }
        body = json.dumps({"Version": "2012-10-17", "Statement": [rule]}).encode()
        answer = self.ask("PUT", f"/{name}", query="policy=", body=body)
        if answer.status not in (200, 204):
            raise DriverError(
                f"{self.url}: bucket {name} cannot be opened to anonymous requests: {answer}"
            )

    def delete_bucket(self, name: str) -> bool:
        """Delete a bucket, if it exists. False when it is not empty."""
        answer = self.ask("DELETE", f"/{name}")
        if answer.status == 409:
            return False
        if answer.status not in (200, 202, 204, 404):
            raise DriverError(f"{self.url}: bucket {name} cannot be deleted: {answer}")
        return True

    def objects(self, bucket: str) -> Iterator[str]:
        """Names of all objects of a bucket, by pages of a thousand; none when it does not exist."""
        last = ""
        while True:
            names, more = self._page(bucket, last)
            yield from names
            if not more or not names:
                return
            last = names[-1]

    def delete_object(self, bucket: str, name: str) -> None:
        """Delete an object, if it exists."""
        answer = self.ask("DELETE", f"/{bucket}/{quote(name)}")
        if answer.status not in (200, 202, 204, 404):
            raise DriverError(f"{self.url}: {bucket}/{name} cannot be deleted: {answer}")

    def _page(self, bucket: str, last: str) -> tuple[list[str], bool]:
        if self._target.api == "swift":
            query = f"format=json&limit=1000&marker={quote(last, safe='')}"
        else:
            query = f"list-type=2&max-keys=1000&start-after={quote(last, safe='')}"
        answer = self.ask("GET", f"/{bucket}", query=query)
        if answer.status in (204, 404):
            return [], False
        if answer.status != 200:
            raise DriverError(f"{self.url}: bucket {bucket} cannot be listed: {answer}")
        try:
            if self._target.api == "swift":
                names = [str(entry["name"]) for entry in json.loads(answer.body)]
                "".join(names).encode()  # fails for lone surrogates, which no request can contain
                more = bool(names)
            else:
                root = plain_xml.parse(answer.body)
                names = [key.text or "" for key in root.iterfind(".//{*}Contents/{*}Key")]
                more = (root.findtext("{*}IsTruncated") or "").lower() == "true"
            if not all(names):
                raise ValueError("it has an object without a name")  # noqa: TRY301 - deleting that would delete the bucket
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DriverError(
                f"{self.url}: the list of bucket {bucket} cannot be read: {error}"
            ) from error
        return names, more

    def ask(
        self, method: str, path: str, *, query: str = "", body: bytes = b"", fields: Fields = None
    ) -> AccountAnswer:
        """The answer to a request for a bucket or an object; it brings no key of a customer's.

        A refused token that can be renewed is, once.
        """
        answer = self._ask(method, path, query, body, fields)
        if answer.status != 401 or not self.renewable:
            return answer
        self.authenticate()
        return self._ask(method, path, query, body, fields)

    def _ask(
        self,
        method: str,
        path: str,
        query: str = "",
        body: bytes = b"",
        fields: Fields = None,
        until_s: float = math.inf,
    ) -> AccountAnswer:
        place = self._place
        if self._target.addressing == "virtual":
            bucket, _, rest = path.removeprefix("/").partition("/")
            place, path = replace(place, host=f"{bucket}.{place.host}"), f"/{rest}"
        path = place.path + path
        if self._target.api == "swift":
            headers = {"X-Auth-Token": self.token}
        else:
            host = host_header(place)
            now_s = int(time.time())
            headers = signature(self.keys, self._target.region, host, method, path, query, now_s)
        path += f"?{query}" if query else ""
        return self._request(place, method, path, {**headers, **(fields or {})}, body, until_s)

    def _request(
        self,
        place: UrlParts,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes = b"",
        until_s: float = math.inf,
    ) -> AccountAnswer:
        if place.tls and self._context is None:
            self._context = ssl.create_default_context(cafile=self._target.ca_file)
        within_s = min(self._timeout_s, until_s - time.monotonic())
        request = AccountRequest(place, method, path or "/", headers, body)
        return request.answer(within_s, self._context, self.secrets, LARGEST_ANSWER_BYTES)
