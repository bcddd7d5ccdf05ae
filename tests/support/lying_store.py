"""An S3 server whose bucket always lists the same objects, and what `clean` finds at any."""

from collections.abc import Iterator
from contextlib import contextmanager

from http_stub import Request, Response, Server
from weighbridge.common.endpoint import Endpoint
from weighbridge.gateways.existing.clear import LeftoverBucket, Sweep

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


def sweep_of(endpoint: Endpoint) -> Sweep:
    return Sweep([one.model_dump(mode="json") for one in endpoint.each()])


def leftovers(endpoint: Endpoint) -> tuple[LeftoverBucket, ...]:
    sweep = sweep_of(endpoint)
    found = (sweep.content(*one) for one in sweep.named())
    return tuple(one for one in found if one is not None)
