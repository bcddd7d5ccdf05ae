//! Tests of heads.

use super::*;

fn head_writer(api: &str) -> HeadWriter {
    head_writer_at(api, "127.0.0.1", "path")
}

fn head_writer_at(api: &str, host: &str, addressing: &str) -> HeadWriter {
    let json = serde_json::json!({
        "api": api, "host": host, "addressing": addressing, "port": 8080, "tls": false,
        "ca_file": null, "base_path": "/v1/AUTH_a:b/", "access_key": "AK", "secret_key": "SK",
        "region": "us-east-1", "token": "tok", "bucket_prefix": "wb",
        "request_timeout_s": 1.0, "threads": 1, "verify": false, "seed": 1,
        "workload": {"name": "w", "objects": {"size": 1, "containers": 1, "per_container": 1},
            "operations": {"read": 1.0}, "pick": "uniform", "rate_per_s": null}
    });
    let config = Config::parse(&json.to_string()).expect("a config");
    HeadWriter::new(&config, &config.host_headers(), &[])
}

fn head_of(writer: &mut HeadWriter, operation: Operation, container: u64) -> String {
    let request = Request::whole(operation, container, Object::Prepared(7), 4096);
    let (mut out, flow) = (Vec::new(), Flow::default());
    let now = Duration::from_secs(1_401_192_000);
    writer.write(&mut out, &request, &WorkerId::NONE, 0, now, &flow);
    String::from_utf8(out).expect("text")
}

fn write(api: &str, operation: Operation) -> String {
    head_of(&mut head_writer(api), operation, 3)
}

#[test]
fn swift_requests_carry_the_token_and_the_storage_path() {
    let head = write("swift", Operation::Read);
    assert!(
        head.starts_with(
            "GET /v1/AUTH_a:b/wb-w-3/object-0000000007 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"
        ),
        "{head}"
    );
    assert!(head.contains("\r\nX-Auth-Token: tok\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(!head.contains("Authorization"));
    assert!(
        write("swift", Operation::List)
            .starts_with("GET /v1/AUTH_a:b/wb-w-3?limit=1000 HTTP/1.1\r\n")
    );
}

#[test]
fn renewed_keys_replace_the_first() {
    let of = |access: &str, token: &str| Keys {
        access: access.into(),
        secret: "other".into(),
        token: token.into(),
    };
    for (api, field) in [("swift", "X-Auth-Token"), ("s3", "x-amz-security-token")] {
        let mut writer = head_writer(api);
        head_of(&mut writer, Operation::Read, 3);
        writer.renew(&of("RENEWED", "another"));
        let head = head_of(&mut writer, Operation::Read, 3);
        assert!(head.contains(&format!("\r\n{field}: another\r\n")), "{head}");
        assert!(!head.contains("tok\r\n") && !head.contains("Credential=AK/"), "{head}");
        assert_eq!(head.contains("Credential=RENEWED/"), api == "s3", "{head}");
    }
    let mut writer = head_writer("s3");
    writer.renew(&of("LASTING", ""));
    assert!(!head_of(&mut writer, Operation::Read, 3).contains("security-token"));
}

#[test]
fn keys_are_not_shown_by_their_debug_format() {
    let keys = Keys { access: "a".into(), secret: "planted".into(), token: "planted".into() };
    assert_eq!(format!("{keys:?}"), "Keys");
}

#[test]
fn virtual_hosts_name_the_bucket_in_the_host_and_not_in_the_path() {
    let mut writer = head_writer_at("s3", "store.example", "virtual");
    let read = head_of(&mut writer, Operation::Read, 3);
    assert!(
        read.starts_with(
            "GET /v1/AUTH_a:b/object-0000000007 HTTP/1.1\r\nHost: wb-w-3.store.example:8080\r\n"
        ),
        "{read}"
    );
    let list = head_of(&mut writer, Operation::List, 12);
    assert!(
        list.starts_with(
            "GET /v1/AUTH_a:b/?list-type=2&max-keys=1000 HTTP/1.1\r\n\
             Host: wb-w-12.store.example:8080\r\n"
        ),
        "{list}"
    );
    assert!(list.contains("\r\nx-amz-security-token: tok\r\nAuthorization: "), "{list}");
}

#[test]
fn the_last_request_of_a_connection_says_so_in_its_head() {
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    put_close(&mut head);
    assert_eq!(head, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
}

#[test]
fn s3_requests_are_signed_and_writes_have_a_length() {
    let head = write("s3", Operation::Write);
    assert!(head.starts_with("PUT /v1/AUTH_a:b/wb-w-3/object-0000000007 HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains(
            "\r\nx-amz-date: 20140527T120000Z\r\nx-amz-security-token: tok\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=AK/20140527/"
        ),
        "{head}"
    );
    assert!(
        head.contains("\r\nContent-Length: 4096\r\n") && !head.contains("X-Auth-Token"),
        "{head}"
    );
    assert!(!write("s3", Operation::Delete).contains("Content-Length"));
}
