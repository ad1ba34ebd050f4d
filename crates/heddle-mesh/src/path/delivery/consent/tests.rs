//! Answers, without anybody who answers.

use http::HeaderMap;

use super::said::{Said, read};
use crate::routes::Webhook;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect()
}

#[test]
fn consent_is_in_the_headers_whatever_the_status() {
    let webhook = Webhook {
        origin: "mesh.example".to_owned(),
        rate: Some(120),
    };
    let (origin, rate) = ("webhook-allowed-origin", "webhook-allowed-rate");
    let yes = |rate| Ok(rate);
    let no = Err;
    for (status, pairs, expected) in [
        (
            200,
            vec![(origin, "mesh.example"), (rate, "120")],
            yes(Some(120)),
        ),
        (204, vec![(origin, "MESH.example"), (rate, "*")], yes(None)),
        (405, vec![(origin, "*"), (rate, "1")], yes(Some(1))),
        (503, vec![(origin, "*"), (rate, " 7 ")], yes(Some(7))),
        (200, vec![], no("without WebHook-Allowed-Origin")),
        (202, vec![(rate, "*")], no("without WebHook-Allowed-Origin")),
        (
            200,
            vec![(origin, "other.example"), (rate, "*")],
            no("other.example"),
        ),
        (
            200,
            vec![(origin, "x.mesh.example"), (rate, "*")],
            no("x.mesh.example"),
        ),
        (200, vec![(origin, "*")], no("without WebHook-Allowed-Rate")),
        (200, vec![(origin, "*"), (rate, "0")], no("above 0")),
        (200, vec![(origin, "*"), (rate, "-5")], no("above 0")),
        (200, vec![(origin, "*"), (rate, "+5")], no("above 0")),
        (200, vec![(origin, "*"), (rate, "many")], no("above 0")),
        (200, vec![(origin, "*"), (rate, "")], no("above 0")),
    ] {
        let said = read(status, &headers(&pairs), &webhook);
        match (said, expected) {
            (Said::Yes { rate }, Ok(expected)) => assert_eq!(rate, expected, "{pairs:?}"),
            (Said::No(why), Err(part)) => assert!(why.contains(part), "{why}"),
            (said, expected) => panic!("{status} {pairs:?}: {said:?}, not {expected:?}"),
        }
    }
    assert!(matches!(
        read(503, &headers(&[]), &webhook),
        Said::Nothing(_)
    ));
    assert!(matches!(
        read(429, &headers(&[]), &webhook),
        Said::Nothing(_)
    ));
    let asks_no_rate = Webhook {
        rate: None,
        ..webhook
    };
    let said = read(200, &headers(&[(origin, "*")]), &asks_no_rate);
    assert_eq!(said, Said::Yes { rate: None });
}
