"""One request outside of windows, on a connection of its own, with one deadline for its answer."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.common import bounded_http
from weighbridge.common.address import bracketed, host_port
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account_answer import AccountAnswer, NotServing
from weighbridge.drivers.locust.url_parts import UrlParts


@dataclass(frozen=True)
class AccountRequest:
    """What is sent where."""

    place: UrlParts
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def answer(
        self,
        within_s: float,
        context: ssl.SSLContext | None,
        secrets: tuple[str, ...],
        most_bytes: int,
    ) -> AccountAnswer:
        """Its complete answer, of at most so many bytes. `context`: None for plain HTTP.

        Raises DriverError, NotServing after `within_s`.
        """
        place, method = self.place, self.method
        connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(place.host, place.port, context=context)
            if place.tls
            else http.client.HTTPConnection(place.host, place.port)
        )
        where = f"{host_port(place.host, place.port)}: {method} {self.path.partition('?')[0]}"
        try:
            # The Host header must be as it was signed; servers want a length for every PUT, even 0,
            # and s3api waits for the body of a DELETE of a version that has none.
            length = {"Content-Length": str(len(self.body))} if method in ("PUT", "DELETE") else {}
            fields = {"Host": host_header(place), **length, **self.headers}
            answer, data = bounded_http.exchanged(
                connection, within_s, method, self.path, self.body or None, fields, most_bytes
            )
            return AccountAnswer(answer.status, answer.headers, data, secrets)
        except (OSError, http.client.HTTPException) as error:
            raise _failure(where, error) from error
        except ValueError:
            # http.client's message repeats the field that cannot be sent: maybe a key or a token.
            what = "its path or one of its headers contains what HTTP cannot carry"
            raise DriverError(
                f"{host_port(place.host, place.port)}: {method} was not sent: {what}"
            ) from None
        finally:
            connection.close()


def reach(place: UrlParts, within_s: float) -> None:
    """Connect, and send nothing. Raises DriverError."""
    connection = http.client.HTTPConnection(place.host, place.port)
    try:
        bounded_http.connect(connection, within_s)
    except OSError as error:
        where = f"{host_port(place.host, place.port)}: cannot be reached"
        raise _failure(where, error) from error
    finally:
        connection.close()


def host_header(place: UrlParts) -> str:
    """The Host header of requests to a place, with its port unless that is the scheme's own."""
    usual = place.port == (443 if place.tls else 80)
    return bracketed(place.host) if usual else host_port(place.host, place.port)


def _failure(what: str, error: Exception) -> DriverError:
    words = str(getattr(error, "strerror", None) or error) or type(error).__name__
    return (NotServing if isinstance(error, TimeoutError) else DriverError)(f"{what}: {words}")
