"""A program that ends as Python does when a library raises: its last words repeat what it was
given.
"""

import json
import sys

if __name__ == "__main__":
    endpoint = json.load(sys.stdin)["endpoints"][0]
    raise ValueError(f"Invalid header value {endpoint['key'].encode()!r}")
