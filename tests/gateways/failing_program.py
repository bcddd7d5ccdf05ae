"""A program that fails with an uncaught exception which repeats its input."""

import json
import sys

if __name__ == "__main__":
    endpoint = json.load(sys.stdin)["endpoints"][0]
    raise ValueError(f"Invalid header value {endpoint['key'].encode()!r}")
