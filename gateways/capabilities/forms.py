"""Bodies of HTML forms with a file (RFC 7578), as browsers post them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping


def form(fields: Mapping[str, str], file: bytes, file_field: str) -> tuple[bytes, str]:
    """The body and its Content-Type; the file comes last, as S3 and Swift ask for."""
    boundary = f"wb-{secrets.token_hex(8)}"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{file_field}"; '
        'filename="object-1"\r\nContent-Type: application/octet-stream\r\n\r\n'
    )
    body = "".join((*parts, head)).encode() + file + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"
