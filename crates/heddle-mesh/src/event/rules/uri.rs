//! URIs and references to them, by the grammar of RFC 3986.
//!
//! A URI may have a fragment here, although RFC 3986 calls it absolute only without: the schema that CloudEvents
//! publishes for its JSON format takes one, and schemas are commonly pointed at by fragment.

use std::net::Ipv6Addr;

/// Whether this is a URI or a relative reference. The empty text is one, which points to where it is found.
pub(super) fn is_reference(text: &str) -> bool {
    scheme_and_rest(text).is_some_and(|(_, rest)| is_rest(rest))
}

/// Whether this is a URI with a scheme.
pub(super) fn is_absolute(text: &str) -> bool {
    scheme_and_rest(text).is_some_and(|(scheme, rest)| scheme.is_some() && is_rest(rest))
}

/// A colon before any slash, question mark or hash ends a scheme, for a relative path cannot begin with one in it.
fn scheme_and_rest(text: &str) -> Option<(Option<&str>, &str)> {
    let end = text.find([':', '/', '?', '#']).unwrap_or(text.len());
    let Some(rest) = text[end..].strip_prefix(':') else {
        return Some((None, text));
    };
    let scheme = &text[..end];
    let letter_first = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    (letter_first && scheme.bytes().all(plain)).then_some((Some(scheme), rest))
}

fn is_rest(rest: &str) -> bool {
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match hierarchy.strip_prefix("//") {
        Some(hierarchy) => hierarchy.split_at(hierarchy.find('/').unwrap_or(hierarchy.len())),
        None => ("", hierarchy),
    };
    is_authority(authority)
        && consists_of(path, b":@/")
        && consists_of(query, b":@/?")
        && consists_of(fragment, b":@/?")
}

fn is_authority(authority: &str) -> bool {
    let (user, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host_is_good, port) = match address.strip_prefix('[') {
        Some(literal) => match literal.split_once(']') {
            Some((literal, port)) => (is_ip_literal(literal), port),
            None => return false,
        },
        None => {
            let (host, port) = address.split_at(address.find(':').unwrap_or(address.len()));
            (consists_of(host, b""), port)
        }
    };
    let port_is_good = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    consists_of(user, b":") && host_is_good && port_is_good
}

/// What stands in brackets: an address of version 6, or of a version to come (`v`, the version, a dot, anything).
fn is_ip_literal(literal: &str) -> bool {
    let Some(future) = literal.strip_prefix(['v', 'V']) else {
        return literal.parse::<Ipv6Addr>().is_ok();
    };
    future.split_once('.').is_some_and(|(version, address)| {
        !version.is_empty()
            && version.bytes().all(|byte| byte.is_ascii_hexdigit())
            && !address.is_empty()
            && !address.contains('%')
            && consists_of(address, b":")
    })
}

/// Whether a part has nothing but unreserved characters, sub-delimiters, percent-encoded bytes and these others.
fn consists_of(part: &str, others: &[u8]) -> bool {
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        let good = match byte {
            b'%' => {
                let digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
                digit(bytes.next()) && digit(bytes.next())
            }
            _ => {
                byte.is_ascii_alphanumeric()
                    || b"-._~!$&'()*+,;=".contains(&byte)
                    || others.contains(&byte)
            }
        };
        if !good {
            return false;
        }
    }
    true
}
