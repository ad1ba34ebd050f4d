use heddle_rt::net;
use jiff::Timestamp;

use super::*;

/// What a proxy with these rules answers a client that sends this and then waits, and what it writes down.
async fn answer(rules: Option<NetworkRules>, sent: &[u8]) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("network.json");
    if let Some(rules) = rules {
        rules.write(&path).unwrap();
    }
    let log = Mutex::new(Log::default());
    let secrets = ["s3cret-name".to_owned()].into_iter();
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let proxy = Proxy::new(clock, &path, &log, Masker::new(secrets));
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let mut client = net::connect(listener.address()).await.unwrap();
    let accepted = listener.accept().await.unwrap();
    client.write_all(sent).await.unwrap();
    let mut heard = String::new();
    tokio::join!(proxy.handle(accepted), client.read_to_string(&mut heard))
        .1
        .unwrap();
    let log = log.lock().text();
    (heard, log)
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_ends_the_connection() {
    for sent in [&b""[..], b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n"] {
        let (heard, _) = answer(Some(NetworkRules::default()), sent).await;
        assert!(heard.starts_with("HTTP/1.1 408 "), "{heard}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_has_no_end_is_refused() {
    let mut sent = b"GET http://example.com/ HTTP/1.1\r\nA: ".to_vec();
    sent.resize(HEAD_BYTES_MAX + 1, b'a');
    let (heard, _) = answer(Some(NetworkRules::default()), &sent).await;
    assert!(heard.starts_with("HTTP/1.1 431 "), "{heard}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_to_a_proxy_is_told_so() {
    let (heard, _) = answer(Some(NetworkRules::default()), b"GET / HTTP/1.1\r\n\r\n").await;
    assert!(heard.starts_with("HTTP/1.1 400 "), "{heard}");
    assert!(heard.contains("CONNECT"), "{heard}");
}

#[tokio::test(start_paused = true)]
async fn without_rules_nothing_is_connected_to() {
    let (heard, log) = answer(None, b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n").await;
    assert!(heard.starts_with("HTTP/1.1 503 "), "{heard}");
    assert!(
        log.contains("the rules of the network cannot be read"),
        "{log}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_a_destination_is_not_written_down() {
    let sent = b"CONNECT s3cret-name.invalid:1 HTTP/1.1\r\n\r\n";
    let (_, log) = answer(None, sent).await;
    assert!(log.starts_with("[heddle] connection to "), "{log}");
    assert!(!log.contains("s3cret-name"), "{log}");
}
