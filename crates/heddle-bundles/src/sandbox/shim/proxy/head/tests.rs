use proptest::prelude::*;

use super::*;

fn parsed(head: &str) -> Result<(String, u16, Option<String>), &'static str> {
    let request = parse(head.as_bytes())?;
    let forwarded = request
        .forwarded
        .map(|head| String::from_utf8(head).unwrap());
    Ok((request.host, request.port, forwarded))
}

#[test]
fn a_bare_connection_is_asked_for_by_host_and_port() {
    let table = [
        ("example.com:443", Some(("example.com", 443))),
        ("127.0.0.1:5432", Some(("127.0.0.1", 5432))),
        ("[::1]:22", Some(("::1", 22))),
        ("[]:443", None),
        ("[:]:443", None),
        ("[example.com]:443", None),
        ("example.com", None),
        ("user@example.com:443", None),
        ("http://example.com:443/", None),
        (":443", None),
        ("example.com:99999", None),
        ("", None),
    ];
    for (target, expected) in table {
        let head = format!("CONNECT {target} HTTP/1.1\r\nHost: elsewhere\r\n\r\n");
        let expected = expected.map(|(host, port)| (host.to_owned(), port, None));
        assert_eq!(parsed(&head).ok(), expected, "{target}");
    }
}

#[test]
fn a_plain_request_is_handed_on_as_its_server_expects_it() {
    let head = "GET http://example.com:8080/a?b=c HTTP/1.1\r\nHost: elsewhere\r\nAccept: */*\r\n\
                Proxy-Authorization: Basic x\r\nConnection: keep-alive\r\nproxy-connection: y\r\n\r\n";
    let forwarded =
        "GET /a?b=c HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n";
    let expected = ("example.com".to_owned(), 8080, Some(forwarded.to_owned()));
    assert_eq!(parsed(head), Ok(expected));

    let (host, port, forwarded) = parsed("HEAD http://[::1] HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((host.as_str(), port), ("::1", 80));
    let expected = "HEAD / HTTP/1.0\r\nHost: [::1]\r\nConnection: close\r\n\r\n";
    assert_eq!(forwarded.as_deref(), Some(expected));
}

#[test]
fn what_is_no_request_to_a_proxy_is_refused() {
    for head in [
        "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "GET https://example.com/ HTTP/1.1\r\n\r\n",
        "GET ftp://example.com/ HTTP/1.1\r\n\r\n",
        "GET http://user:password@example.com/ HTTP/1.1\r\n\r\n",
        "GET http://example.com/ HTTP/2.0\r\n\r\n",
        "GET  http://example.com/ HTTP/1.1\r\n\r\n",
        "GET http://example.com/ HTTP/1.1\r\nno header\r\n\r\n",
        "GET http://example.com/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        "GET http://example.com/ HTTP/1.1\r\nHost : example.com\r\n\r\n",
        "\r\n\r\n",
        "",
    ] {
        assert!(parse(head.as_bytes()).is_err(), "{head:?}");
    }
}

#[test]
fn a_head_ends_with_its_blank_line() {
    assert_eq!(end_of(b"A\r\n\r\nmore"), Some(5));
    assert_eq!(end_of(b"A\r\n\r"), None);
}

proptest! {
    /// Whatever is sent, what is handed on is one head and no more.
    #[test]
    fn nothing_behind_the_head_is_smuggled_into_it(
        target in "[ -~]{0,40}",
        headers in prop::collection::vec("[ -~\t\r\n]{0,30}", 0..6),
    ) {
        let mut head = format!("GET http://{target} HTTP/1.1\r\n");
        for header in headers {
            head.push_str(&header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let end = end_of(head.as_bytes()).unwrap();
        if let Ok(Request { forwarded: Some(forwarded), .. }) = parse(&head.as_bytes()[..end]) {
            prop_assert_eq!(end_of(&forwarded), Some(forwarded.len()));
        }
    }
}
