use super::*;

fn decoded(text: &str) -> Result<Vec<ServerOp>, ProtocolViolation> {
    let mut received = BytesMut::from(text.as_bytes());
    let mut all = Vec::new();
    while let Some(op) = decode(&mut received)? {
        all.push(op);
    }
    Ok(all)
}

fn message(subject: &str, reply: Option<&str>, headers: Headers, payload: &str) -> ServerOp {
    ServerOp::NatsMessage {
        subscription: 7,
        subject: subject.to_owned(),
        reply: reply.map(str::to_owned),
        headers,
        payload: Bytes::copy_from_slice(payload.as_bytes()),
    }
}

#[test]
fn what_a_server_says_is_taken_apart() {
    let said = "INFO {\"a\":1} \r\nping\r\n+OK\r\nMSG a.b 7 5\r\nhe\r\no\r\nMSG a 7 r.s 0\r\n\r\n-ERR 'No.'\r\nPONG\r\n";
    let expected = [
        ServerOp::Info(Bytes::from_static(b"{\"a\":1}")),
        ServerOp::Ping,
        ServerOp::Ok,
        message("a.b", None, Headers::default(), "he\r\no"),
        message("a", Some("r.s"), Headers::default(), ""),
        ServerOp::Error("No.".to_owned()),
        ServerOp::Pong,
    ];
    assert_eq!(decoded(said).unwrap(), expected);
}

#[test]
fn headers_lie_in_front_of_a_payload() {
    let headers = |status, description: &str, lines: &[(&str, &str)]| Headers {
        status,
        description: description.to_owned(),
        lines: lines
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let said = "HMSG a 7 r 16 16\r\nNATS/1.0 503\r\n\r\n\r\nHMSG a 7 21 23\r\nNATS/1.0\r\nA: b: c\r\n\r\nhi\r\n";
    let expected = [
        message("a", Some("r"), headers(Some(503), "", &[]), ""),
        message("a", None, headers(None, "", &[("A", "b: c")]), "hi"),
    ];
    assert_eq!(decoded(said).unwrap(), expected);
    assert_eq!(
        Headers::decode(b"NATS/1.0 404 No Messages\r\n\r\n").unwrap(),
        headers(Some(404), "No Messages", &[])
    );
    for bad in [
        "",
        "NATS/2.0\r\n\r\n",
        "NATS/1.0 x\r\n\r\n",
        "NATS/1.0\r\nA\r\n\r\n",
    ] {
        assert_eq!(Headers::decode(bad.as_bytes()), None, "{bad}");
    }
    let many = format!("NATS/1.0\r\n{}\r\n", "a: b\r\n".repeat(257));
    assert_eq!(Headers::decode(many.as_bytes()), None);
}

#[test]
fn halves_are_waited_for_and_nothing_is_taken_of_them() {
    let said = "MSG a 7 5\r\nhello\r\n";
    for end in 0..said.len() {
        let mut received = BytesMut::from(&said.as_bytes()[..end]);
        assert_eq!(decode(&mut received), Ok(None), "{end}");
        assert_eq!(received.len(), end);
    }
}

#[test]
fn strangers_are_refused_before_anything_is_kept_for_them() {
    let check =
        |said: &str, why: &'static str| assert_eq!(decoded(said), Err(ProtocolViolation(why)));
    check("HTTP/1.1 200 OK\r\n", "an unknown word");
    check("PING\n", "a line ends without a carriage return");
    check("\n", "a line ends without a carriage return");
    check(&"x".repeat(LINE_BYTES_MAX), "a line is too long");
    check("MSG a 7 8388609\r\n", "a message is larger than it may be");
    check("HMSG a 7 3 2\r\n", "a message is larger than it may be");
    let shape = "a message has the wrong fields";
    check("MSG a 7 99999999999999999999999\r\n", shape);
    check("MSG a 7 -1\r\n", shape);
    check("MSG a 7 +1\r\n", shape);
    check("MSG a\r\n", shape);
    check("MSG a x 1\r\n", shape);
    check("MSG a 7 b c 1\r\n", shape);
    check("HMSG a 7 b 1\r\n", shape);
    check("MSG a 7 1\r\nab\r\n", "a message is not as long as it says");
    check(
        "HMSG a 7 2 2\r\nab\r\n",
        "headers are not what they should be",
    );
}

#[test]
fn what_we_say_is_put_together() {
    let check = |op: ClientOp, expected: &str| {
        let mut out = Vec::new();
        op.encode(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    };
    check(ClientOp::Connect("{}".to_owned()), "CONNECT {}\r\n");
    let subscribe = |group: Option<&str>| ClientOp::Subscribe {
        subscription: 3,
        subject: "a.>".to_owned(),
        group: group.map(str::to_owned),
    };
    check(subscribe(None), "SUB a.> 3\r\n");
    check(subscribe(Some("g")), "SUB a.> g 3\r\n");
    check(ClientOp::Unsubscribe(3), "UNSUB 3\r\n");
    let publish = |reply: Option<&str>, payload: &'static [u8]| ClientOp::Publish {
        subject: "a".to_owned(),
        reply: reply.map(str::to_owned),
        payload: Bytes::from_static(payload),
    };
    check(publish(None, b"h\r\n"), "PUB a 3\r\nh\r\n\r\n");
    check(publish(Some("r"), b""), "PUB a r 0\r\n\r\n");
    check(ClientOp::Ping, "PING\r\n");
    check(ClientOp::Pong, "PONG\r\n");
}

#[test]
fn no_subject_can_become_a_second_line() {
    for good in ["a", "_INBOX.a-b.c", "a.$b"] {
        assert!(is_subject(good), "{good}");
    }
    for bad in [
        "",
        "a b",
        "a\r\nPUB x 0",
        "a..b",
        ".a",
        "a.",
        "a.*",
        "a.>",
        "a\u{e4}",
    ] {
        assert!(!is_subject(bad), "{bad}");
    }
    assert!(!is_subject(&"a".repeat(1025)));
}
