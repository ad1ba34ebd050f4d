//! `Accept-Encoding`: whether an answer may be compressed for whoever asks (RFC 9110, 12.5.3).

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// Qualities are counted in thousandths, which is as fine as the header can say.
const WHOLE: u16 = 1000;

/// Whether a platform takes gzip, and does not like the plain form better. One that says nothing gets the plain form: it may
/// be one that hands on the bytes as they came.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut identity, mut anything) = (None, None, None);
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    for item in values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
    {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default().to_ascii_lowercase();
        // What cannot be understood is as good as not said.
        let Some(quality) = quality(parts) else {
            continue;
        };
        match coding.as_str() {
            "gzip" | "x-gzip" => gzip = Some(quality),
            "identity" => identity = Some(quality),
            "*" => anything = Some(quality),
            _ => {}
        }
    }
    let gzip = gzip.or(anything).unwrap_or(0);
    gzip > 0 && identity.is_none_or(|identity| identity <= gzip)
}

/// The quality among the parameters of a coding; all of it, if nothing is said.
fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> Option<u16> {
    let said = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    said.map_or(Some(WHOLE), thousandths)
}

/// `0`, `1`, or one of them with up to three decimals, and no more than one.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = decimals.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(whole, "0" | "1") || decimals.len() > 3 || !digits {
        return None;
    }
    let value = format!("{whole}{decimals:0<3}").parse().ok()?;
    (value <= WHOLE).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_only_for_those_who_take_it_and_do_not_prefer_the_plain_form() {
        for (said, expected) in [
            (&[][..], false),
            (&[""], false),
            (&["gzip"], true),
            (&["GZip"], true),
            (&["x-gzip"], true),
            (&["gzip, deflate, br"], true),
            (&["deflate", "br, gzip"], true),
            (&["deflate, br"], false),
            (&["*"], true),
            (&["*;q=0"], false),
            (&["br, *;q=0.1"], true),
            (&["*, gzip;q=0"], false),
            (&["*;q=0, gzip"], true),
            (&["gzip;q=0"], false),
            (&["gzip;q=0.000"], false),
            (&["gzip; q=0.001"], true),
            (&["gzip ; Q=1.000"], true),
            (&["gzip;q=1.001"], false),
            (&["gzip;q=0.0001"], false),
            (&["gzip;q=-1"], false),
            (&["gzip;q="], false),
            (&["gzip;q=x, *"], true),
            (&["identity"], false),
            (&["identity, gzip"], true),
            (&["identity;q=1, gzip;q=0.5"], false),
            (&["identity;q=0.5, gzip;q=1"], true),
            (&["identity;q=0"], false),
            (&["identity;q=0, *"], true),
            (&["gzip;level=9;q=0"], false),
            (&[";;,=,q=1"], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in said {
                headers.append(ACCEPT_ENCODING, value.parse().unwrap());
            }
            assert_eq!(accepts_gzip(&headers), expected, "{said:?}");
        }
    }
}
