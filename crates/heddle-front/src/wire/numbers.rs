//! Numbers as they were written.
//!
//! A JSON number may have any number of digits; what is parsed here is a 64-bit integer or a float, which takes
//! 18446744073709551616 and 18446744073709551617 for the same. Objects and actions have to live with that, but two requests that
//! differ only there are two requests. So a body that has such a number is read a second time with each of them as text in
//! one spelling, and that is what is compared and hashed.

use serde_json::{Map, Number, Value, json};

/// What stands before the digits, so that no text of a platform's is taken for a number by accident.
const MARK: &str = "\u{0}number ";
/// A float that is printed with no more characters than this was written with no more digits.
const CHARS_KEPT: usize = 15;
/// How many zeros are written out before an exponent is shorter.
const ZEROS_MAX: i64 = 19;

/// Parameters in which a number is more than a float can hold; empty for all others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Exact(Option<Value>);

impl Exact {
    pub(crate) fn new(written: Option<&Value>) -> Self {
        Self(written.cloned())
    }

    /// Whether every number was kept as it was written.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.is_none()
    }

    /// What stands for the request in a hash.
    pub(crate) fn or(&self, plain: &Map<String, Value>) -> Value {
        self.0.clone().unwrap_or_else(|| json!(plain))
    }

    /// Whether parameters that are known and look the same are the same. Where digits may have been lost on one of the sides,
    /// `told` decides: whether the request that made them has the hash of this one.
    pub(crate) fn matches(&self, known: &Map<String, Value>, told: Option<bool>) -> bool {
        match told {
            Some(told) if !self.is_plain() || known.values().any(has_wide_float) => told,
            Some(_) => true,
            None => self.is_plain(),
        }
    }
}

/// Whether a float stands somewhere that may have lost digits.
fn has_wide_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64() && number.to_string().len() > CHARS_KEPT,
        Value::Array(items) => items.iter().any(has_wide_float),
        Value::Object(members) => members.values().any(has_wide_float),
        _ => false,
    }
}

/// The object with every number that a float cannot hold as marked text, or `None` if there is no such number. `bytes` are
/// known to be JSON.
pub(crate) fn written(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut out = Vec::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => string_end(bytes, at),
            b'-' | b'0'..=b'9' => number_end(bytes, at),
            _ => at + 1,
        };
        let token = std::str::from_utf8(&bytes[at..end]).ok();
        let token = token.filter(|token| !token.starts_with('"'));
        if let Some(text) = token.and_then(lossless) {
            out.extend_from_slice(&bytes[copied..at]);
            out.extend_from_slice(text.as_bytes());
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[copied..]);
    serde_json::from_slice(&out).ok()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    start + bytes[start..].iter().take_while(is_part).count()
}

/// JSON for a number that parsing would change: the whole number that it is, or marked text. `None` for all that is kept.
fn lossless(token: &str) -> Option<String> {
    let parsed: Number = serde_json::from_str(token).ok()?;
    let decimal = Decimal::of(token)?;
    if Decimal::of(&parsed.to_string()).as_ref() == Some(&decimal) {
        return None;
    }
    let text = decimal.to_string();
    let is_integer = text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok();
    Some(match is_integer {
        true => text,
        false => Value::String(format!("{MARK}{text}")).to_string(),
    })
}

/// A decimal number in one spelling: its digits without zeros around them, and what ten is to be raised to.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let digits = all.trim_end_matches('0');
        let zeros = i64::try_from(all.len() - digits.len()).ok()?;
        let places = i64::try_from(fraction.len()).ok()?;
        let exponent: i64 = exponent.trim_start_matches('+').parse().ok()?;
        let digits = digits.trim_start_matches('0').to_owned();
        let is_zero = digits.is_empty();
        Some(Self {
            negative: whole.starts_with('-') && !is_zero,
            exponent: match is_zero {
                true => 0,
                false => exponent.checked_sub(places)?.checked_add(zeros)?,
            },
            digits,
        })
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        match usize::try_from(self.exponent) {
            Ok(zeros) if self.exponent <= ZEROS_MAX => {
                write!(f, "{sign}{}{}", self.digits, "0".repeat(zeros))
            }
            _ => write!(f, "{sign}{}e{}", self.digits, self.exponent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::hash;

    fn view(text: &str) -> Value {
        let body = format!(r#"{{"parameters": {text}}}"#);
        let plain: Map<String, Value> = serde_json::from_str(&body).unwrap();
        written(body.as_bytes()).unwrap_or(plain)["parameters"].clone()
    }

    #[test]
    fn numbers_that_differ_in_any_digit_are_different_and_spelling_makes_no_difference() {
        let different = [
            ("18446744073709551616", "18446744073709551617"),
            ("18446744073709551615", "18446744073709551616"),
            ("-9223372036854775809", "-9223372036854775810"),
            ("0.1", "0.10000000000000000555"),
            ("1.00000000000000000001", "1"),
            ("18446744073709552000", "18446744073709551616"),
            (
                r#"{"n": [340282366920938463463374607431768211456]}"#,
                r#"{"n": [340282366920938463463374607431768211457]}"#,
            ),
        ];
        for (one, other) in different {
            assert_ne!(hash(&view(one)), hash(&view(other)), "{one} and {other}");
        }
        let same = [
            ("18446744073709551617", "1.8446744073709551617e19"),
            ("18446744073709551617", "184467440737095516170E-1"),
            ("1.8446744073709551615e19", "18446744073709551615"),
            ("1e20", "100000000000000000000"),
            ("1", "1.0"),
            ("0.5", "5e-1"),
            ("-0.0", "0"),
        ];
        for (one, other) in same {
            assert_eq!(hash(&view(one)), hash(&view(other)), "{one} and {other}");
        }
    }

    #[test]
    fn text_that_looks_like_a_number_is_text() {
        let body = br#"{"a": "18446744073709551617", "b\"": "\\", "c": 18446744073709551617}"#;
        let all = written(body).unwrap();
        assert_eq!(all["a"], json!("18446744073709551617"));
        assert_eq!(all["b\""], json!("\\"));
        assert_ne!(all["c"], all["a"]);
        assert_eq!(written(br#"{"a": 1.5, "b": "18446744073709551617"}"#), None);
    }

    #[test]
    fn what_lost_digits_is_the_same_only_if_the_hash_says_so() {
        let stored: Map<String, Value> =
            serde_json::from_str(r#"{"n": 18446744073709551617}"#).unwrap();
        let plain = Exact::default();
        let wide = Exact::new(Some(&view("18446744073709551617")));
        for exact in [&plain, &wide] {
            assert!(exact.matches(&stored, Some(true)) && !exact.matches(&stored, Some(false)));
        }
        assert!(plain.matches(&stored, None) && !wide.matches(&stored, None));
        let small: Map<String, Value> = serde_json::from_str(r#"{"n": 1.5, "m": 7}"#).unwrap();
        assert!(
            plain.matches(&small, Some(false)),
            "nothing can have been lost"
        );
    }
}
