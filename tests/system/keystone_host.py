"""A real Keystone, of Debian's packages, and a second Swift proxy that asks it, on the lab host of
Swift's own proxy.
"""

from __future__ import annotations

import configparser
import io
import json
import secrets
import sys
from pathlib import Path
from typing import Any, Final

from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Host, Service
from weighbridge.gateways.gateway import STORES, RootImage

RELEASE: Final = "swift-2.30"
_SWIFT: Final = STORES["swift"].releases[RELEASE]
_DATABASE: Final = "sqlite:////var/lib/keystone/keystone.db"
IMAGE: Final = RootImage(
    name="keystone",
    suite=_SWIFT.suite,
    packages=tuple(sorted({*_SWIFT.packages, "keystone", "python3-keystonemiddleware"})),
    # To make its tables takes longer than all that tests do with it.
    options=(
        *_SWIFT.options,
        (
            '--customize-hook=chroot "$1" su -s /bin/sh keystone -c '
            f"'OS_DATABASE__CONNECTION={_DATABASE} keystone-manage db_sync'"
        ),
        (
            '--customize-hook=chroot "$1" keystone-manage fernet_setup --keystone-user keystone '
            "--keystone-group keystone"
        ),
    ),
)
"""The image of that release with Keystone beside Swift."""

REGION: Final = "one"
USER, PROJECT, OTHER = "demo", "lab", "elsewhere"
_PORT, PROXY_PORT = 5000, 8081
_CONFIG: Final = f"""
[DEFAULT]
use_stderr = true
[database]
connection = {_DATABASE}
[identity]
password_hash_rounds = 4
[token]
expiration = %d
"""
_START_S: Final = 60.0
USERS: Final = Path(__file__).with_name("keystone_users.py")


class KeystoneSite:
    def __init__(self, host: Host, client: Host, life_s: int) -> None:
        self.url = f"http://{host.address}:{_PORT}/v3"
        self.password, admin = secrets.token_hex(12), secrets.token_hex(12)
        _start_keystone(host, self.url, admin, life_s)
        _start_proxy(host, self.url, admin)
        order = {
            "url": self.url,
            "admin": admin,
            "storage": f"http://{host.address}:{PROXY_PORT}/v1/AUTH_%(project_id)s",
            "region": REGION,
            "user": USER,
            "password": self.password,
            "project": PROJECT,
            "other": OTHER,
            "within_s": _START_S,
        }
        argv = [sys.executable, str(USERS)]
        try:
            made = client.run(argv, stdin=json.dumps(order), timeout_s=2 * _START_S).stdout
        except CommandFailed as error:
            log = "\n".join(host.log_tail("keystone.out", 40))
            raise AssertionError(f"{error.output}\n{log}") from error
        self.application: dict[str, Any] = json.loads(made)
        """`id` and `secret` of an application credential."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            "OS_AUTH_URL": self.url,
            "OS_USERNAME": USER,
            "OS_PROJECT_NAME": PROJECT,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_REGION_NAME": REGION,
            "OS_PASSWORD": self.password,
        }


def _start_keystone(host: Host, url: str, admin: str, life_s: int) -> None:
    host.put("/etc/keystone/keystone.conf", _CONFIG % life_s)
    host.run(
        [
            *("keystone-manage", "bootstrap", "--bootstrap-public-url", url),
            *("--bootstrap-internal-url", url, "--bootstrap-region-id", REGION),
        ],
        env={"OS_BOOTSTRAP_PASSWORD": admin},
        timeout_s=2 * _START_S,
    )
    options = (
        # One thread alone: two would wait for each other's locks of SQLite.
        *("--http-socket", f"{host.address}:{_PORT}", "--plugins", "python3", "--master"),
        *("--lazy-apps", "--die-on-term", "--buffer-size", "65535"),
        # It closes connections after an answer, and would not say so.
        *("--add-header", "Connection: close"),
        *("--wsgi-file", "/usr/bin/keystone-wsgi-public"),
    )
    host.start([Service("keystone", ("uwsgi", *options))])


def _start_proxy(host: Host, url: str, admin: str) -> None:
    """Start a proxy with the configuration of Swift's own, but for its port and who lets in."""
    config = configparser.RawConfigParser()
    config.read_string(host.run(["cat", "/etc/swift/proxy-server.conf"]).stdout)
    config["DEFAULT"]["bind_port"] = str(PROXY_PORT)
    words = config["pipeline:main"]["pipeline"]
    config["pipeline:main"]["pipeline"] = words.replace("tempauth", "authtoken keystoneauth")
    config["filter:authtoken"] = {
        "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
        "www_authenticate_uri": url,
        "auth_url": url,
        "auth_type": "password",
        "username": "admin",
        "password": admin,
        "project_name": "admin",
        "user_domain_id": "default",
        "project_domain_id": "default",
        "region_name": REGION,
        "delay_auth_decision": "true",
        "cache": "swift.cache",
    }
    config["filter:keystoneauth"] = {"use": "egg:swift#keystoneauth", "operator_roles": "member"}
    text = io.StringIO()
    config.write(text)
    host.put("/etc/swift/keystone-proxy.conf", text.getvalue())
    host.start(
        [Service("keystone-proxy", ("swift-proxy-server", "/etc/swift/keystone-proxy.conf"))]
    )
