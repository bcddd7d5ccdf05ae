"""Temporary URLs of Swift's, which `signing: {auth: query}` sends: the key that signs them, and the
digest that a store takes.

Each container gets the key. radosgw knows keys of accounts only, of which there are two: where the
container's is not enough, a free one of the account's is used, and freed when the objects are
deleted.
"""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import unquote

import gevent

from weighbridge.common.errors import DriverError
from weighbridge.common.signing import PRESIGNED
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.account_answer import AccountAnswer
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import UNSIGNED, Workload

Digest = Literal["sha256", "sha1"]
DIGESTS: Final[tuple[Digest, ...]] = ("sha256", "sha1")
"""Those that are tried, in this order: older releases know SHA-1 alone."""
OF_CONTAINER: Final = "X-Container-Meta-Temp-URL-Key"
OF_ACCOUNT: Final = ("X-Account-Meta-Temp-URL-Key-2", "X-Account-Meta-Temp-URL-Key")
"""The second one first: people use the first."""
_NONE: Final = "weighbridge-no-such-object"
_VALID_S: Final = 600
_PAUSES_S: Final = (0.0, 0.2, 1.0, 3.0)
"""Before each attempt with a new key of the account: other daemons hear of it later."""
_ADVICE: Final = (
    "Leave `signing`, or `write-form`, out, or choose a store that supports them: Swift with "
    "tempurl in its pipeline, or radosgw."
)


@dataclass(frozen=True)
class TempUrl:
    """How requests are signed, as the engine gets it."""

    key: str = field(repr=False)
    digest: Digest


def are_sent(workload: Workload, api: str) -> bool:
    """Whether a workload's requests over an API are let in by temporary URLs."""
    return api == "swift" and workload.signed == PRESIGNED


def needs_key(workload: Workload, api: str) -> bool:
    """Whether a workload's requests over an API are signed with the key: forms are, too."""
    return are_sent(workload, api) or (api == "swift" and "write-form" in workload.operations)


def with_token(workload: Workload, api: str) -> Workload:
    """A workload's requests with a token alone, to delete its objects: no temporary URL is let in
    to a container that is gone already, or where the store takes none.
    """
    if not needs_key(workload, api):
        return workload
    asked = {one: share for one, share in workload.operations.items() if one != "write-form"}
    return workload.model_copy(update={"operations": asked, "signing": UNSIGNED})


def key_of(setup: Setup) -> str:
    """The key, the same in all processes of all runs of one user, so that what an ended run left in
    the account is known again; of a user with nothing but a token, of all runs with this token. It
    does not disclose the user's own secret.
    """
    target = setup.target
    own = target.key.get_secret_value()
    secret = own or ("" if target.token is None else target.token.get_secret_value())
    return hmac.new(secret.encode(), b"weighbridge temporary URLs", "sha256").hexdigest()


def give_container(account: Account, bucket: str, key: str) -> None:
    """Give a container the key. Raises DriverError when it is refused."""
    headers = {"X-Auth-Token": account.token, OF_CONTAINER: key}
    answer = account.ask_alone("POST", f"/{bucket}", headers)
    if answer.status // 100 != 2:
        raise DriverError(f"{account.url}: container {bucket} takes no key: {answer}")


def ready(account: Account, bucket: str, key: str) -> TempUrl:
    """The key, and a digest that the store takes: a temporary URL of an object that does not exist
    is let in, and 404. Gives the account the key where a container's is not enough. Raises
    DriverError when no temporary URL is let in.
    """
    digest = _taken(account, bucket, key)
    if digest is None:
        _give_account(account, key)
        for pause_s in _PAUSES_S:
            gevent.sleep(pause_s)
            if digest := _taken(account, bucket, key):
                break
        else:
            forget(account, key)
            answer = _ask(account, bucket, key, DIGESTS[0])
            raise DriverError(
                f"{account.url}: temporary URLs are refused: {answer}", advice=_ADVICE
            )
    return TempUrl(key, digest)


def forget(account: Account, key: str) -> None:
    """Take the key from the account, if it has it. Raises DriverError when that is refused."""
    answer = account.ask_alone("HEAD", "", {"X-Auth-Token": account.token})
    # Who may not look at the account has given it nothing.
    for name in OF_ACCOUNT if answer.status // 100 == 2 else ():
        if answer.headers.get(name) == key:
            _post(account, {name.replace("X-", "X-Remove-", 1): "x"})


def _taken(account: Account, bucket: str, key: str) -> Digest | None:
    for digest in DIGESTS:
        answer = _ask(account, bucket, key, digest)
        if answer.status == 404:
            return digest
        if answer.status not in (400, 401, 403):
            raise DriverError(f"{account.url}: GET of a temporary URL: {answer}")
    return None


def _ask(account: Account, bucket: str, key: str, digest: Digest) -> AccountAnswer:
    path, until = f"/{bucket}/{_NONE}", int(time.time()) + _VALID_S
    text = f"GET\n{until}\n{unquote(account.base_path)}{path}".encode()
    signature = hmac.new(key.encode(), text, digest).hexdigest()
    query = f"temp_url_sig={signature}&temp_url_expires={until}"
    return account.ask_alone("GET", f"{path}?{query}", {})


def _give_account(account: Account, key: str) -> None:
    answer = account.ask_alone("HEAD", "", {"X-Auth-Token": account.token})
    if answer.status // 100 != 2:
        raise DriverError(f"{account.url}: HEAD of the account: {answer}")
    found = answer.headers
    if key in [found.get(name) for name in OF_ACCOUNT]:
        return
    free = [name for name in OF_ACCOUNT if not found.get(name)]
    if not free:
        raise DriverError(
            f"{account.url}: temporary URLs with a container's key are refused, and the account "
            "has two keys already",
            advice=f"Remove one of them: POST with X-Remove-{OF_ACCOUNT[0].removeprefix('X-')}.",
        )
    _post(account, {free[0]: key})


def _post(account: Account, headers: dict[str, str]) -> None:
    answer = account.ask_alone("POST", "", {"X-Auth-Token": account.token, **headers})
    if answer.status // 100 != 2:
        raise DriverError(
            f"{account.url}: the account's key for temporary URLs cannot be changed: {answer}"
        )
