//! Names that others wrote into certificates.

use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

use super::*;

fn certificate(names: &[(DnType, DnValue)]) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["unimportant.example".to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in names {
        params.distinguished_name.push(kind.clone(), value.clone());
    }
    params.self_signed(&key).unwrap().der().clone()
}

fn utf8(text: &str) -> DnValue {
    DnValue::Utf8String(text.to_owned())
}

#[test]
fn the_names_of_a_subject_are_read() {
    let printable = DnValue::PrintableString("unit".try_into().unwrap());
    let names = [
        (DnType::CountryName, utf8("DE")),
        (DnType::OrganizationName, utf8("tenant ü")),
        (DnType::OrganizationalUnitName, printable),
        (DnType::CommonName, utf8("shop")),
    ];
    let expected = Subject {
        common_name: Some("shop".to_owned()),
        organizations: vec!["tenant ü".to_owned()],
        units: vec!["unit".to_owned()],
    };
    assert_eq!(Subject::of(&certificate(&names)), Some(expected));
    assert_eq!(Subject::of(&certificate(&[])), Some(Subject::default()));
}

#[test]
fn a_name_longer_than_a_short_length_is_read_whole() {
    let long = "n".repeat(300);
    let subject = Subject::of(&certificate(&[(DnType::CommonName, utf8(&long))])).unwrap();
    assert_eq!(subject.common_name, Some(long));
}

#[test]
fn what_is_no_certificate_has_no_subject() {
    let whole = certificate(&[(DnType::CommonName, utf8("shop"))]);
    // Cut anywhere, it is no certificate any more, and nothing worse happens.
    for length in 0..whole.len() {
        assert_eq!(Subject::of(&CertificateDer::from(&whole[..length])), None);
    }
    for bytes in [
        &[0x30, 0x80][..],
        &[0x30, 0x85, 1, 1, 1, 1, 1],
        &[0x30, 0xff],
    ] {
        assert_eq!(Subject::of(&CertificateDer::from(bytes)), None);
    }
}
