//! Percent-encoding, for whoever puts strangers' text into a request line.

/// `text` down to what RFC 3986 reserves for nobody, fit for a path segment and a query alike.
#[must_use]
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
