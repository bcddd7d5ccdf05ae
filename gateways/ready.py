"""Wait until a URL of a daemon says that it is ready, as a program on a host.

Reads `{"url": ..., "text": ..., "times": n,
"deadline_s": s}` from stdin. Exits with 0 when the URL answers 200 with `text` in its body at least
so many times, with 1 at the deadline, after it printed the last answer.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

_TIMEOUT_S = 5.0
_PAUSE_S = 0.05
_LONGEST_BYTES = 1 << 20


def answer_of(url: str) -> tuple[int, str]:
    """Status and body of a GET; status 0 and the reason where there was no answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_S) as answer:
            return answer.status, answer.read(_LONGEST_BYTES).decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.reason
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)


def run_order(order: Mapping[str, Any]) -> str:
    """Wait as ordered; returns what is wrong at the deadline, empty when it is ready."""
    deadline = time.monotonic() + float(order["deadline_s"])
    while True:
        status, body = answer_of(str(order["url"]))
        if status == http.client.OK and body.count(order["text"]) >= int(order["times"]):
            return ""
        if time.monotonic() > deadline:
            return f"{order['url']} is not ready: {status} {body[:300]}"
        time.sleep(_PAUSE_S)


if __name__ == "__main__":
    wrong = run_order(json.load(sys.stdin))
    if wrong:
        sys.exit(wrong)
