//! The names in a certificate's subject.
//!
//! The certificate was verified when it was shown, so its shape is what X.509 says; what is read here is only the few
//! fields by which people tell each other apart. Whatever is not understood reads as absent.

use rustls::pki_types::CertificateDer;

use super::rustls;

/// Who a certificate was issued to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// CN; absent when there are several, for then nobody knows which one counts.
    pub common_name: Option<String>,
    /// O.
    pub organizations: Vec<String>,
    /// OU.
    pub units: Vec<String>,
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
/// The version, which is left away in old certificates.
const VERSION: u8 = 0xa0;

/// Kinds of text that are UTF-8 or a part of it: UTF8String, PrintableString, IA5String.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// Attributes of a name, all below 2.5.4.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];
const UNIT: [u8; 3] = [0x55, 0x04, 0x0b];

impl Subject {
    /// Reads the subject; `None` for bytes that are no certificate.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let mut signed = Reader(certificate).enter(SEQUENCE)?;
        let mut body = signed.enter(SEQUENCE)?;
        if body.0.first() == Some(&VERSION) {
            body.next()?;
        }
        // Serial number, signature algorithm, issuer, validity.
        for _ in 0..4 {
            body.next()?;
        }
        let mut name = body.enter(SEQUENCE)?;
        let mut subject = Self::default();
        let mut common_names = Vec::new();
        while !name.0.is_empty() {
            let mut set = name.enter(SET)?;
            while !set.0.is_empty() {
                let mut pair = set.enter(SEQUENCE)?;
                let (kind, id) = pair.next()?;
                let (text_kind, text) = pair.next()?;
                if kind != OBJECT_ID || !TEXTS.contains(&text_kind) {
                    continue;
                }
                let Ok(text) = std::str::from_utf8(text) else {
                    continue;
                };
                let texts = match <[u8; 3]>::try_from(id) {
                    Ok(COMMON_NAME) => &mut common_names,
                    Ok(ORGANIZATION) => &mut subject.organizations,
                    Ok(UNIT) => &mut subject.units,
                    _ => continue,
                };
                texts.push(text.to_owned());
            }
        }
        if let [_] = common_names.as_slice() {
            subject.common_name = common_names.pop();
        }
        Some(subject)
    }
}

/// What is left of some DER.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next value, which is to be of this kind, as something to read from.
    fn enter(&mut self, kind: u8) -> Option<Self> {
        let (found, content) = self.next()?;
        (found == kind).then_some(Self(content))
    }

    /// The kind and the bytes of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&kind, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            // More than four bytes of length are nobody's certificate; none at all is not DER.
            if bytes.is_empty() || bytes.len() > 4 {
                return None;
            }
            length = bytes
                .iter()
                .fold(0, |length, byte| (length << 8) | usize::from(*byte));
            rest = after;
        }
        let (content, after) = rest.split_at_checked(length)?;
        self.0 = after;
        Some((kind, content))
    }
}

#[cfg(test)]
mod tests;
