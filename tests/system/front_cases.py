"""What fronts must pass on unchanged: targets, header fields, statuses and names of objects."""

TARGETS = [
    "/b/plain", "/b/a%2Fb", "/b/a%2fb", "/b/a%20b", "/b/a+b", "/b/a%2Bb", "/b/%C3%A9%E2%82%AC",
    "/b/a~b", "/b/a%7Eb", "/b/a%25b",
    "/b/a%3Fb", "/b/a%26b=c;d,e:f@g!$'()*", "/b//double", "//lead", "/b/x/../y", "/b/./y",
    "/b/..%2Fy", "/b/a%23b", "/b/k?acl",
    "/b/k?", "/b?prefix=a%2Fb&delimiter=/&marker=&max-keys=10",
    "/b/k?uploadId=2~abc%3D&partNumber=1", "/b/k?x=a+b%20c",
    "/b/k?X-Amz-Credential=AK%2F20140101%2Fus-east-1%2Fs3%2Faws4_request", "/b/trail/",
    "/b/" + "k" * 1024, "/b/%01ctl",
    "/b/%5Bx%5D", "/b/raw[x]", "/b/raw|x", "/swift/v1/c/o%20o?format=json", "/b/dot%2E", "/b/a%5Cb",
    "/b/k%00nul",
]  # fmt: skip

FIELDS = [
    (
        "Authorization",
        (
            "AWS4-HMAC-SHA256 Credential=AK/20140101/us-east-1/s3/aws4_request, "
            "SignedHeaders=host, "
            "Signature=abc"
        ),
    ),
    ("Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="),
    ("x-amz-date", "20140101T000000Z"),
    ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    ("x-amz-meta-foo", 'bar baz; "q"'),
    ("x-amz-meta-utf8", "caf\xc3\xa9"),
    ("x-amz-copy-source", "/b/a%2Fb%20c"),
    ("Date", "Wed, 01 Jan 2014 00:00:00 GMT"),
    ("Content-Type", 'text/plain; charset="utf-8"'),
    ("If-Match", '"abc"'),
    ("X-Auth-Token", "AUTH_tk123"),
    ("Content-Encoding", "gzip"),
    ("Content-Disposition", 'attachment; filename="a b"'),
    ("Cache-Control", "no-cache"),
    ("User-Agent", "Boto/2.9.6 Python/2.7"),
    ("Accept-Encoding", "identity"),
    ("X-Forwarded-For", "1.2.3.4"),
    ("x-amz-empty", ""),
    ("x-amz-meta-long", "v" * 7000),
    ("x_under_score", "1"),
]

STATUSES = [
    200, 201, 202, 204, 206, 301, 302, 304, 307, 400, 401, 403,
    404, 405, 409, 411, 412, 416, 418, 500, 501, 503, 507,
]  # fmt: skip

ODD = [
    "a/b%2Fc",
    "with space",
    "a+b",
    "ünï-名前-🐟",
    "a//b",
    "/lead",
    "q?x#y&z=1",
    "100%",
    "~'()*!,;:@$",
    "x" * 1000,
    "dots/../x",
    "[|]",
]
