//! For the fuzzer: any bytes, taken for what a program in a sandbox sends to its proxy.

use super::{end_of, parse};

/// Any bytes are a request that names where it wants to go, or are refused. What is handed on is one head and no more, says for
/// which host it is and that the connection ends with the answer, and nothing that the program told the proxy.
///
/// # Panics
/// When the promise does not hold.
pub fn head(soup: &[u8]) {
    let end = end_of(soup).unwrap_or(soup.len());
    let request = match parse(&soup[..end]) {
        Ok(request) => request,
        Err(why) => return assert!(!why.is_empty()),
    };
    assert!(!request.host.is_empty());
    let is_bare = |c: char| !c.is_whitespace() && !c.is_control() && !"@/?#".contains(c);
    assert!(request.host.chars().all(is_bare), "{:?}", request.host);
    let Some(forwarded) = request.forwarded else {
        return;
    };
    assert_eq!(end_of(&forwarded), Some(forwarded.len()));
    let text = String::from_utf8_lossy(&forwarded).to_ascii_lowercase();
    let mut lines = text.split("\r\n").skip(1);
    assert!(lines.next().is_some_and(|line| line.starts_with("host: ")));
    assert_eq!(lines.next(), Some("connection: close"));
    for line in lines {
        let ours = ["host:", "connection:", "proxy-", "upgrade:", "keep-alive:"];
        assert!(!ours.iter().any(|name| line.starts_with(name)), "{line:?}");
    }
}
