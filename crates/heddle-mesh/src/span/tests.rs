//! What is a trace context, and what is ignored.

use super::*;

const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn what_is_read_is_written_again() {
    let span = Span::read(TEXT).unwrap();
    assert_eq!(span.trace(), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
    assert_eq!(span.id(), 0xb7ad_6b71_6920_3331);
    assert!(span.is_sampled());
    assert_eq!(span.to_string(), TEXT);
    let unsampled = TEXT.replace("-01", "-00");
    let span = Span::read(&unsampled).unwrap();
    assert!(!span.is_sampled());
    assert_eq!(span.to_string(), unsampled);
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known_and_goes_on_as_ours() {
    for later in [
        TEXT.replacen("00", "01", 1),
        format!("{}-what-comes", TEXT.replacen("00", "cc", 1)),
    ] {
        assert_eq!(Span::read(&later).unwrap().to_string(), TEXT, "{later}");
    }
}

#[test]
fn what_is_malformed_is_ignored() {
    let zero_trace = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
    let zero_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
    let wrong = [
        String::new(),
        zero_trace.to_owned(),
        zero_span.to_owned(),
        TEXT.to_uppercase(),
        TEXT.replacen("00", "ff", 1),
        TEXT.replacen("00", "+0", 1),
        TEXT.replace("-01", "-1"),
        TEXT.replace("-b7", "b-7"),
        format!("{TEXT}-more"),
        format!("{}x", TEXT.replacen("00", "01", 1)),
        TEXT.replace("9c-", "é-"),
        TEXT.replace('-', "_"),
    ];
    for text in wrong {
        assert_eq!(Span::read(&text), None, "{text}");
    }
}

#[test]
fn spans_that_are_drawn_are_valid_and_stay_in_their_trace() {
    let chance = Chance::seeded(5);
    let first = Span::first(&chance);
    let next = first.child(&chance);
    assert_eq!(Span::read(&first.to_string()), Some(first));
    assert_eq!((first.trace(), true), (next.trace(), first.is_sampled()));
    assert_ne!(first.id(), next.id());
}
