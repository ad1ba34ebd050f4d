//! The head of a request to the proxy: where it wants to go, and how it goes on from there. Pure.
//!
//! Nothing of a plain request is understood but its first line. It is handed on as it would have been sent to its server
//! directly, with the word that the connection ends with the answer: what came next on it might be for somebody else.

pub(crate) mod fuzzing;

use std::net::Ipv6Addr;

use http::Uri;
use http::uri::Authority;

/// The longest head.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;

/// Where to connect to, and what to begin with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// A name, or an address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The head to send on; none when the client asks for a bare connection.
    pub(super) forwarded: Option<Vec<u8>>,
}

/// How many bytes the head at the beginning of these has.
pub(super) fn end_of(bytes: &[u8]) -> Option<usize> {
    let blank = b"\r\n\r\n";
    let at = bytes.windows(blank.len()).position(|four| four == blank)?;
    Some(at + blank.len())
}

/// Reads a whole head.
pub(super) fn parse(head: &[u8]) -> Result<Request, &'static str> {
    let mut lines = head.split(|byte| *byte == b'\n').map(without_return);
    let first = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let words: Vec<&str> = first.unwrap_or_default().split(' ').collect();
    let [method, target, version @ ("HTTP/1.1" | "HTTP/1.0")] = words[..] else {
        return Err("this is no request of HTTP/1");
    };
    if method == "CONNECT" {
        return to_place(target);
    }
    let uri: Uri = target.parse().map_err(|_| "the URL makes no sense")?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
    let authority = authority
        .ok_or("a proxy is asked with the whole http URL, and for everything else with CONNECT")?;
    let host = host_of(authority)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut forwarded = format!("{method} {path} {version}\r\nHost: {}", authority.host());
    if let Some(port) = authority.port() {
        forwarded.push_str(&format!(":{port}"));
    }
    let mut forwarded = forwarded.into_bytes();
    forwarded.extend(b"\r\nConnection: close\r\n");
    for line in lines.filter(|line| !line.is_empty()) {
        if is_handed_on(line)? {
            forwarded.extend(line);
            forwarded.extend(b"\r\n");
        }
    }
    forwarded.extend(b"\r\n");
    let port = authority.port_u16().unwrap_or(80);
    Ok(Request {
        host,
        port,
        forwarded: Some(forwarded),
    })
}

fn to_place(target: &str) -> Result<Request, &'static str> {
    let authority: Authority = target.parse().map_err(|_| "the address makes no sense")?;
    Ok(Request {
        host: host_of(&authority)?,
        port: authority.port_u16().ok_or("CONNECT needs a port")?,
        forwarded: None,
    })
}

fn host_of(authority: &Authority) -> Result<String, &'static str> {
    let host = authority.host();
    if authority.as_str().contains('@') || host.is_empty() {
        return Err("a host is asked for, with its port and nothing else");
    }
    let Some(bracketed) = host.strip_prefix('[') else {
        return Ok(host.to_owned());
    };
    let bare = bracketed.strip_suffix(']');
    let bare = bare.filter(|bare| bare.parse::<Ipv6Addr>().is_ok());
    bare.map(str::to_owned)
        .ok_or("between brackets stands an address of IPv6")
}

/// Whether a header is for the server: not if it is about this connection, or said here already.
fn is_handed_on(line: &[u8]) -> Result<bool, &'static str> {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_odd = name.is_empty() || name.iter().any(u8::is_ascii_whitespace);
    // Some servers take a return by itself for the end of a line.
    if is_odd || name.len() == line.len() || line.iter().any(|byte| b"\r\0".contains(byte)) {
        return Err("a header makes no sense");
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let ours = matches!(
        name.as_str(),
        "host" | "connection" | "keep-alive" | "upgrade"
    );
    Ok(!ours && !name.starts_with("proxy-"))
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests;
