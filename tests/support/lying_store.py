"""An S3 server whose bucket always lists the same objects, whatever was deleted."""

from collections.abc import Iterator
from contextlib import contextmanager

from http_stub import Request, Response, Server

NAMES = tuple(f"object-{number}" for number in range(5))
LIST = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in NAMES)


@contextmanager
def lying_store(bucket_status: int = 409) -> Iterator[str]:
    def answer(request: Request) -> Response:
        if request.method == "GET":
            return Response(200, f"<ListBucketResult>{LIST}</ListBucketResult>".encode())
        return Response(204 if request.path.count("/") > 1 else bucket_status)

    with Server(answer).serving() as server:
        yield server.url
