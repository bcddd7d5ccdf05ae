"""A store in memory that does all that Swift clients ask of it here."""

from __future__ import annotations

import hmac
import io
import json
import tarfile
import time

from http_stub import Request, Response
from tests.gateways.capabilities.memory_objects import (
    MODIFIED,
    NUMBERS,
    Bucket,
    Stored,
    false_condition,
    listing,
    ranged,
)

USER, KEY, TOKEN = "weigh:er", "a-planted-secret", "AUTH_tk_planted"
ACCOUNT = "/v1/AUTH_u"


class MemorySwift:
    def __init__(self) -> None:
        self.buckets: dict[str, Bucket] = {}

    def respond(self, request: Request) -> Response:
        if request.path == "/auth/v1.0":
            host = request.headers["host"]
            url = f"http://{host}{ACCOUNT}"
            return Response(200, headers={"X-Storage-Url": url, "X-Auth-Token": TOKEN})
        if request.path == "/info":
            return Response(200, json.dumps({"swift": {}, "slo": {}}).encode())
        name, _, key = request.path.removeprefix(ACCOUNT).lstrip("/").partition("/")
        bucket = self.buckets.get(name)
        if not self._let_in(request, bucket):
            return Response(401)
        if not name:
            return self._account(request)
        if request.method == "PUT" and not key and not request.query:
            self.buckets[name] = Bucket(headers=_kept(request, "x-container-", "x-versions", "x-h"))
            return Response(201)
        if bucket is None:
            return Response(404)
        if request.method == "DELETE" and not key:
            if any(bucket.objects.values()):
                return Response(409)
            del self.buckets[name]
            return Response(204)
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            return _form(request, bucket, key)
        return self._object(request, bucket, key) if key else _container(request, bucket)

    def _let_in(self, request: Request, bucket: Bucket | None) -> bool:
        if request.headers.get("x-auth-token") == TOKEN or request.method == "POST":
            return True
        if bucket is None:
            return False
        given = request.query.get("temp_url_sig")
        if given:
            algorithm = {40: "sha1", 64: "sha256", 128: "sha512"}[len(given)]
            text = f"{request.method}\n{request.query['temp_url_expires']}\n{request.path}"
            return _signature(bucket, text, algorithm) == given
        return bucket.headers.get("x-container-read") == ".r:*"

    def _account(self, request: Request) -> Response:
        if "bulk-delete" in request.query:
            for line in request.body.decode().splitlines():
                name, _, key = line.partition("/")
                self.buckets[name].objects.pop(key, None)
        return Response(200, b"{}")

    def _find(self, path: str) -> Stored | None:
        name, _, key = path.lstrip("/").partition("/")
        found = self.buckets[name].now(key) if name in self.buckets else None
        if found is None or time.time() > float(found.sub.get("until", b"inf")):
            return None
        if "link" in found.sub:
            return self._find(found.sub["link"].decode())
        if "dlo" in found.sub:
            name, _, prefix = found.sub["dlo"].decode().partition("/")
            inside = self.buckets[name]
            keys = [one for one in inside.names() if one.startswith(prefix)]
            return Stored(b"".join(inside.objects[one][-1].body for one in keys))
        return found

    def _object(self, request: Request, bucket: Bucket, key: str) -> Response:
        path, query, headers = request.path.removeprefix(ACCOUNT), request.query, request.headers
        found = self._find(path)
        if request.method == "PUT" and "x-copy-from" not in headers:
            return self._put(request, bucket, key, found)
        if request.method in ("COPY", "PUT"):
            source = found if request.method == "COPY" else self._find(headers["x-copy-from"])
            target = headers.get("destination", path)
            if source is None:
                return Response(404)
            name, _, new = target.lstrip("/").partition("/")
            self.buckets[name].objects[new] = [Stored(source.body, dict(source.headers))]
            return Response(201)
        if found is None:
            return Response(404)
        if request.method == "POST":
            found.headers = _kept(request, "x-object-meta-")
            return Response(202)
        if request.method == "DELETE":
            return self._delete(request, bucket, key, found)
        status = false_condition(headers, found)
        if status:
            return Response(status)
        if query.get("multipart-manifest") == "get":
            return Response(200, found.sub["slo"])
        if "part-number" in query:
            return Response(206, found.parts[int(query["part-number"]) - 1])
        return ranged(
            request, found.body, {"ETag": found.etag, "Last-Modified": MODIFIED, **found.headers}
        )

    def _put(self, request: Request, bucket: Bucket, key: str, before: Stored | None) -> Response:
        headers, body = request.headers, request.body
        if false_condition(headers, before) == 412:
            return Response(412)
        made = Stored(body, _kept(request, "x-object-meta-"))
        if headers.get("etag", made.etag) != made.etag:
            return Response(422)
        if len(body) > int(bucket.headers.get("x-container-meta-quota-bytes", 10**9)):
            return Response(413)
        if request.query.get("multipart-manifest") == "put":
            rows = json.loads(body)
            parts = [self._find(row["path"]) for row in rows]
            if [part and part.etag for part in parts] != [row["etag"] for row in rows]:
                return Response(400)
            bodies = [part.body for part in parts if part is not None]
            made = Stored(b"".join(bodies), parts=bodies)
            made.sub["slo"] = json.dumps([{"name": row["path"]} for row in rows]).encode()
        if "x-delete-after" in headers:
            until = time.time() + int(headers["x-delete-after"])
            made.sub["until"] = str(until).encode()
            made.headers["x-delete-at"] = str(int(until))
        for name, sub in (("x-symlink-target", "link"), ("x-object-manifest", "dlo")):
            if name in headers:
                made.sub[sub] = headers[name].encode()
        made.version = f"v{next(NUMBERS)}"
        old = ("x-versions-location", "x-history-location")
        archive = next(filter(None, map(bucket.headers.get, old)), "")
        if archive and before is not None:
            self.buckets[archive].objects[f"{key}/{before.version}"] = [before]
        kept = bucket.objects.get(key, []) if "x-versions-enabled" in bucket.headers else []
        bucket.objects[key] = [*kept, made]
        return Response(201, headers={"ETag": made.etag})

    def _delete(self, request: Request, bucket: Bucket, key: str, found: Stored) -> Response:
        if request.query.get("multipart-manifest") == "delete":
            for row in json.loads(found.sub["slo"]):
                name, _, segment = row["name"].lstrip("/").partition("/")
                del self.buckets[name].objects[segment]
        del bucket.objects[key]
        archive = self.buckets.get(bucket.headers.get("x-versions-location", ""))
        if archive and archive.objects:
            name = max(archive.objects)
            bucket.objects[key] = archive.objects.pop(name)
        return Response(204)


def _container(request: Request, bucket: Bucket) -> Response:
    query = request.query
    if request.method == "POST":
        bucket.headers |= _kept(request, "x-container-")
        return Response(204)
    if request.method == "HEAD":
        count = {"X-Container-Object-Count": str(len(bucket.names()))}
        return Response(204, headers={**bucket.headers, **count})
    if "extract-archive" in query:
        with tarfile.open(fileobj=io.BytesIO(request.body)) as archive:
            for member in archive:
                file = archive.extractfile(member)
                assert file is not None
                bucket.objects[member.name] = [Stored(file.read())]
        return Response(201)
    if "versions" in query:
        rows = [
            {"name": key, "version_id": one.version}
            for key, versions in bucket.objects.items()
            for one in versions
        ]
        return Response(200, json.dumps(rows).encode())
    end = query.get("end_marker") or "~"
    names = [name for name in bucket.names() if name < end]
    if query.get("reverse") == "true":
        rows = [{"name": name} for name in names[::-1][: int(query["limit"])]]
        return Response(200, json.dumps(rows).encode())
    found, folders, _ = listing(
        names,
        query.get("prefix", ""),
        query.get("delimiter", ""),
        query.get("marker", ""),
        int(query.get("limit", 10_000)),
    )
    rows = [*({"name": name} for name in found), *({"subdir": name} for name in folders)]
    if "format" not in query:
        return Response(200, "".join(f"{name}\n" for name in found).encode())
    return Response(200, json.dumps(rows).encode())


def _form(request: Request, bucket: Bucket, prefix: str) -> Response:
    fields = request.form
    names = ("redirect", "max_file_size", "max_file_count", "expires")
    text = "\n".join((request.path, *(fields[name].decode() for name in names)))
    if fields["signature"].decode() != _signature(bucket, text, "sha1"):
        return Response(401)
    bucket.objects[f"{prefix}object-1"] = [Stored(fields["file1"])]
    return Response(201)


def _signature(bucket: Bucket, text: str, algorithm: str) -> str:
    key = bucket.headers["x-container-meta-temp-url-key"]
    return hmac.new(key.encode(), text.encode(), algorithm).hexdigest()


def _kept(request: Request, *names: str) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.startswith(names)}
