"""Bodies of HTTP responses, read completely but only up to a limit."""

from __future__ import annotations

import http.client


def read_limited(answer: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """The complete body of a response.

    Raises HTTPException if it is longer than `most_bytes` or ends early; OSError.
    """
    if answer.length is not None and answer.length > most_bytes:
        raise http.client.HTTPException(
            f"an answer of {answer.length} bytes: more than {most_bytes} are not read"
        )
    if answer.length is not None:
        return answer.read()  # given a size, it would not raise for a body that ends early
    body = answer.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise http.client.HTTPException(
            f"an answer of more than {most_bytes} bytes: more are not read"
        )
    return body
