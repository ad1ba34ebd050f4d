//! Where deliveries do not go, whoever asks for it.

use super::*;

#[tokio::test]
async fn a_redirect_is_an_answer_and_nobody_follows_it() {
    let elsewhere =
        Server::start(|_| Act::say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")).await;
    for status in [301, 302, 303, 307, 308] {
        let location = elsewhere.url();
        let head =
            format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let answered = outcome(Act::say(&head), PATIENT).await;
        let refused = matches!(answered, Outcome::Refused { status: found, retry: false, .. } if found == status);
        assert!(refused, "{status}: {answered:?}");
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn nothing_is_delivered_to_link_local_addresses_or_cloud_metadata() {
    let courier = courier(Limits::default());
    for host in [
        "169.254.169.254",
        "169.254.1.1",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "0.0.0.0",
    ] {
        let address = courier.address(&format!("http://{host}/"), None).unwrap();
        let error = error_of(send(&courier, &address, PATIENT).await);
        assert!(error.contains("are not allowed"), "{host}: {error}");
    }
}
