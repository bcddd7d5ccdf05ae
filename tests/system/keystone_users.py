"""Makes a user, two projects, an object store and an application credential in a new Keystone, by
its API; the user may use one of the projects.

Reads JSON from stdin (see `keystone_host.KeystoneSite`), prints the application credential.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
from typing import Any


def asked(method: str, url: str, token: str, body: object = None) -> tuple[Any, str]:
    """The answer to a request, and the token in it. Raises OSError."""
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "X-Auth-Token": token},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null"), answer.headers.get("X-Subject-Token", "")


def token(order: dict[str, Any], user: str, password: str, project: str) -> tuple[Any, str]:
    domain = {"id": "default"}
    who = {"name": user, "domain": domain, "password": password}
    auth = {
        "identity": {"methods": ["password"], "password": {"user": who}},
        "scope": {"project": {"name": project, "domain": domain}},
    }
    return asked("POST", f"{order['url']}/auth/tokens", "", {"auth": auth})


def first_token(order: dict[str, Any]) -> str:
    until_s = time.monotonic() + float(order["within_s"])
    while True:
        try:
            return token(order, "admin", order["admin"], "admin")[1]
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)


def main() -> None:
    order = json.load(sys.stdin)
    url, admin = order["url"], first_token(order)

    def made(kind: str, fields: dict[str, Any]) -> str:
        return str(asked("POST", f"{url}/{kind}s", admin, {kind: fields})[0][kind]["id"])

    service = made("service", {"type": "object-store", "name": "swift"})
    for interface in ("public", "internal"):
        place = {"interface": interface, "region": order["region"], "service_id": service}
        made("endpoint", {**place, "url": order["storage"]})
    mine, _ = (made("project", {"name": order[one]}) for one in ("project", "other"))
    user = made("user", {"name": order["user"], "password": order["password"]})
    (role,) = asked("GET", f"{url}/roles?name=member", admin)[0]["roles"]
    asked("PUT", f"{url}/projects/{mine}/users/{user}/roles/{role['id']}", admin)
    own = token(order, order["user"], order["password"], order["project"])[1]
    fields = {"application_credential": {"name": "weigh"}}
    answer = asked("POST", f"{url}/users/{user}/application_credentials", own, fields)[0]
    found = answer["application_credential"]
    json.dump({one: found[one] for one in ("id", "secret")}, sys.stdout)


if __name__ == "__main__":
    main()
