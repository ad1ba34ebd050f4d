use serde_json::json;

use super::*;

fn streamed(secrets: &[&str], text: &str, piece: usize) -> String {
    let mut masker = Masker::new(secrets.iter().map(|s| (*s).to_owned()));
    let mut out = Vec::new();
    for bytes in text.as_bytes().chunks(piece) {
        out.extend(masker.feed(bytes));
    }
    out.extend(masker.finish());
    String::from_utf8(out).unwrap()
}

#[test]
fn a_secret_is_masked_wherever_reads_cut_it() {
    let text = "user=a pass=hunter22 again hunter22, hunter2, hunter22hunter22";
    for piece in 1..text.len() {
        assert_eq!(
            streamed(&["hunter22"], text, piece),
            "user=a pass=*** again ***, hunter2, ******",
            "in pieces of {piece}"
        );
    }
}

#[test]
fn the_longer_of_two_secrets_is_masked_whole() {
    for piece in 1..20 {
        assert_eq!(
            streamed(&["abcd", "abcdefgh"], "abcdefgh abcdef", piece),
            "*** ***ef"
        );
    }
}

#[test]
fn a_secret_is_masked_as_json_as_base64_and_line_by_line() {
    let secret = "one\"two\nthree";
    let quoted = json!(secret).to_string();
    let encoded = STANDARD.encode(secret);
    let text = format!("{quoted} {encoded} three");
    assert_eq!(streamed(&[secret], &text, 7), "\"***\" *** ***");
}

#[test]
fn text_without_secrets_passes_and_short_secrets_are_left() {
    assert_eq!(streamed(&[], "as it is", 3), "as it is");
    assert_eq!(streamed(&["a", ""], "a banana", 2), "a banana");
}

#[test]
fn secrets_are_known_by_name_and_credentials_are_secret_whole() {
    let variables = json!({
        "size": "large", "dbPassword": "pw-one", "nested": {"api-key": "key-one", "plain": "word"},
        "_apb_provision_creds": {"host": "db.internal", "port": 54321},
        "_apb_plan_id": "small",
    });
    let Value::Object(variables) = variables else {
        unreachable!()
    };
    let mut secrets = secrets_of_variables(&variables);
    secrets.sort();
    assert_eq!(secrets, ["54321", "db.internal", "key-one", "pw-one"]);
    let Value::Object(credentials) = json!({"host": "db", "password": "new-one"}) else {
        unreachable!()
    };
    assert_eq!(secrets_of_credentials(&credentials), ["new-one"]);
}

proptest::proptest! {
    #[test]
    fn however_it_is_cut_the_result_is_the_same(
        text in "[abc]{0,60}",
        secrets in proptest::collection::vec("[abc]{4,7}", 0..4),
        piece in 1_usize..9,
    ) {
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let whole = streamed(&secrets, &text, 1000);
        proptest::prop_assert_eq!(streamed(&secrets, &text, piece), whole.as_str());
        for secret in secrets {
            proptest::prop_assert!(!whole.contains(secret));
        }
    }
}
