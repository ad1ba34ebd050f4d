//! The `format` of strings: the ones a real server checks and people use.
//!
//! Formats unknown here are documentation and accept everything, as they do on a server that does not know them.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;

use crate::select::subdomain_problems;

/// Whether `text` has the given format.
pub(super) fn accepts(format: &str, text: &str) -> bool {
    match format {
        "date" => is_date(text),
        "date-time" | "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "byte" => base64::engine::general_purpose::STANDARD
            .decode(text)
            .is_ok(),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "k8s-short-name" => {
            text.len() <= 63 && !text.contains('.') && subdomain_problems(text).is_empty()
        }
        "k8s-long-name" => subdomain_problems(text).is_empty(),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && text.parse::<jiff::civil::Date>().is_ok()
}

/// `2006-01-02T15:04:05[.000](Z|+01:00)`, in either case.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let (Some(clock), Some(rest)) = (time.get(..8), time.get(8..)) else {
        return false;
    };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        None => rest,
    };
    is_date(date) && is_clock(clock) && (zone.eq_ignore_ascii_case("z") || is_offset(zone))
}

fn is_clock(text: &str) -> bool {
    let mut limits = [24, 60, 60].into_iter();
    text.split(':').count() == 3
        && text.split(':').all(|part| {
            two_digits(part)
                .zip(limits.next())
                .is_some_and(|(number, limit)| number < limit)
        })
}

fn is_offset(text: &str) -> bool {
    let Some((hours, minutes)) = text
        .strip_prefix(['+', '-'])
        .and_then(|offset| offset.split_once(':'))
    else {
        return false;
    };
    two_digits(hours).is_some_and(|hours| hours < 24)
        && two_digits(minutes).is_some_and(|minutes| minutes < 60)
}

fn two_digits(text: &str) -> Option<u8> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

/// Go's duration syntax (`1h30m`, `-1.5s`, `0`) or a number with a unit in words (`5 minutes`).
fn is_duration(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    unsigned == "0" || is_go_duration(unsigned) || has_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let digits = &rest[..number];
        if !digits.bytes().any(|byte| byte.is_ascii_digit()) || digits.matches('.').count() > 1 {
            return false;
        }
        rest = &rest[number..];
        let Some(unit) = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"]
            .iter()
            .find(|unit| rest.starts_with(**unit))
        else {
            return false;
        };
        rest = &rest[unit.len()..];
    }
    !text.is_empty()
}

fn has_worded_duration(text: &str) -> bool {
    const UNITS: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const WORDS: [&str; 8] = [
        "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
    ];
    let after_digits = text.split(|c: char| c.is_ascii_digit()).skip(1);
    after_digits
        .map(|rest| rest.trim_start().to_lowercase())
        .any(|rest| {
            let unit: String = rest
                .chars()
                .take_while(|c| c.is_ascii_alphabetic() || *c == 'µ')
                .collect();
            UNITS.contains(&unit.as_str()) || WORDS.iter().any(|word| unit.starts_with(word))
        })
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let dashes_fit = match text.len() {
        32 => true,
        _ => {
            let mut position = 0;
            text.bytes().all(|byte| {
                let allowed = byte != b'-' || matches!(position, 8 | 12 | 16 | 20);
                position += usize::from(byte != b'-');
                allowed
            }) && !text.contains("--")
        }
    };
    let version_fits = version.is_none_or(|version| {
        let variant_fits = version == b'3'
            || matches!(
                digits.get(16),
                Some(b'8' | b'9' | b'a' | b'b' | b'A' | b'B')
            );
        digits.get(12) == Some(&version) && variant_fits
    });
    digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit) && dashes_fit && version_fits
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let bits: Option<u8> = bits.parse().ok().filter(|_| !bits.starts_with('+'));
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => bits.is_some_and(|bits| bits <= 32),
        Ok(std::net::IpAddr::V6(_)) => bits.is_some_and(|bits| bits <= 128),
        Err(_) => false,
    }
}

/// Six or eight octets in hexadecimal, separated by colons or dashes.
fn is_mac(text: &str) -> bool {
    let separator = if text.contains('-') { '-' } else { ':' };
    let octets: Vec<&str> = text.split(separator).collect();
    matches!(octets.len(), 6 | 8 | 20)
        && octets
            .iter()
            .all(|octet| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// An absolute path, or a scheme with something behind it.
fn is_uri(text: &str) -> bool {
    let clean = text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
            && !rest.is_empty()
    });
    clean && (text.starts_with('/') || scheme)
}

fn is_email(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, address)) => match address.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let clean = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| !c.is_whitespace() && !matches!(c, '<' | '>' | ',' | '@'))
    };
    clean(local)
        && clean(domain)
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_alphanumeric() || c == '-';
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(inner)
    };
    let top = text
        .rsplit_once('.')
        .is_none_or(|(_, top)| top.len() >= 2 && top.chars().all(char::is_alphabetic));
    text.len() <= 255 && text.split('.').all(label) && top
}
