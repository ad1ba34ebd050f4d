use super::*;

#[test]
fn a_line_of_ours_begins_a_line() {
    let mut log = Log::default();
    log.push_line("first");
    log.push(b"half a");
    log.push_line("second");
    log.push(b" line\n");
    assert_eq!(log.text(), "first\nhalf a\nsecond\n line\n");
}

fn kept(pieces: &[&str]) -> String {
    let mut log = Log::within(4);
    for piece in pieces {
        log.push(piece.as_bytes());
    }
    log.text()
}

#[test]
fn a_log_within_bounds_is_kept_whole() {
    assert_eq!(kept(&[]), "");
    assert_eq!(kept(&["ab", "cd", "ef", "gh"]), "abcdefgh");
    assert_eq!(kept(&["abcdefgh"]), "abcdefgh");
}

#[test]
fn of_a_longer_log_the_beginning_and_the_end_are_kept() {
    assert_eq!(kept(&["abcdefghi"]), "abcd\n[… 1 bytes left out …]\nfghi");
    assert_eq!(
        kept(&["abcdef", "ghijkl", "m"]),
        "abcd\n[… 5 bytes left out …]\njklm"
    );
    let mut log = Log::within(4);
    for _ in 0..1000 {
        log.push(b"0123456789");
    }
    assert_eq!(log.text(), "0123\n[… 9992 bytes left out …]\n6789");
}

#[test]
fn the_end_of_a_text_begins_with_a_line_and_never_inside_a_character() {
    assert_eq!(end_of("one\ntwo\nthree", 9), "three");
    assert_eq!(end_of("one\ntwo", 100), "one\ntwo");
    assert_eq!(end_of("äöü", 3), "ü");
    assert_eq!(end_of("abcdef\n", 3), "ef\n");
    assert_eq!(last_line("one\n two \n\n"), Some("two"));
    assert_eq!(last_line(" \n"), None);
}
