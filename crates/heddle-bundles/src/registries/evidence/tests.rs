//! Every row of the table, and the traps behind some of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

const DIGEST: &str = "sha256:11";

fn labelled(text: &str) -> ImageResponse {
    let labels = [("com.redhat.apb.spec".to_owned(), STANDARD.encode(text))];
    ImageResponse::Image(Seen {
        state_digest: None,
        manifest_digest: DIGEST.to_owned(),
        config_digest: "sha256:22".to_owned(),
        labels: labels.into(),
        unfit: None,
    })
}

const SOUND: &str = "version: 1.0\nname: hello\ndescription: says hello\nplans:\n- name: default\n  description: the only one\n";

fn refusal(status: u16, errors: &[(&str, &str)]) -> ImageResponse {
    let error = |(code, message): &(&str, &str)| Refused {
        code: (*code).to_owned(),
        message: (*message).to_owned(),
    };
    ImageResponse::Refusal {
        status,
        errors: errors.iter().map(error).collect(),
    }
}

/// A word for each verdict.
fn verdict(answer: ImageResponse, listing_complete: bool, listed: Option<bool>) -> String {
    let image = ImageName {
        repository: "org/hello".to_owned(),
        track: "latest".to_owned(),
    };
    let circumstances = Circumstances {
        image: &image,
        location: "host/org/hello",
        listing_complete,
        listed,
    };
    match classify(answer, circumstances) {
        ImageEvidence::Unchanged => "unchanged".to_owned(),
        ImageEvidence::Present(found) => {
            format!("present {} {}", found.manifest_digest, found.location)
        }
        ImageEvidence::Rejected { digest, .. } => format!("rejected {digest}"),
        ImageEvidence::Absent { reason, .. } => format!("absent {reason:?}"),
        ImageEvidence::Unknown { .. } => "unknown".to_owned(),
    }
}

#[test]
fn an_answer_proves_what_the_table_says_and_no_more() {
    let manifest = refusal(404, &[("MANIFEST_UNKNOWN", "manifest unknown")]);
    let name = refusal(
        404,
        &[("NAME_UNKNOWN", "repository name not known to registry")],
    );
    let accept = "OCI manifest found, but accept header does not support OCI manifests";
    let unfit = match labelled(SOUND) {
        ImageResponse::Image(seen) => ImageResponse::Image(Seen {
            unfit: Some("for another machine".to_owned()),
            ..seen
        }),
        other => other,
    };
    let listed = Some(true);
    let table = [
        (
            "present sha256:11 host/org/hello",
            labelled(SOUND),
            true,
            listed,
        ),
        (
            "present sha256:11 host/org/hello",
            labelled(SOUND),
            false,
            None,
        ),
        ("unchanged", ImageResponse::Same, true, listed),
        ("unchanged", ImageResponse::Same, false, None),
        ("absent TagRemoved", manifest.clone(), true, listed),
        (
            "absent RemovedFromRegistry",
            manifest.clone(),
            true,
            Some(false),
        ),
        ("absent TagRemoved", manifest.clone(), true, None),
        ("absent RemovedFromRegistry", name.clone(), true, None),
        ("unknown", manifest, false, listed),
        ("unknown", name, false, Some(false)),
        ("unknown", refusal(404, &[]), true, Some(false)),
        (
            "unknown",
            refusal(404, &[("BLOB_UNKNOWN", "")]),
            true,
            Some(false),
        ),
        (
            "unknown",
            refusal(404, &[("MANIFEST_UNKNOWN", ""), ("DENIED", "")]),
            true,
            Some(false),
        ),
        (
            "unknown",
            refusal(404, &[("MANIFEST_UNKNOWN", accept)]),
            true,
            Some(false),
        ),
        (
            "unknown",
            ImageResponse::Failed("timeout, TLS, DNS, truncated, digest mismatch".to_owned()),
            true,
            Some(false),
        ),
        (
            "absent NotABundle",
            ImageResponse::Image(Seen::default()),
            true,
            listed,
        ),
        (
            "rejected sha256:11",
            labelled("version: 99\nname: x\n"),
            true,
            listed,
        ),
        ("rejected sha256:11", labelled("{"), true, listed),
        ("rejected sha256:11", unfit, true, listed),
    ];
    for (row, (expected, answer, complete, listed)) in table.into_iter().enumerate() {
        assert_eq!(verdict(answer, complete, listed), expected, "row {row}");
    }
    for status in [
        301, 400, 401, 403, 405, 406, 408, 410, 429, 500, 502, 503, 504,
    ] {
        let answer = refusal(status, &[("MANIFEST_UNKNOWN", "")]);
        assert_eq!(verdict(answer, true, Some(false)), "unknown", "{status}");
    }
}

#[test]
fn only_a_registrys_own_words_are_errors() {
    let read = |body: &str| {
        errors(body.as_bytes())
            .into_iter()
            .map(|error| error.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        read(r#"{"errors":[{"code":"NAME_UNKNOWN","message":null,"detail":{}}]}"#),
        ["NAME_UNKNOWN"]
    );
    for other in [
        "",
        "404 page not found",
        "<html>",
        "{}",
        r#"{"errors":null}"#,
        r#"{"errors":[]}"#,
        "[]",
    ] {
        assert!(read(other).is_empty(), "{other}");
    }
}
