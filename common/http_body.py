"""Bodies of HTTP answers, read to their end but no further than a bound: what answers may not be
what was asked for.
"""

from __future__ import annotations

import http.client


def whole(answer: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """The body of an answer.

    Raises HTTPException when it has more than `most_bytes`, or breaks off; OSError.
    """
    if answer.length is not None and answer.length > most_bytes:
        raise http.client.HTTPException(
            f"an answer of {answer.length} bytes: more than {most_bytes} are not read"
        )
    if answer.length is not None:
        return answer.read()  # with a number of bytes it would not tell of a body that breaks off
    body = answer.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise http.client.HTTPException(
            f"an answer that goes on after {most_bytes} bytes: more are not read"
        )
    return body
