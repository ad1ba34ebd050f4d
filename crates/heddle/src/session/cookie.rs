//! The half of a session that the browser keeps: a cookie that no script can read.
//!
//! A cookie is sent to every port of a host, so its name has the port and it is worth nothing alone.

use http::{HeaderMap, HeaderValue, header};

/// Where the other half is sent.
pub(crate) const SESSION_HEADER: &str = "x-heddle-session";

/// What the cookie of a listener is called. Over TLS browsers see to it that no other host and no plain page sets it.
pub(crate) fn name(port: u16, is_tls: bool) -> String {
    let prefix = if is_tls { "__Host-" } else { "" };
    format!("{prefix}heddle-{port}")
}

/// The values of all cookies of that name: another program on this host may have set one too.
pub(crate) fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| *found == name)
        .map(|(_, value)| value)
        .collect()
}

/// Sets the cookie; an empty value takes it away.
pub(crate) fn set(name: &str, value: &str, is_tls: bool) -> HeaderValue {
    let secure = if is_tls { "; Secure" } else { "" };
    let end = if value.is_empty() { "; Max-Age=0" } else { "" };
    let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/{secure}{end}");
    HeaderValue::try_from(text).expect("names and values are plain characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name_however_many_there_are() {
        let mut headers = HeaderMap::new();
        for line in ["a=b; heddle-80=one", "heddle-8=no;heddle-80=two; heddle-80"] {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        assert_eq!(values(&headers, "heddle-80"), ["one", "two"]);
        assert!(values(&headers, &name(80, true)).is_empty());
    }

    #[test]
    fn no_script_and_no_other_site_has_it() {
        assert_eq!(
            set(&name(80, false), "v", false),
            "heddle-80=v; HttpOnly; SameSite=Strict; Path=/"
        );
        assert_eq!(
            set(&name(443, true), "", true),
            "__Host-heddle-443=; HttpOnly; SameSite=Strict; Path=/; Secure; Max-Age=0"
        );
    }
}
