use serde_json::json;

use super::*;

fn mask(pointers: &[&str]) -> Mask {
    let texts: Vec<String> = pointers.iter().map(|text| (*text).to_owned()).collect();
    Mask::new(&texts).unwrap()
}

#[track_caller]
fn check(pointers: &[&str], data: &str, shown: &str) {
    let expected = match shown {
        same if same == data => Masked::Whole,
        other => Masked::Part(other.as_bytes().to_vec()),
    };
    assert_eq!(mask(pointers).apply(data.as_bytes()), expected, "{data}");
}

#[test]
fn what_a_pointer_names_is_hidden_and_nothing_beside_it_changes() {
    let data =
        r#"{ "n": 10.10, "card": {"number": "4711", "cvc": 1}, "z": 12345678901234567890123 }"#;
    let shown =
        r#"{ "n": 10.10, "card": {"number": "***", "cvc": 1}, "z": 12345678901234567890123 }"#;
    check(&["/card/number"], data, shown);
    check(&["/card"], r#"{"card":{"a":[1,2]}}"#, r#"{"card":"***"}"#);
    check(&["/card/none"], data, data);
    check(
        &["/a"],
        r#"{"a":1,"b":2,"a":3}"#,
        r#"{"a":"***","b":2,"a":"***"}"#,
    );
    check(
        &["/items/*/iban"],
        r#"{"items":[{"iban":"x"},{"iban":null},3]}"#,
        r#"{"items":[{"iban":"***"},{"iban":"***"},3]}"#,
    );
    check(&["/1"], "[1, 2 ,3]", r#"[1, "***" ,3]"#);
    check(&["/*"], r#"{"a":[],"b":{}}"#, r#"{"a":"***","b":"***"}"#);
    check(
        &["/a~1b", "/c~0d"],
        r#"{"a/b":1,"c~d":2}"#,
        r#"{"a/b":"***","c~d":"***"}"#,
    );
    check(&["/a"], "17", "17");
    check(&["/"], r#"{"":1}"#, r#"{"":"***"}"#);
}

#[test]
fn a_name_is_hidden_however_it_is_written() {
    check(
        &["/card"],
        r#"{"\u0063ard":"4711"}"#,
        r#"{"\u0063ard":"***"}"#,
    );
    check(&["/a\"b"], r#"{"a\"b":"}4711{"}"#, r#"{"a\"b":"***"}"#);
    check(&["/a", "/a/b"], r#"{"a":{"b":1}}"#, r#"{"a":"***"}"#);
    check(&["/b"], r#"{"a":"\\","b":"x"}"#, r#"{"a":"\\","b":"***"}"#);
}

#[test]
fn what_cannot_be_looked_into_is_hidden_whole() {
    let mask = mask(&["/card"]);
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    for data in [
        "card=4711",
        r#"{"card":"4711"} and more"#,
        r#"{"card":"4711""#,
        r#"{"a":1,}"#,
        r#"{"\ud800":1}"#,
        "<card>4711</card>",
        &deep,
        "\u{feff}{\"card\":1}",
    ] {
        assert_eq!(mask.apply(data.as_bytes()), Masked::Nothing, "{data}");
    }
    assert_eq!(mask.apply(&[0xff, 0xfe]), Masked::Nothing);
    assert_eq!(mask.apply(b""), Masked::Whole);
    assert_eq!(Mask::default().apply(b"card=4711"), Masked::Whole);
}

/// Whatever JSON there is, what is hidden is nowhere in what is shown, and the rest is what it was.
#[test]
fn what_is_shown_is_json_without_the_hidden_values() {
    let mask = mask(&["/secret", "/a/secret", "/list/*/secret"]);
    for number in 0..200_u32 {
        let secret = format!("s3cr3t-{number}");
        let plain = json!({"n": number, "t": "\"{[,"});
        let value = json!({
            "secret": {"x": secret}, "a": {"secret": [secret], "b": plain},
            "list": [{"secret": secret, "c": plain}, plain], "d": plain,
        });
        let texts = [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
        ];
        for text in texts {
            let Masked::Part(shown) = mask.apply(text.as_bytes()) else {
                panic!("{text}");
            };
            let shown = String::from_utf8(shown).unwrap();
            assert!(!shown.contains("s3cr3t"), "{shown}");
            let mut found: Value = serde_json::from_str(&shown).unwrap();
            let mut left = value.clone();
            mask.remove(&mut left);
            mask.remove(&mut found);
            assert_eq!(found, left);
            assert!(!left.to_string().contains("s3cr3t"));
        }
    }
}

#[test]
fn a_pointer_is_read_and_printed() {
    for text in ["/a", "/a/b~1c/~0", "/items/*/x"] {
        assert_eq!(text.parse::<MaskPointer>().unwrap().to_string(), text);
    }
    for text in ["", "a", "a/b", "$.a"] {
        assert!(text.parse::<MaskPointer>().is_err(), "{text}");
    }
    assert!(Mask::new(&vec!["/a".to_owned(); 101]).is_err());
}
