//! What holds for the forms of a document, and for the tags by which they are known.

use super::super::tests::unpacked;
use super::*;

#[test]
fn only_what_is_worth_it_is_compressed_and_it_says_the_same() {
    for (bytes, expected) in [
        (0, Coding::Plain),
        (COMPRESSED_BYTES_MIN - 1, Coding::Plain),
        (COMPRESSED_BYTES_MIN, Coding::Gzip),
        (1 << 20, Coding::Gzip),
    ] {
        let text: String = "catalog ".chars().cycle().take(bytes).collect();
        let plain = Document::coded(text.clone(), Coding::Plain);
        assert_eq!(
            (&plain.bytes[..], plain.coding),
            (text.as_bytes(), Coding::Plain)
        );
        let asked = Document::coded(text.clone(), Coding::Gzip);
        assert_eq!(asked.coding, expected, "{bytes} bytes");
        assert_eq!(asked == plain, expected == Coding::Plain, "{bytes} bytes");
        if expected == Coding::Gzip {
            assert_eq!(unpacked(&asked), text);
            assert!(asked.bytes.len() < bytes / 2);
        }
        let again = Document::coded(text, Coding::Gzip);
        assert_eq!(asked, again, "no clock is in it");
    }
}

#[test]
fn a_document_is_known_by_the_tag_of_either_form() {
    let text = |word: &str| word.repeat(COMPRESSED_BYTES_MIN);
    let forms = |word: &str| {
        [Coding::Plain, Coding::Gzip].map(|coding| Document::coded(text(word), coding))
    };
    let (ours, others) = (forms("a"), forms("b"));
    assert_ne!(ours[0].etag, ours[1].etag, "a strong tag is one of bytes");
    for document in &ours {
        for (tags, expected) in [(&ours, true), (&others, false)] {
            for tag in tags {
                let tag = tag.etag.to_str().unwrap();
                assert_eq!(document.is_known_as(tag), expected, "{tag}");
                let bare = tag.trim_matches('"');
                assert!(!document.is_known_as(bare), "{bare} is no tag");
            }
        }
        for tag in ["", "\"", "\"\"", "\"-gzip\""] {
            assert!(!document.is_known_as(tag), "{tag:?}");
        }
    }
}
