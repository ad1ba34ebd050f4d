//! Texts as long as memory may hold for every dead letter, so that none can be made large by whoever publishes.

/// A text longer than this is kept as its beginning and a checksum.
const BYTES_MAX: usize = 160;
/// What is left of such a text, without the checksum behind it.
const BEGINNING_BYTES: usize = 140;

/// The text itself if it is short, else something short that stands for it and nothing else does by chance.
///
/// Two texts are the same when this is: whoever looks for a long one looks for what stands for it.
#[must_use]
pub fn short(text: &str) -> String {
    if text.len() <= BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(BEGINNING_BYTES);
    let sum = crate::log::checksum(text.as_bytes());
    format!("{}…{sum:08x}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, short};

    #[test]
    fn long_texts_become_short_ones_that_still_differ() {
        let long = |last: char| format!("{}{last}", "ä".repeat(20_000));
        assert_ne!(short(&long('a')), short(&long('b')));
        for text in [long('a'), "x".repeat(BYTES_MAX + 1)] {
            let kept = short(&text);
            assert!(kept.len() <= BYTES_MAX, "{}", kept.len());
            assert_eq!(short(&kept), kept, "what is short stays");
        }
        let whole = "x".repeat(BYTES_MAX);
        assert_eq!(short(&whole), whole);
    }
}
